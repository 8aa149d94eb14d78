"""Documents as blocks, and their four renderers: terminal, Markdown, pages and paper.

`model` has the blocks. A document composes them once; `terminal`, `markdown`, `html` and `paper` lay them
out. A new document is one file that returns blocks.
"""
