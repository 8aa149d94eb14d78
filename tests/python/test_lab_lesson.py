"""Lessons: answers of students, marked against fixed answers and against their own runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import narrows, sentence
from lab_kit import LAB, family
from narrows.files import SHIPPED
from narrows.lab import store
from narrows.lab.marking import read_solution
from narrows.lab.store import listed

LESSON = """\
lesson:
  minutes: 10
  tasks:
    look:
      do: Run it.
      hints: [Read the report.]
      questions:
        delay: {ask: How long is the queue of Reno?, unit: ms, points: 2}
        growth: {ask: By what factor does it grow?}
        who: {ask: Who fills it?, options: [sender, receiver]}
"""
SOLUTION = """\
schema: narrows/lab-solution/1
answers:
  look.delay: {from: NewReno @ small, column: delay, factor: 0.000001, within: 10 %,
    explain: It is the buffer.}
  look.growth: {from: NewReno @ large / NewReno @ small, column: delay}
  look.who: {right: sender}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """A lesson after it was run, and the delays that its runs had, in ms."""
    place = tmp_path_factory.mktemp("lesson")
    made = family(place / "lesson", LAB + LESSON)
    (made / "solution.yaml").write_text(SOLUTION)
    result = narrows("lab", "run", made, "-o", place / "ada", "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    columns = json.loads(result.stdout)["columns"]
    of = next(column for column in columns if column["name"] == "delay")
    return place, {cell["case"]: cell["ours"] / 1e6 for cell in of["cells"] if cell["scheme"] == "NewReno"}


def answer(folder: Path, **answers: Any) -> None:
    lines = ["schema: narrows/lab-answers/1", "name: Ada", "answers:"]
    lines += [f"  look.{name}: {value}" for name, value in answers.items()]
    (folder / "answers.yaml").write_text("\n".join(lines) + "\n")


def marks(folder: Path) -> dict[str, Any]:
    result = narrows("lab", "mark", folder, "--json")
    assert result.exit_code == 0, result.exception
    return dict(json.loads(result.stdout))


def test_questions_are_written_for_the_student(done: tuple[Path, dict[str, float]]) -> None:
    again = done[0] / "again"
    result = narrows("lab", "run", done[0] / "lesson", "--quick", "-o", again)
    assert result.exit_code == 0, (result.output, result.exception)
    text = (again / "answers.yaml").read_text()
    assert "look.delay:\n" in text
    assert "(one of: sender, receiver)" in text
    assert "(a number in ms)" in text
    # What is there already is the student's.
    answer(again, who="sender")
    assert narrows("lab", "run", done[0] / "lesson", "--quick", "-o", again).exit_code == 0
    assert "look.who: sender" in (again / "answers.yaml").read_text()


def test_numbers_are_compared_with_the_students_own_runs(done: tuple[Path, dict[str, float]]) -> None:
    place, delays = done
    growth = delays["large"] / delays["small"]
    answer(place / "ada", delay=f"{delays['small'] * 1.05:.3f} ms", growth=f"{growth:.3f}", who="Sender")
    (student,) = marks(place / "ada")["students"]
    assert [one["outcome"] for one in student["answers"]] == ["right", "right", "right"]
    assert (student["name"], student["points"], student["of"]) == ("Ada", 4, 4)


def test_wrong_and_missing_answers_are_told_with_the_right_one(done: tuple[Path, dict[str, float]]) -> None:
    place, delays = done
    answer(place / "ada", delay=delays["small"] * 1.2, growth="twice")
    (student,) = marks(place / "ada")["students"]
    assert [one["outcome"] for one in student["answers"]] == ["wrong", "wrong", "not answered"]
    assert student["points"] == 0
    text = " ".join(narrows("lab", "mark", place / "ada").stdout.split())
    assert "It is the buffer." in text
    assert "right is sender" in text
    assert "Ada: 0 of 4 points" in text


def test_a_class_is_marked_at_once(done: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    place, _ = done
    answer(place / "ada", who="sender")
    group = tmp_path / "class"
    for name in ("ada", "bob"):
        target = group / name
        target.mkdir(parents=True)
        for file in ("lab.json", "buffers"):
            (target / file).symlink_to(place / "ada" / file)
    (group / "ada" / "answers.yaml").write_text((place / "ada" / "answers.yaml").read_text())
    document = marks(group)
    assert [one["name"] for one in document["students"]] == ["Ada"]
    assert "there is no answers.yaml" in document["problems"][0]["problem"]
    shown = narrows("lab", "mark", group).stdout
    assert "Ada" in shown
    assert "there is no answers.yaml" in " ".join(shown.split())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("answers: {look.dely: 3}", 'there is no question "look.dely"; did you mean "look.delay"?'),
        ("answers: {look.delay: [3]}", "must be a single value"),
        ("- 3", "answers are keys with values"),
    ],
)
def test_answers_that_can_not_be_read_are_told(
    done: tuple[Path, dict[str, float]], text: str, told: str
) -> None:
    (done[0] / "ada" / "answers.yaml").write_text(text)
    assert told in sentence(narrows("lab", "mark", done[0] / "ada"))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("  look.who: {right: sender}\n", ""), "there is no answer for look.who"),
        (
            ("{right: sender}", "{right: sender, from: NewReno @ small, column: delay}"),
            "write one of right and from",
        ),
        (("column: delay}", "column: dealy}"), "from needs a column of the family: rate or delay"),
        (("{right: sender}", "{right: nobody}"), "is none of its options: sender or receiver"),
        (("{from: NewReno @ small,", "{from: NewReno @ tiny,"), 'the case "tiny", which the family has not'),
        (("{from: NewReno @ small,", "{from: Reno @ small,"), 'the scheme "Reno", which the family has not'),
        (("look.who:", "look.whom:"), 'there is no question "look.whom"; did you mean "look.who"?'),
    ],
)
def test_a_solution_that_is_not_right_is_told(
    done: tuple[Path, dict[str, float]], tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    answer(done[0] / "ada", who="sender")
    wrong = tmp_path / "solution.yaml"
    wrong.write_text(SOLUTION.replace(*change))
    assert told in sentence(narrows("lab", "mark", done[0] / "ada", "--solution", wrong))


def test_solutions_need_not_come_with_the_family(done: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    answer(done[0] / "ada", who="sender")
    apart = tmp_path / "solution.yaml"
    (done[0] / "lesson" / "solution.yaml").rename(apart)
    try:
        assert "name their file with --solution" in sentence(narrows("lab", "mark", done[0] / "ada"))
        assert narrows("lab", "mark", done[0] / "ada", "--solution", apart).exit_code == 0
    finally:
        apart.rename(done[0] / "lesson" / "solution.yaml")
    assert "no lesson was run here" in sentence(narrows("lab", "mark", tmp_path))


@pytest.mark.parametrize("name", [one.name for one in listed() if one.origin == SHIPPED])
def test_shipped_lessons_have_solutions(name: str) -> None:
    lab = store.load(name)
    if lab.lesson is not None:
        assert read_solution(lab, None).keys() == lab.lesson.questions.keys()
        assert lab.lesson.minutes <= 60


def test_a_family_that_is_no_lesson_has_nothing_to_mark(tmp_path: Path) -> None:
    made = family(tmp_path / "plain")
    assert narrows("lab", "run", made, "--quick", "-o", tmp_path / "out").exit_code == 0
    assert "is no lesson" in sentence(narrows("lab", "mark", tmp_path / "out"))
    lesson = tmp_path / "lesson"
    assert narrows("lab", "new", lesson, "--lesson").exit_code == 0
    assert narrows("lab", "run", lesson, "--quick", "-o", tmp_path / "other").exit_code == 0
    assert narrows("lab", "mark", tmp_path / "other").exit_code == 0
