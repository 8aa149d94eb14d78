"""Traces of links: how fast a link was, or when it could send, over time.

`find` looks a trace up as scenarios name it; `formats` reads and writes the files; `statistics` measures,
`models` makes new ones, `picture` draws.
"""

from __future__ import annotations

from narrows.traces.store import find, shipped_folder, user_folder

__all__ = ["find", "shipped_folder", "user_folder"]
