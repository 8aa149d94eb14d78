"""The one client of `narrows-agent`, the program that runs cells and speaks of its machine.

`location` finds the agent and starts it here or on another host, `session` talks with one that takes
commands, `cell` follows one that runs a cell, `schema` has the shapes of its answers.
"""
