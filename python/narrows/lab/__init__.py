"""Laboratories: families of experiments that are folders of data, run with one command, with published values
beside ours.

`reading` reads a family (`lab.yaml`), `store` finds families, `published` reads their tables, `running` runs
their experiments as campaigns, `ours` takes the values of columns from those campaigns. `comparing` combines
both into one document, `findings` describes a table in sentences, and `text` and `page` render the document.
`lesson` and `marking` handle families that teach.
"""
