"""Tables for papers.

`summary` composes them from campaigns, `differences` from comparisons; `forms` lists the forms in which they
are written.
"""
