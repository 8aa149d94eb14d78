"""The documents that Narrows reads and writes as JSON: one immutable definition each.

A definition says which members a document has, the order in which they are written, which may be absent, and
their possible values. `narrows.documents.data` reads and writes all of them; mypy knows their members.
"""
