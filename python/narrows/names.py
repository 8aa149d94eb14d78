"""Names that several packages share."""

#: Before the name of a scheme that Pantheon ran, or whose wrapper for Pantheon runs: `pantheon:cubic`.
PANTHEON = "pantheon:"
