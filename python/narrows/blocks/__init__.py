"""Documents as blocks, and their renderers: terminal, Markdown and pages.

`model` has the blocks. A document composes them once; `terminal`, `markdown` and `html` lay them out. A new
document is one file that returns blocks.
"""
