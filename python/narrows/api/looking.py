"""Comparing campaigns from a program or notebook: `narrows.compare`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from narrows.api.campaign import Campaign
    from narrows.documents.comparison import Comparison as Document

    Place = str | os.PathLike[str] | Campaign


def _folder(place: Place) -> Path:
    return Path(place) if isinstance(place, str | os.PathLike) else place.path


class Comparison:
    """A comparison of campaigns, or of the schemes of one; prints as `narrows compare` does."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def document(self) -> dict[str, Any]:
        """The whole comparison, as printed by `narrows compare --json`."""
        from narrows.documents.data import to_data

        return dict(to_data(self._document))

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The limits of `fail_on` that were exceeded."""
        return [limit for limit in self.document["limits"] if limit["broken"]]

    def markdown(self) -> str:
        """The comparison as a table for a pull request."""
        from narrows.blocks.markdown import render
        from narrows.comparison.compose import compose

        return render(compose(self._document), level=3)

    def __str__(self) -> str:
        import io

        from rich.console import Console

        from narrows.blocks.terminal import print_document
        from narrows.comparison.compose import HOW, compose

        text = io.StringIO()
        console = Console(file=text, highlight=False, markup=False, emoji=False)
        print_document(console, compose(self._document), HOW)
        return text.getvalue()

    def __repr__(self) -> str:
        return str(self)


def compare(
    *campaigns: Place,
    schemes: Sequence[str] = (),
    against: str | None = None,
    metrics: Sequence[str] = (),
    flow: int | str = "all",
    across: Sequence[str] = (),
    fail_on: Sequence[str] = (),
    margins: Sequence[str] = (),
    traces: bool | None = None,
) -> Comparison:
    """Compares campaigns scheme by scheme with the first as the base, or the schemes of a single campaign.

    The arguments are those of `narrows compare`: the `schemes` to compare, the scheme `against` which those
    of one campaign are compared, `metrics` by name, label or head (`"p95 OWD"`), a `flow`, conditions
    `across` which the campaigns may differ (`"network"`), limits (`"throughput worse by 5 %"`) to `fail_on`,
    which here raise nothing but appear in `Comparison.broken`, the smallest differences that matter (`"1 %"`,
    `"p95 OWD 2 ms"`) as `margins`, and `traces` to compare the senders' states as well.

    Raises `narrows.NarrowsError` for campaigns that can't be read or are not comparable.
    """
    from narrows.comparison.document import Request
    from narrows.comparison.document import compare as compared

    request = Request(
        [_folder(campaign) for campaign in campaigns],
        schemes=tuple(schemes),
        against=against,
        metrics=tuple(metrics),
        flow=str(flow),
        across=tuple(across),
        fail_on=tuple(fail_on),
        margins=tuple(margins),
        traces=traces,
    )
    return Comparison(compared(request))
