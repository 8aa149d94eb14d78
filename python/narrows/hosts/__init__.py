"""Other hosts: reached over the user's own OpenSSH, examined, prepared. Nothing is installed there.

`ssh` holds one connection, `travel` brings the agent into a cache folder of the remote user, `place` runs it
there or here, `between` examines the way between two places, `settings` changes what the machine must be
changed in and puts it back, `check` makes a table of it all.
"""
