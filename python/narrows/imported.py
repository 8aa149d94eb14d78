"""Imported runs: their plane, and the names of their schemes.

A scheme of an imported run is named after the tool and the scheme that it ran: `iperf3:cubic` is the kernel's
CUBIC as reported by iperf3, `pantheon:cubic` the scheme that Pantheon's wrapper started. In figures it has
the style of our scheme of that name, but no status marks.
"""

from __future__ import annotations

#: `where` of an imported campaign, and the plane of its runs.
WHERE = "import"
#: Tools whose measurements are imported.
TOOLS = ("pantheon", "qlog", "ss", "iperf3", "pcapng", "mahimahi")


def plain_name(scheme: str) -> str | None:
    """The name of an imported scheme without its tool; None for schemes of Narrows."""
    tool, colon, name = scheme.partition(":")
    return name if colon and tool in TOOLS else None
