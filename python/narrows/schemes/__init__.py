"""The schemes that scenarios can name: descriptions, verification, and missing requirements on this machine.

`listing` lists them, `page` explains one, `header` reads the texts at the head of their sources, `status` the
results of `python -m validation schemes`, `reference` writes the generated page of the documentation.
"""
