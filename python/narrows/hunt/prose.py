"""The findings of a hunt, as tables for a terminal and as a page of Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from narrows.hunt.objectives import Objective
from narrows.text import markdown_table

Json = dict[str, Any]

NOTHING = "-"


def points(document: Json) -> Iterator[tuple[str, str, str, str]]:
    """Of each gene its name, what was searched, and its value as found and in the minimal scenario."""
    found = (document.get("found") or {}).get("values") or {}
    small = (document.get("minimal") or {}).get("values") or {}
    for one in document["bounds"]:
        yield one["name"], one["searched"], found.get(one["name"], NOTHING), small.get(one["name"], NOTHING)


def planes(document: Json, objective: Objective) -> Iterator[tuple[str, str, str, str, str]]:
    """Of each plane on which the minimal scenario was run: runs, verdicts, median and range, and if it
    holds."""
    for plane in ("simulated", "emulated"):
        told = document.get(plane)
        if not told:
            continue
        verdicts = [one["verdict"] for one in told["runs"]]
        counted = ", ".join(
            f"{verdicts.count(word)} {word}" for word in ("ok", "degraded", "invalid") if word in verdicts
        )
        values = [one["value"] for one in told["runs"] if one["value"] is not None]
        span = f" ({objective.words(min(values))} to {objective.words(max(values))})" if values else ""
        holds = "holds" if told["holds"] else "does not hold"
        yield plane, str(len(verdicts)), counted, objective.words(told["median"]) + span, holds


def others(document: Json, objective: Objective) -> str:
    """Other schemes on the same path, as a sentence; nothing where there are none."""
    told = (document.get("simulated") or {}).get("schemes") or {}
    found = [
        f"{scheme} {objective.words(value)}"
        for scheme, value in told.items()
        if scheme != document["scheme"] and value is not None
    ]
    return f"On the same path, simulated: {', '.join(found)}." if found else ""


def page(document: Json, objective: Objective, scenario: str | None) -> str:
    """The page as text."""
    lines = [f"# {document['question']}", ""]
    small = document.get("minimal")
    if small is None:
        best = document.get("found")
        known = f" The worst so far: {best['words']}." if best else ""
        lines += [f"The hunt is not finished ({document['state']}).{known}", ""]
    else:
        lines += [f"Found: {small['claim']} (the mildest of {len(small['runs'])} runs).", ""]
    if document.get("reached") is False:
        lines += [f"The goal, {objective.words(document['goal'])}, was not reached.", ""]
    rows = list(planes(document, objective))
    if rows:
        lines += [markdown_table(("plane", "runs", "verdicts", objective.label, "expectations"), rows)]
        lines += [text, ""] if (text := others(document, objective)) else []
    seconds = document.get("searched_s")
    took = f" in {seconds:.0f} s" if seconds else ""
    lines += [f"{document.get('evaluations', 0)} paths were searched{took}, between these bounds:", ""]
    lines += [markdown_table(("", "searched", "found", "minimal"), points(document))]
    if scenario is not None:
        lines += [
            "What is left, to be run with `narrows run minimal.yaml`:",
            "",
            "```yaml",
            scenario + "```",
            "",
        ]
    return "\n".join(lines)
