"""Output of `python -m validation tunnel`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from narrows import __version__
from narrows.console import Listing
from narrows.text import markdown_table
from validation.tunnel.compare import (
    LEVEL_OF_TEST,
    MARGIN,
    MEANINGS,
    METRICS,
    Row,
    circumstances,
    is_main,
    own_account,
)
from validation.tunnel.figure import draw
from validation.tunnel.smirnov import significance
from validation.tunnel.testbed import INSIDE
from validation.tunnel.work import Outcome

FORMAT = "narrows/verify-tunnel/1"
FILE, PAGE, FIGURE = "verify-tunnel.json", "verify-tunnel.md", "verify-tunnel"


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything, for programs."""
    options = outcome.options
    return {
        "format": FORMAT,
        "version": __version__,
        "machine": outcome.machine,
        "path": asdict(options.emulated_path),
        "longer_ns": options.longer_ns or None,
        "seed": options.seed,
        "level": LEVEL_OF_TEST,
        "margin": MARGIN,
        "rows": [row.to_json() for row in outcome.rows],
        "significant": significant(outcome.rows),
        "by_chance": by_chance(outcome.rows),
        "tunnel": {scheme: own_account(places[INSIDE.name]) for scheme, places in outcome.runs.items()},
        "circumstances": {
            scheme: {where: circumstances(runs) for where, runs in places.items()}
            for scheme, places in outcome.runs.items()
        },
        "repeated": outcome.repeated,
        "given_up": outcome.given_up,
        "degraded": outcome.degraded,
        "differing_settings": outcome.differing,
        "runs": outcome.runs,
    }


def significant(rows: list[Row]) -> int:
    """The number of significant differences between inside and outside."""
    return sum(row.p is not None and row.p < LEVEL_OF_TEST for row in rows if is_main(row))


def by_chance(rows: list[Row]) -> float:
    """The expected number of these if nothing differed. The probability of each is below the level, because
    the statistic has few possible values."""
    expected = 0.0
    for row in rows:
        if is_main(row) and row.p is not None:
            n, m = row.runs_base, row.runs_where
            chances = (significance(n, m, apart) for apart in range(1, n * m + 1))
            expected += next((p for p in chances if p < LEVEL_OF_TEST), 0.0)
    return expected


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Writes the document and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document(outcome), indent=1, ensure_ascii=False) + "\n"
    for name, content in ((FILE, text), (PAGE, _page(outcome))):
        partial = folder / f"{name}.partial"
        partial.write_text(content, encoding="utf-8", newline="\n")
        partial.replace(folder / name)
    return [folder / FILE, folder / PAGE, *draw(outcome, folder / FIGURE)]


#: Titles of the columns.
_TITLES = ("scheme", "metric", "", "", "difference", "95 % interval", "D", "p", "p (all)", "outcome")


def _cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    words, unit, factor = {key: (words, unit, factor) for key, words, unit, factor in METRICS}[row.metric]

    def place(name: str, value: float | None) -> str:
        return f"{name}: N/A" if value is None else f"{name}: {value * factor:.3f} {unit}"

    def number(value: float | None, text: str) -> str:
        return "N/A" if value is None else text.format(value)

    low, high = row.interval or (None, None)
    return (
        row.scheme,
        "p95 of delay" if row.metric == "delay_p95_ns" else words,
        place(row.base, row.median_base),
        place(row.where, row.median_where),
        number(row.difference, "{:+.2%}"),
        "N/A" if low is None else f"{low:+.2%} to {high:+.2%}",
        number(row.statistic, "{:.2f}"),
        number(row.p, "{:.2g}"),
        number(row.p_holm, "{:.2g}"),
        row.outcome,
    )


def print_outcome(console: Console, outcome: Outcome, paths: list[Path]) -> None:
    """Prints the table, the tunnel's own account, possible explanations of differences, and the files with
    the details."""
    made = Listing(*_TITLES, whole=_TITLES)
    for row in outcome.rows:
        made.add_row(*_cells(row))
    console.print(made)
    for line in remarks(outcome):
        console.print(line, soft_wrap=True)
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


def _page(outcome: Outcome) -> str:
    """The same as a document."""
    path, machine = outcome.options.emulated_path, outcome.machine
    rows = markdown_table(_TITLES, map(_cells, outcome.rows))
    where = f"{machine['cpus']} x {machine['cpu_model']}, kernel {machine['kernel']}" if machine else "N/A"
    loss = f", {path.loss} loss" if path.loss else ""
    conditions = (
        f"Path: {path.rate}, {path.delay} each way, {path.queue}{loss}; flows of {path.length_ns / 1e9:g} s,"
    )
    runs = f" {outcome.options.runs} of each; {where}."
    head = ["# The tunnel against the path outside", "", conditions + runs, ""]
    return "\n".join([*head, rows.rstrip("\n"), *remarks(outcome)]) + "\n"


def remarks(outcome: Outcome) -> list[str]:
    """Remarks below the table."""
    compared = sum(is_main(row) and row.p is not None for row in outcome.rows)
    lines = [
        "",
        f"{significant(outcome.rows)} of {compared} comparisons of inside with outside are below p ="
        f" {LEVEL_OF_TEST:g}; if nothing differed, {by_chance(outcome.rows):.1f} would be on average."
        " p (all) allows for their number.",
        "",
    ]
    lines += [
        f"- {name}: {MEANINGS[name]}" for name in MEANINGS if any(row.outcome == name for row in outcome.rows)
    ]
    lines.append("")
    for scheme, places in outcome.runs.items():
        for where, runs in places.items():
            lines.append(f"- {scheme}, {where}: {_circumstances(circumstances(runs))}")
        account = own_account(places[INSIDE.name])
        if account is not None:
            lines.append(
                f"- {scheme}: the tunnel's own logs say {account['throughput']:+.3%} of throughput and"
                f" {account['delay_p95_ns'] / 1e6:+.3f} ms of the 95th percentile more than the path's record"
            )
    lines.append("")
    lines.append(
        f"{outcome.repeated} attempts were repeated because the machine had too much else to do;"
        f" {outcome.given_up} runs were given up, {outcome.degraded} count although they are degraded."
    )
    if outcome.differing:
        lines.append(f"Settings of the kernel that differ outside: {', '.join(outcome.differing)}")
    return lines


def _circumstances(found: dict[str, float | None]) -> str:
    parts = (
        ("size_bytes", 1, "{:.0f} bytes"),
        ("first_loss_ns", 1e-9, "first loss after {:.3f} s"),
        ("first_loss_least_ns", 1e-9, "at the earliest {:.3f} s"),
        ("first_loss_most_ns", 1e-9, "at the latest {:.3f} s"),
        ("loss_ratio", 100, "{:.3f} % lost"),
        ("train_ratio", 100, "{:.1f} % of packets in trains"),
        ("rtt_min_ns", 1e-6, "smallest RTT {:.3f} ms"),
        ("late_p99_ns", 1e-3, "emulator late by {:.0f} us (p99)"),
        ("waited_p99_ns", 1e-3, "waited in the tunnel for {:.0f} us (p99)"),
    )
    return ", ".join(
        text.format(value * factor) for key, factor, text in parts if (value := found.get(key)) is not None
    )
