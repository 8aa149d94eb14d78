"""Comparing campaigns, and schemes within one: what differs in the set-ups, what the runs show, and how
surely.

`sides` opens the campaigns and pairs their runs, `setups` tells how the set-ups differ and refuses what is
not comparable, `findings` judges the differences, `traces` and `envelope` look behind the numbers, `gate`
holds them against a limit. `document` puts all of it into one plain document, from which `text`, `markdown`
and `page` are made.
"""
