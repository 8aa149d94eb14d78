"""Models of schemes: rule tables and networks that somebody has trained, kept beside the user's other data.

Narrows ships none. `narrows models add` turns published ones into files of our format (`format`), which the
core reads.
"""
