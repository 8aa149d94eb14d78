"""The description of a family before it is run: its page, experiments, columns and published table."""

from __future__ import annotations

from narrows.files import read_whole
from narrows.lab.reading import Lab
from narrows.lab.store import list_families
from narrows.text import plural

_MOST_BYTES = 1_000_000


def page_of(lab: Lab) -> str:
    """The text of the page, in Markdown."""
    return read_whole(lab.folder / lab.page, "page", _MOST_BYTES).decode("utf-8", "replace")


def document(lab: Lab) -> dict[str, object]:
    """The family as plain data."""
    return {
        "format": "narrows/lab-family/1",
        "name": lab.name,
        "folder": str(lab.folder),
        "title": lab.title,
        "question": lab.question,
        "source": lab.source,
        "where": lab.where,
        "quick": lab.quick,
        "schemes": lab.schemes,
        "emulated": lab.emulated,
        "experiments": [
            {
                "name": experiment.name,
                "scenario": experiment.scenario,
                "what": experiment.what,
                "schemes": list(experiment.schemes),
                "cases": list(experiment.cases),
            }
            for experiment in lab.experiments.values()
        ],
        "columns": [
            {
                "name": column.name,
                "metric": column.metric,
                "definition": column.definition,
                "published": column.published is not None,
            }
            for column in lab.columns.values()
        ],
        "published": None if lab.published is None else {"lines": len(lab.published.rows)},
        "lesson": None if lab.lesson is None else _lesson(lab),
        "page": page_of(lab),
    }


def _lesson(lab: Lab) -> dict[str, object]:
    assert lab.lesson is not None
    return {
        "minutes": lab.lesson.minutes,
        "tasks": [
            {
                "name": task.name,
                "do": task.do,
                "hints": list(task.hints),
                "questions": [
                    {
                        "name": question.name,
                        "ask": question.ask,
                        "options": list(question.options),
                        "unit": question.unit,
                    }
                    for question in task.questions
                ],
            }
            for task in lab.lesson.tasks
        ],
    }


def lines(lab: Lab) -> list[str]:
    """The family for the terminal: the page, then the experiments and comparisons."""
    texts = [page_of(lab).rstrip(), ""]
    if lab.lesson is not None:
        texts += [f"A lesson of {lab.lesson.minutes:g} minutes.", ""]
        for number, task in enumerate(lab.lesson.tasks, 1):
            texts.append(f"{number}. {task.do}")
            texts += [f"   Hint: {hint}" for hint in task.hints]
            for asked in task.questions:
                unit = f" [{asked.unit}]" if asked.unit else ""
                options = f" ({' | '.join(asked.options)})" if asked.options else ""
                texts.append(f"   {task.name}.{asked.name}: {asked.ask}{unit}{options}")
        texts.append("")
    texts.append("Experiments:")
    for experiment in lab.experiments.values():
        what = f": {experiment.what}" if experiment.what else ""
        texts.append(
            f"  {experiment.name} ({experiment.scenario}; {plural(len(experiment.schemes), 'scheme')},"
            f" {plural(len(experiment.cases), 'condition')}){what}"
        )
    texts.append("Columns:")
    for column in lab.columns.values():
        kind = "" if column.published else ", not published"
        texts.append(f"  {column.name} ({column.metric}{kind}): {column.definition}")
    if lab.published is not None:
        count = plural(len(lab.published.rows), "line")
        texts.append(f"Published: {count} in {lab.published.path.name}. {lab.source or ''}".rstrip())
    texts.append("")
    shorter = f" (--quick: {lab.quick})" if lab.quick else ""
    called = lab.name if any(family.path == lab.folder for family in list_families()) else lab.folder
    texts.append(f"Run it with: narrows lab run {called}{shorter}")
    return texts
