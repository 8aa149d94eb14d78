"""Results of Pantheon: its data folders into campaigns of ours, and campaigns out into such folders."""

#: Before the name of a scheme that Pantheon ran: `pantheon:cubic` is whatever its wrapper started.
PREFIX = "pantheon:"
