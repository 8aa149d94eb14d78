"""Other hosts: reached over the user's own OpenSSH, examined, prepared. Nothing is installed there.

`ssh` holds one connection, `deploy` brings the agent into a cache folder of the remote user, `path_probe`
examines the path between both machines, `sysctls` overrides settings and puts them back, `remote_host` is all
of it for a campaign, `check` makes a table of it.
"""
