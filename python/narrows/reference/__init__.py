"""The generated reference of elements: what the core offers, with an example and a picture of each.

`examples` has one example per entry, `probe` tries it in the core, `svg` draws, `elements` writes the page.
"""
