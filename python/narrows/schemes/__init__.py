"""The schemes that can be named in scenarios: what they are, how far they are verified, what is missing here.

`listing` lists them, `page` explains one, `header` reads the texts at the head of their sources, `status`
the results of `python -m validation schemes`, `reference` writes the generated page of the documentation.
"""
