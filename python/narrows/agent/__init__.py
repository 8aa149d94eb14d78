"""The only client of `narrows-agent`, the program that runs cells and reports facts about its machine.

`location` finds the agent and starts it here or on another host, `session` exchanges commands and answers
with it, `cell` runs a cell with it, `schema` defines the shapes of its answers.
"""
