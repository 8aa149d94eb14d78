"""Traces of links: the rate of a link, or its opportunities to send, over time.

`find` resolves a trace's name in a scenario; `formats` reads and writes files; `statistics` measures,
`models` generates, `picture` draws.
"""

from __future__ import annotations

from narrows.traces.store import find, find_shipped_folder, user_folder

__all__ = ["find", "find_shipped_folder", "user_folder"]
