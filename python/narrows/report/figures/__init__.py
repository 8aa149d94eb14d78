"""The registry of figures: every module in this folder is one figure. To add a figure, add a file.

A figure module has

- `TITLE`: a heading of a few words; `SCOPE`: `"campaign"` (one for the campaign) or `"run"` (one per run);
  `ORDER`: its place among the figures of its scope;
- `numbers(data) -> Numbers`: the numbers it shows; they are also written as CSV beside it;
- `figure(data, options) -> Figure`: the picture; draws nothing but what `numbers` and `data` say;
- `caption(data) -> str`: what is seen and how to read it, in a sentence or two;
- of a campaign, `STATISTIC`: how it puts the numbers of runs together (without it: it shows no measurement);
- optionally `ALSO`: other names under which it may be asked for;
- optionally `IN_REPORT = False`: only drawn when it is asked for (`narrows plot`), not in every report;
- optionally `OF_METRIC = True`: it shows the metric that the reader chooses (`data.chosen_metric`);
- optionally `PAPER_NOTE`: a sentence that explains what only the picture has (added to the caption on paper);
- `absent(data) -> str | None`: why there is nothing to draw, or `None`;
- optionally `concerns(data) -> bool`: false where the data has nothing of what the figure is about, so that
  reports leave it out without a word;
- optionally `chart(data) -> NumberChart | None`: the interactive form for the page (without it the page shows
  the picture), and `tips(data) -> dict`: tool tips for parts of the picture that were given a `gid`.

`data` is a `narrows.report.data.Campaign` or `Run`, by scope.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from narrows.report.charts import NumberChart
from narrows.report.drawing import Numbers, Options

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class FigureKind:
    """One entry of the registry."""

    name: str
    module: ModuleType

    @property
    def title(self) -> str:
        """The heading of the figure."""
        return str(self.module.TITLE)

    @property
    def also(self) -> tuple[str, ...]:
        """Other names for requesting it."""
        return tuple(getattr(self.module, "ALSO", ()))

    @property
    def in_report(self) -> bool:
        """True if reports show it."""
        return bool(getattr(self.module, "IN_REPORT", True))

    @property
    def of_metric(self) -> bool:
        """True if the reader can choose its metric."""
        return bool(getattr(self.module, "OF_METRIC", False))

    @property
    def summary(self) -> str:
        """A sentence about its content."""
        return (self.module.__doc__ or self.title).strip().split("\n\n")[0].replace("\n", " ")

    @property
    def statistic(self) -> str:
        """The statistic that combines runs; empty for a figure that shows no measurement."""
        return str(getattr(self.module, "STATISTIC", ""))

    @property
    def scope(self) -> str:
        """`campaign` or `run`."""
        return str(self.module.SCOPE)

    def absent(self, data: Any) -> str | None:
        """Why there is nothing to draw, or `None`."""
        reason: str | None = self.module.absent(data)
        return reason

    def concerns(self, data: Any) -> bool:
        """False if reports omit it silently."""
        ask = getattr(self.module, "concerns", None)
        return ask is None or bool(ask(data))

    def caption(self, data: Any) -> str:
        """The caption: its content and how to read it."""
        return str(self.module.caption(data))

    @property
    def paper_note(self) -> str:
        """The addition to the caption for the picture, compared with the interactive form."""
        return str(getattr(self.module, "PAPER_NOTE", ""))

    def numbers(self, data: Any) -> Numbers:
        """The numbers the figure shows."""
        result: Numbers = self.module.numbers(data)
        return result

    def figure(self, data: Any, options: Options) -> Figure:
        """The picture."""
        result: Figure = self.module.figure(data, options)
        return result

    def chart(self, data: Any) -> NumberChart | None:
        """The interactive form, if the module has one."""
        make = getattr(self.module, "chart", None)
        return None if make is None else make(data)

    def tips(self, data: Any) -> dict[str, str]:
        """Tool tips by `gid`."""
        make = getattr(self.module, "tips", None)
        return {} if make is None else make(data)


@lru_cache(maxsize=1)
def registry() -> dict[str, FigureKind]:
    """All figures by name, in the order in which reports show them."""
    figure_kinds = []
    for entry in pkgutil.iter_modules(__path__):
        if not entry.name.startswith("_"):
            figure_kinds.append(FigureKind(entry.name, importlib.import_module(f"{__name__}.{entry.name}")))
    figure_kinds.sort(key=lambda kind: (kind.scope, kind.module.ORDER, kind.name))
    return {kind.name: kind for kind in figure_kinds}


def of_scope(scope: str) -> list[FigureKind]:
    """The figures of one scope that reports show, in order."""
    return [kind for kind in registry().values() if kind.scope == scope and kind.in_report]
