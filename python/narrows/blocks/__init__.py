"""Documents as blocks, and their renderers: terminal, Markdown, pages and LaTeX.

`model` has the blocks. A document composes them once; `terminal`, `markdown`, `html` and `latex` lay them
out. A new document is one file that returns blocks.
"""
