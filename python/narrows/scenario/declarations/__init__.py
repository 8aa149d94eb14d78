"""The files that users write: the keys of each kind of file are declared once, in its `format.yaml`.

`declaration` reads it; `reader` reads files by it, with positions, and `value` single values; `schema` makes
the JSON Schema, `reference` the tables of the Markdown reference.
"""
