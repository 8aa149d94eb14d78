"""Names that several packages share."""

#: The prefix of a scheme that Pantheon ran, or whose wrapper for Pantheon runs: `pantheon:cubic`.
PANTHEON = "pantheon:"
