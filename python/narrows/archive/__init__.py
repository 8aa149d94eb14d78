"""An archive: a stated list of campaigns, run by one version of Narrows, as a site and a file of numbers.

`listing` reads the list, `making` runs it, `comparing` finds the differences between two archives.
`release.yaml` is the list that every release runs.
"""
