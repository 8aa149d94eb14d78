"""Tables of a report about imported runs: the original numbers, and the software."""

from __future__ import annotations

from narrows.pantheon.summary import Line, summarise
from narrows.report.cells import Cell, Notes, Table
from narrows.report.content import Machine
from narrows.report.data import Campaign
from narrows.report.tables import MORE


def pantheon(campaign: Campaign) -> Table | None:
    """Pantheon's table beside our numbers; nothing for other campaigns."""
    rows: list[list[Cell]] = []
    notes = Notes()
    for scheme in campaign.schemes:
        runs = campaign.of_scheme(scheme)
        records = [run.record for run in runs if run.record is not None and run.record.get("pantheon")]
        if not records:
            continue
        lines = summarise(scheme, records)
        # A single flow is the total.
        lines = lines[:1] if len(lines) == 2 else lines
        reasons = [
            f"{scheme}, run {run.number}: {((run.record or {}).get('pantheon') or {}).get('refused')}"
            for run in runs
            if ((run.record or {}).get("pantheon") or {}).get("refused")
        ]
        for index, line in enumerate(lines):
            first = [Cell(scheme, kind="scheme", span=len(lines))] if index == 0 else []
            marks = [notes.mark(reason) for reason in reasons]
            rows.append(
                [
                    *first,
                    Cell(line.flow, kind="total" if line.flow == "all" else ""),
                    Cell(f"{line.runs} of {len(runs)}", align="right", marks=marks),
                    *(Cell(text, align="right") for text in _texts(line)),
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
    head = [Cell("scheme"), Cell("flow"), Cell("runs", align="right")]
    head += [Cell(title, small=unit, align="right") for title, unit in titles]
    return Table(head, rows, notes.list_notes())


def _texts(line: Line) -> tuple[str, str, str]:
    return line.throughput_mbps, line.delay_p95_ms, line.loss_percent


def _ours(campaign: Campaign, scheme: str, flow: str) -> list[Cell]:
    cells = []
    for name in MORE["pantheon"].metrics:
        value = campaign.median(scheme, flow, name)
        text = "N/A" if value is None else f"{value * campaign.quantity(name).show_scale:.2f}"
        cells.append(Cell(text, align="right", kind="absent" if value is None else ""))
    return cells


def software(campaign: Campaign) -> list[Machine]:
    """The software of the runs, from its git summary."""
    rows: dict[str, str] = {}
    imported = False
    for run in campaign.runs:
        kept = (run.record or {}).get("pantheon")
        imported = imported or bool(kept)
        rows |= {str(name): str(commit) for name, commit in ((kept or {}).get("git") or {}).items()}
    if not imported:
        return _others(campaign)
    text = "Pantheon’s logs do not name the machines on which the runs were made."
    text += " Commits of its software:" if rows else ""
    return [Machine(title="Imported runs", rows=list(rows.items()), text=text)]


def _others(campaign: Campaign) -> list[Machine]:
    """Facts that other tools than Pantheon state about their measurements: one row per run."""
    rows = []
    for run in campaign.runs:
        kept = (run.record or {}).get("import")
        if kept:
            told = [str(kept.get("tool") or ""), *(f"{key} {kept[key]}" for key in _TOLD if kept.get(key))]
            rows.append((", ".join(map(str, kept.get("files") or ())), ", ".join(told)))
    if not rows:
        return []
    return [Machine(title="Imported runs", rows=rows, text="The files that were read, and their facts.")]


#: Facts of imported runs to show.
_TOLD = ("version", "protocol", "qlog", "vantage_point", "host")
