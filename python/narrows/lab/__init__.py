"""Laboratories: families of experiments that are folders of data, run with one command, with published values
beside ours.

`reading` reads a family (`lab.yaml`), `store` finds families, `published` reads their tables, `running` runs
their experiments as campaigns, `ours` takes the values of columns from those campaigns. `comparing` puts both
together into one plain document, `findings` says in sentences what a table shows, and `text` and `page` show
the document. `lesson` and `marking` are for families that teach.
"""
