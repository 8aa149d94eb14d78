"""Models of schemes: trained rule tables and networks, stored with the user's other data.

Narrows ships none. `narrows models add` turns published ones into files of our format (`format`), which the
core reads.
"""
