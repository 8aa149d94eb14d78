"""Scenarios: a question, a network, and the flows that cross it.

`load` reads a file in two steps: the text with positions, then the resolved form (units, defaults, names).
Commands that read results need only the names and hashes of scenarios; everything else is imported on use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from narrows.scenario.loading import Loaded, load, loads
    from narrows.scenario.model import Cell, Scenario, cells_of
    from narrows.scenario.overrides import Override

__all__ = ["Cell", "Loaded", "Override", "Scenario", "cells_of", "load", "loads"]

_HOMES = {
    "loading": ("Loaded", "load", "loads"),
    "model": ("Cell", "Scenario", "cells_of"),
    "overrides": ("Override",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
