"""Tables of a report about imported runs: the original numbers, and the software."""

from __future__ import annotations

from narrows.blocks.model import Cell, Column, Table
from narrows.pantheon.summary import Line, summarise
from narrows.report.cells import Notes
from narrows.report.content import Machine
from narrows.report.data import Campaign
from narrows.report.tables import MORE


def pantheon(campaign: Campaign) -> Table | None:
    """Pantheon's table beside our numbers; nothing for other campaigns."""
    rows: list[list[Cell]] = []
    notes = Notes()
    for scheme in campaign.schemes:
        runs = campaign.of_scheme(scheme)
        kept = {run.number: own for run in runs if run.record and (own := run.record.pantheon)}
        if not kept:
            continue
        lines = summarise(scheme, list(kept.values()))
        # A single flow is the total.
        lines = lines[:1] if len(lines) == 2 else lines
        reasons = [f"{scheme}, run {number}: {own.refused}" for number, own in kept.items() if own.refused]
        for index, line in enumerate(lines):
            first = [Cell(scheme, kind="scheme", span=len(lines))] if index == 0 else []
            marks = tuple(notes.mark(reason) for reason in reasons)
            rows.append(
                [
                    *first,
                    Cell(line.flow, kind="total" if line.flow == "all" else ""),
                    Cell(f"{line.runs} of {len(runs)}", marks=marks),
                    *(Cell(text) for text in _texts(line)),
                    *_ours(campaign, scheme, line.flow),
                ]
            )
    if not rows:
        return None
    titles = (
        ("Pantheon: throughput", "Mbit/s"),
        ("95th percentile delay", "ms"),
        ("loss", "%"),
        ("Narrows: throughput", "Mbit/s"),
        ("95th percentile delay", "ms"),
        ("loss", "%"),
    )
    head = [Column("scheme", "left", names=True), Column("flow", "left"), Column("runs")]
    head += [Column(title, unit=unit) for title, unit in titles]
    return Table.new(head, rows, notes.list_notes())


def _texts(line: Line) -> tuple[str, str, str]:
    return line.throughput_mbps, line.delay_p95_ms, line.loss_percent


def _ours(campaign: Campaign, scheme: str, flow: str) -> list[Cell]:
    cells = []
    for name in MORE["pantheon"].metrics:
        value = campaign.median(scheme, flow, name)
        text = "N/A" if value is None else f"{value * campaign.quantity(name).show_scale:.2f}"
        cells.append(Cell(text, kind="absent" if value is None else ""))
    return cells


def software(campaign: Campaign) -> list[Machine]:
    """The software of the runs, from its git summary."""
    kept = [run.record.pantheon for run in campaign.runs if run.record and run.record.pantheon]
    if not kept:
        return _others(campaign)
    rows = {name: commit for own in kept for name, commit in own.git.items()}
    text = "Pantheon’s logs do not name the machines on which the runs were made."
    text += " Commits of its software:" if rows else ""
    return [Machine(title="Imported runs", rows=list(rows.items()), text=text)]


def _others(campaign: Campaign) -> list[Machine]:
    """Facts that other tools than Pantheon state about their measurements: one row per run."""
    facts = [run.record.origin for run in campaign.runs if run.record and run.record.origin]
    rows = [(", ".join(own.files), own.words) for own in facts]
    if not rows:
        return []
    return [Machine(title="Imported runs", rows=rows, text="The files that were read, and their facts.")]
