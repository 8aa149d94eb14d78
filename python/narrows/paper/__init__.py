"""Tables for papers.

`table` defines them, `summary` makes them of campaigns, `differences` of comparisons, `forms` lists the forms
in which they are written.
"""
