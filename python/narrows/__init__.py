"""Narrows: an open laboratory for Internet congestion control.

One scenario file, run in a simulator or in a real-time emulator, recorded packet by packet, judged and
reported. On the command line: `narrows run first-look`. In Python:

    import narrows

    campaign = narrows.run("one-flow", runs=3)   # or narrows.load("results/...")
    campaign.results                             # a row per run and flow, as an Arrow table
    campaign.packets("cubic-r1", flow=1)         # every packet of a run

Importing the package loads nothing else, but decides whether extensions are used (narrows.extended); each
name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from narrows import extended

if TYPE_CHECKING:
    from narrows.api.campaign import Campaign, campaigns, load
    from narrows.api.looking import Comparison, compare
    from narrows.api.query import query
    from narrows.api.running import run
    from narrows.campaign.own_metrics import metric
    from narrows.campaign.record import Run
    from narrows.errors import NarrowsError
    from narrows.report import plot

__version__ = "0.1.0"

extended.activate(__path__)

__all__ = [
    "Campaign", "Comparison", "NarrowsError", "Run", "__version__", "campaigns", "compare", "load", "metric",
    "plot", "query", "run",
]  # fmt: skip

#: The public names, each with the module that defines it.
_HOMES = {
    "Campaign": "api.campaign",
    "Comparison": "api.looking",
    "NarrowsError": "errors",
    "Run": "campaign.record",
    "campaigns": "api.campaign",
    "compare": "api.looking",
    "load": "api.campaign",
    "metric": "campaign.own_metrics",
    "plot": "report",
    "query": "api.query",
    "run": "api.running",
}


# Without the `else`, type checkers would accept any name as an attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        result = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = result
        return result


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
