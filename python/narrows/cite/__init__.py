"""Citations: of Narrows, and of the schemes, queues, traces and laboratories that campaigns used.

`publications.toml` has the facts, `bibliography` reads them, `usage` lists the things that a campaign used,
`bibtex` writes entries.
"""
