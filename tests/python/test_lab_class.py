"""Classes: marks over several lessons, places, questions that many got wrong, and the page of the teacher."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from campaign_kit import narrows, sentence
from lab_kit import LAB, family
from narrows.documents.reference import schema
from narrows.errors import DataError

LESSON = """\
lesson:
  minutes: 10
  tasks:
    look:
      do: Run it.
      predict: What will happen?
      hints: [Read the report.]
      questions:
        delay: {ask: How long is the queue of Reno?, unit: ms, points: 2}
        who: {ask: Who fills it?, options: [sender, receiver, router]}
"""
SOLUTION = """\
schema: narrows/lab-solution/1
answers:
  look.delay: {from: NewReno @ small, column: delay, factor: 0.000001, within: 10 %}
  look.who: {right: sender}
"""


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A class of five with two lessons, and the right delay in ms: ada has all, bob and eve err alike in the
    first lesson, dan ran it and answered nothing, and cy handed in nothing."""
    place = tmp_path_factory.mktemp("class")
    for name in ("buffers", "queues"):
        made = family(place / name, LAB + LESSON)
        (made / "solution.yaml").write_text(SOLUTION)
    people = place / "class"
    (people / "cy").mkdir(parents=True)
    for name in ("buffers", "queues"):
        result = narrows("lab", "run", place / name, "-o", people / "ada" / name, "--json")
        assert result.exit_code == 0, (result.output, result.exception)
    columns = json.loads(result.stdout)["columns"]
    cells = next(column for column in columns if column["name"] == "delay")["cells"]
    (cell,) = [cell for cell in cells if (cell["scheme"], cell["case"]) == ("NewReno", "small")]
    delay = cell["ours"] / 1e6
    for name in ("bob", "eve", "dan"):
        shutil.copytree(people / "ada" / "buffers", people / name)
    for lesson in ("buffers", "queues"):
        answer(people / "ada" / lesson, "Ada L.", delay=f"{delay:.3f}", who="sender")
    answer(people / "bob", "", delay=f"{delay * 1.04:.3f} ms", who="Receiver")
    answer(people / "eve", "", delay="1000", who="receiver")
    answer(people / "dan", "")
    return people, delay


def answer(folder: Path, name: str, **answers: str) -> None:
    lines = ["schema: narrows/lab-answers/1", f"name: {name}", "answers:", "  look.predict: <b>It fills</b>"]
    lines += [f"  look.{key}: {value}" for key, value in answers.items()]
    (folder / "answers.yaml").write_text("\n".join(lines) + "\n")


def mark(folder: Path, output: Path) -> dict[str, Any]:
    result = narrows("lab", "class", folder, "-o", output, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return dict(json.loads(result.stdout))


def test_students_are_ranked_by_their_points_in_all_lessons(
    group: tuple[Path, float], tmp_path: Path
) -> None:
    marks = mark(group[0], tmp_path / "out")
    jsonschema.validate(marks, schema("lab-class"))
    assert marks["lessons"] == {"buffers": 3, "queues": 3}
    places = [(student["place"], student["name"], student["points"]) for student in marks["students"]]
    assert places == [(1, "Ada L.", 6), (2, "bob", 2), (3, "cy", 0), (3, "dan", 0), (3, "eve", 0)]
    (problem,) = marks["problems"]
    assert problem["problem"].endswith("cy: not run: no lesson was run here")
    assert json.loads((tmp_path / "out" / "class.json").read_text()) == marks


def test_common_errors_are_counted_by_question(group: tuple[Path, float], tmp_path: Path) -> None:
    rows = {(row["lab"], row["question"]): row for row in mark(group[0], tmp_path / "out")["questions"]}
    who = rows["buffers", "look.who"]
    assert (who["right"], who["wrong"], who["empty"]) == (1, 2, 1)
    assert (who["right_answer"], who["common_wrong"], who["common"]) == ("sender", "receiver", 2)
    delay = rows["buffers", "look.delay"]
    assert (delay["right"], delay["wrong"], delay["empty"]) == (2, 1, 1)
    # A wrong answer that only one student gave is not common.
    assert (delay["common_wrong"], delay["common"]) == (None, 0)


def test_a_line_of_the_table_is_a_student_in_a_lesson(group: tuple[Path, float], tmp_path: Path) -> None:
    mark(group[0], tmp_path / "out")
    with (tmp_path / "out" / "class.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 2
    of = {(row["name"], row["lesson"]): (row["points"], row["of"], row["state"]) for row in rows}
    assert of["Ada L.", "queues"] == ("3", "3", "marked")
    assert of["bob", "buffers"] == ("2", "3", "marked")
    assert of["bob", "queues"] == ("0", "3", "")


def test_the_page_shows_answers_and_predictions_as_text(group: tuple[Path, float], tmp_path: Path) -> None:
    mark(group[0], tmp_path / "out")
    page = (tmp_path / "out" / "class.html").read_text()
    assert "for the teacher alone" in page
    assert "&lt;b&gt;It fills&lt;/b&gt;" in page and "<b>It fills" not in page
    assert "Ada L.: 3 points" in page and "wrong: receiver; right is sender" in page


def test_the_best_attempt_at_a_lesson_counts(group: tuple[Path, float], tmp_path: Path) -> None:
    people = tmp_path / "class"
    shutil.copytree(group[0] / "eve", people / "eve" / "first")
    shutil.copytree(group[0] / "bob", people / "eve" / "second")
    (student,) = mark(people, tmp_path / "out")["students"]
    assert (student["name"], student["points"]) == ("eve", 2)


def test_the_table_fits_and_names_the_page(
    group: tuple[Path, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = narrows("lab", "class", group[0], "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    # Paths have no place to break.
    assert max(len(line) for line in result.stdout.splitlines() if "/" not in line) <= 80
    assert "class.html" in result.stdout and "receiver (2 students)" in " ".join(result.stdout.split())


def test_a_folder_without_lessons_is_refused(group: tuple[Path, float], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    empty = narrows("lab", "class", tmp_path / "empty")
    assert isinstance(empty.exception, DataError) and "no lesson was run" in sentence(empty)
    alone = narrows("lab", "class", group[0] / "bob")
    assert isinstance(alone.exception, DataError) and "narrows lab mark" in sentence(alone)
    assert not list(tmp_path.glob("*-marks"))
