"""The documents that Narrows reads and writes as JSON: one immutable definition each.

A definition says which members a document has, in which order they are written, which may be absent, and what
their values may be. `narrows.documents.data` reads and writes all of them; mypy knows their members.
"""
