"""Comparing campaigns, and schemes within one: differences of the set-ups, findings of the runs, and their
certainty.

`sides` opens the campaigns and pairs their runs, `setups` lists the differences of the set-ups and refuses
incomparable ones, `findings` judges the differences, `traces` and `envelope` look behind the numbers, `gate`
holds them against a limit. `document` puts all of it into one plain document, from which `text`, `markdown`
and `page` are made.
"""
