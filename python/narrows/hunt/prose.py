"""The findings of a hunt in words, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from narrows.blocks.model import Block, Column, Document, Paragraph, Preformatted, Table, present
from narrows.documents.hunt import HuntReport
from narrows.hunt.objectives import Objective

NOTHING = "-"


def finding(report: HuntReport, objective: Objective) -> tuple[Block, ...]:
    """The worst path: the claim, and for each gene its searched range and its value in the worst point and in
    the minimal scenario.
    """
    minimal = report.minimal
    if minimal is None:
        known = f" The worst so far: {report.best.words}." if report.best else ""
        claim = f"The hunt is not finished ({report.state}).{known}"
    else:
        claim = f"Found: {minimal.claim} (the mildest of {len(minimal.runs)} runs)."
    missed = f"The goal, {objective.words(report.goal)}, was not reached." if report.reached is False else ""
    took = f" in {report.searched_s:.0f} s" if report.searched_s else ""
    searched = f"{report.evaluations} paths were searched{took}, between these bounds."
    best = report.best.values if report.best else {}
    values = minimal.values if minimal else {}
    absent = [bound.name for bound in report.bounds if bound.name not in best and bound.name not in values]
    rows = [
        (bound.name, bound.searched, best.get(bound.name, NOTHING), values.get(bound.name, NOTHING))
        for bound in report.bounds
        if bound.name not in absent
    ]
    heads = (
        Column("", "left", names=True),
        *(Column(head, "left") for head in ("searched", "found", "minimal")),
    )
    unused = f"Searched too, and not on the path: {', '.join(absent)}." if absent else ""
    return present(
        (
            Paragraph(claim),
            Paragraph(missed, "bad"),
            Paragraph(searched),
            Table.new(heads, rows, label="The path"),
            Paragraph(unused, "remark"),
        )
    )


def replays(report: HuntReport, objective: Objective) -> tuple[Block, ...]:
    """The runs of the minimal scenario on each plane, and of other schemes on the same path."""
    titles = ("plane", "runs", "verdicts", objective.label, "expectations")
    heads = [Column(title, "right" if title == "runs" else "left") for title in titles]
    rows = _planes(report, objective)
    return present(
        (Table.new(heads, rows, label="Runs of the minimal scenario"), Paragraph(_others(report, objective)))
    )


def _planes(report: HuntReport, objective: Objective) -> Iterator[tuple[str, str, str, str, str]]:
    """For each plane on which the minimal scenario was run: runs, verdicts, median and range, and whether it
    holds.
    """
    for plane, replay in (("simulated", report.simulated), ("emulated", report.emulated)):
        if replay is None:
            continue
        verdicts = [run.verdict for run in replay.runs]
        counted = ", ".join(
            f"{verdicts.count(word)} {word}" for word in ("ok", "degraded", "invalid") if word in verdicts
        )
        values = [run.value for run in replay.runs if run.value is not None]
        span = f" ({objective.words(min(values))} to {objective.words(max(values))})" if values else ""
        holds = "holds" if replay.holds else "does not hold"
        yield plane, str(len(verdicts)), counted, objective.words(replay.median) + span, holds


def _others(report: HuntReport, objective: Objective) -> str:
    """Other schemes on the same path, as a sentence; empty if there are none."""
    schemes = report.simulated.schemes if report.simulated else {}
    texts = [
        f"{scheme} {objective.words(value)}"
        for scheme, value in schemes.items()
        if scheme != report.scheme and value is not None
    ]
    return f"On the same path, simulated: {', '.join(texts)}." if texts else ""


def document(report: HuntReport, objective: Objective, scenario: str | None) -> Document:
    """The whole hunt, with the minimal scenario if there is one."""
    rest: Iterable[Block] = ()
    if scenario is not None:
        run = "The remaining scenario, which narrows run minimal.yaml runs:"
        rest = (Paragraph(run), Preformatted(scenario, "yaml"))
    return Document.new(
        report.question,
        (*finding(report, objective), *replays(report, objective), *rest),
        kind="Narrows hunt",
    )
