"""Other hosts: reached over the user's own OpenSSH, examined, prepared. Nothing is installed on them.

`ssh` holds one connection, `deploy` copies the agent into a cache folder of the remote user, `path_probe`
examines the path between both machines, `sysctls` overrides and restores settings, `remote_host` combines all
of these for a campaign, `check` presents them as a table.
"""
