"""The group of commands for traces, and their shared parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import group
from narrows.cli.common import positive
from narrows.cli.parameters import option

if TYPE_CHECKING:
    from narrows.traces.trace import AnyTrace

trace = group(
    "trace",
    "narrows trace show cellular-drive.csv",
    "Make, record, show, convert and import traces of links.",
)

Force = Annotated[bool, option("--force", help="Overwrite an existing file.")]
Bin = Annotated[str, option("--bin", help="Width of the bins in which opportunities become rates.")]


def print_trace(file: Path, form: str, written: AnyTrace) -> None:
    """Describes a trace that was written, as a document."""
    from narrows.cli.common import print_json
    from narrows.traces.trace import Delays

    mean = {"mean_ns": written.mean_ns} if isinstance(written, Delays) else {"mean_bps": written.mean_bps}
    told = {"file": str(file), "form": form, "length_ns": written.length_ns, **mean}
    print_json({"format": "narrows/trace-written/1", **told})


def mean_of(any_trace: AnyTrace) -> str:
    """The mean rate or delay of a trace, with its unit."""
    from narrows.report.units import span
    from narrows.traces.trace import Delays

    return (
        span(any_trace.mean_ns) if isinstance(any_trace, Delays) else f"{any_trace.mean_bps / 1e6:.6g} Mbit/s"
    )


def read_span(text: str, option: str) -> int:
    """The value of an option as a positive time, in ns."""
    return positive(text, "span", option)


def read_rate(text: str, option: str) -> int:
    """The value of an option as a positive rate, in bit/s."""
    return positive(text, "rate", option)
