"""Comparing campaigns, and schemes within one: differences of the set-ups, findings of the runs, and their
certainty.

`sides` opens the campaigns and pairs their runs, `setups` lists the differences of the set-ups and refuses
incomparable ones, `findings` judges the differences, `traces` and `envelope` compare states and packets,
`gate` compares the findings with limits. `document` combines everything into one document, from which `text`,
`markdown` and `page` are rendered.
"""
