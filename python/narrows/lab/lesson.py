"""The answers of a student: the file that is written for them, and what is read from it."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError, Problem, ScenarioError
from narrows.files import read_whole
from narrows.lab.reading import Lab
from narrows.scenario.yaml_tree import Mapping, Scalar, parse_value
from narrows.text import did_you_mean, shorten

FILE = "answers.yaml"
SCHEMA = "narrows/lab-answers/1"
_MOST_BYTES = 100_000
_WIDTH = 100


def write_answers(lab: Lab, folder: Path) -> Path | None:
    """Writes the questions of a lesson as a file to fill in; None if it is there already, whatever is in
    it."""
    from narrows.analysis.terminal import fold
    from narrows.campaign.store import write_atomically

    file = folder / FILE
    if lab.lesson is None or file.exists():
        return None
    lines = [f"# {lab.title}: write each answer behind its colon.", f"schema: {SCHEMA}", "name:", "answers:"]
    for number, task in enumerate(lab.lesson.tasks, 1):
        lines += ["", *(f"  # {line}" for line in fold(f"{number}. {task.do}", _WIDTH))]
        for one in task.questions:
            kind = (
                f"one of: {', '.join(one.options)}"
                if one.options
                else f"a number{f' in {one.unit}' if one.unit else ''}"
            )
            lines += [f"  # {line}" for line in fold(f"{one.ask} ({kind})", _WIDTH)]
            lines.append(f"  {task.name}.{one.name}:")
    write_atomically(file, "\n".join(lines) + "\n")
    return file


def read_answers(lab: Lab, folder: Path) -> tuple[str, dict[str, str]]:
    """The name that a student gave, and the answers by `TASK.QUESTION`; those that are empty are left out.

    Raises `DataError` if the file is not there, or answers what nobody asked.
    """
    assert lab.lesson is not None
    file = folder / FILE
    try:
        text = read_whole(file, "file of answers", _MOST_BYTES).decode("utf-8-sig")
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{file}: is not UTF-8 text; save the file as UTF-8") from None
    tree = parse_value(text, str(file))
    if not isinstance(tree, Mapping):
        raise ScenarioError(
            [Problem(f"{file}:1:1", "", f"answers are keys with values, and start with schema: {SCHEMA}")]
        )
    problems = []
    named = tree.entries.get("name")
    name = named.text if isinstance(named, Scalar) and not named.is_null else folder.resolve().name
    answers = tree.entries.get("answers")
    found: dict[str, str] = {}
    known = lab.lesson.questions
    for key, mark, value in answers if isinstance(answers, Mapping) else ():
        if key not in known:
            hint = did_you_mean(key, known) or f"; there are {', '.join(known)}"
            problems.append(Problem(str(mark), "", f'there is no question "{shorten(key)}"{hint}'))
        elif not isinstance(value, Scalar):
            problems.append(Problem(str(mark), key, "must be a single value"))
        elif not value.is_null:
            found[key] = " ".join(value.text.split())
    if problems:
        raise ScenarioError(problems)
    return name, found
