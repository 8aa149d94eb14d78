"""The findings of a hunt, as tables for a terminal and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from narrows.documents.hunt import HuntReport
from narrows.hunt.objectives import Objective
from narrows.text import markdown_table

NOTHING = "-"


def points(report: HuntReport) -> Iterator[tuple[str, str, str, str]]:
    """For each gene: its name, the searched range, and its value in the worst point and in the minimal
    scenario.
    """
    best = report.best.values if report.best else {}
    minimal = report.minimal.values if report.minimal else {}
    for bound in report.bounds:
        name = bound.name
        yield name, bound.searched, best.get(name, NOTHING), minimal.get(name, NOTHING)


def planes(report: HuntReport, objective: Objective) -> Iterator[tuple[str, str, str, str, str]]:
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


def others(report: HuntReport, objective: Objective) -> str:
    """Other schemes on the same path, as a sentence; empty if there are none."""
    schemes = report.simulated.schemes if report.simulated else {}
    texts = [
        f"{scheme} {objective.words(value)}"
        for scheme, value in schemes.items()
        if scheme != report.scheme and value is not None
    ]
    return f"On the same path, simulated: {', '.join(texts)}." if texts else ""


def page(report: HuntReport, objective: Objective, scenario: str | None) -> str:
    """The page as text."""
    lines = [f"# {report.question}", ""]
    minimal = report.minimal
    if minimal is None:
        known = f" The worst so far: {report.best.words}." if report.best else ""
        lines += [f"The hunt is not finished ({report.state}).{known}", ""]
    else:
        lines += [f"Found: {minimal.claim} (the mildest of {len(minimal.runs)} runs).", ""]
    if report.reached is False:
        lines += [f"The goal, {objective.words(report.goal)}, was not reached.", ""]
    rows = list(planes(report, objective))
    if rows:
        lines += [markdown_table(("plane", "runs", "verdicts", objective.label, "expectations"), rows)]
        lines += [text, ""] if (text := others(report, objective)) else []
    took = f" in {report.searched_s:.0f} s" if report.searched_s else ""
    lines += [f"{report.evaluations} paths were searched{took}, between these bounds:", ""]
    lines += [markdown_table(("", "searched", "found", "minimal"), points(report))]
    if scenario is not None:
        lines += [
            "The remaining scenario, which `narrows run minimal.yaml` runs:",
            "",
            "```yaml",
            scenario + "```",
            "",
        ]
    return "\n".join(lines)
