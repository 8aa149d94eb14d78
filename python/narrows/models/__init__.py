"""Models of schemes: trained rule tables and networks, stored with the user's other data.

A few that were trained by Narrows are part of the package (`_models`). `narrows models add` turns published
ones into files of our format (`format`), which the core reads.
"""
