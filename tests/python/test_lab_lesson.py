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
from narrows.lab.store import list_families
from narrows.lab.written_numbers import read_number

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
    """A lesson after its run, and the delays of its runs in ms."""
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
    # Existing answers belong to the student.
    answer(again, who="sender")
    assert narrows("lab", "run", done[0] / "lesson", "--quick", "-o", again).exit_code == 0
    assert "look.who: sender" in (again / "answers.yaml").read_text()


def test_numbers_are_compared_with_the_students_own_runs(done: tuple[Path, dict[str, float]]) -> None:
    place, delays = done
    growth = delays["large"] / delays["small"]
    answer(place / "ada", delay=f"{delays['small'] * 1.05:.3f} ms", growth=f"{growth:.3f}", who="Sender")
    (student,) = marks(place / "ada")["students"]
    assert [mark["outcome"] for mark in student["answers"]] == ["right", "right", "right"]
    assert (student["name"], student["points"], student["of"]) == ("Ada", 4, 4)


def test_right_answers_are_shown_only_on_demand(done: tuple[Path, dict[str, float]]) -> None:
    place, delays = done
    answer(place / "ada", delay=delays["small"] * 1.2, growth="twice")
    (student,) = marks(place / "ada")["students"]
    assert [mark["outcome"] for mark in student["answers"]] == ["wrong", "wrong", "not answered"]
    assert student["points"] == 0
    assert {(mark["right"], mark["explain"]) for mark in student["answers"]} == {(None, "")}
    secret = f"{delays['small']:.6g}"
    for words in ([], ["--json"]):
        text = " ".join(narrows("lab", "mark", place / "ada", *words).stdout.split())
        assert "It is the buffer." not in text
        assert "right is" not in text
        assert secret not in text
    text = " ".join(narrows("lab", "mark", place / "ada", "--answers").stdout.split())
    assert "It is the buffer." in text
    assert "right is sender" in text
    assert "Ada: 0 of 4 points" in text
    told = json.loads(narrows("lab", "mark", place / "ada", "--answers", "--json").stdout)
    assert [mark["right"] for mark in told["students"][0]["answers"]][2] == "sender"


def test_a_class_lists_every_student(done: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    place, delays = done
    group = tmp_path / "class"
    for name in ("complete", "wrong", "blank", "without", "absent"):
        (group / name).mkdir(parents=True)
        for file in ("lab.json", "buffers") if name != "absent" else ():
            (group / name / file).symlink_to(place / "ada" / file)
    answer(group / "complete", delay=delays["small"], growth=delays["large"] / delays["small"], who="sender")
    answer(group / "wrong", delay=1, growth=100, who="receiver")
    (group / "blank" / "answers.yaml").write_text(
        "schema: narrows/lab-answers/1\nname:\nanswers:\n  look.who:\n"
    )
    document = marks(group)
    states = {Path(student["folder"]).name: student["state"] for student in document["students"]}
    assert states == {
        "complete": "marked",
        "wrong": "marked",
        "blank": "no answers",
        "without": "no answers",
        "absent": "not run",
    }
    points = {Path(student["folder"]).name: student["points"] for student in document["students"]}
    assert points == {"complete": 4, "wrong": 0, "blank": 0, "without": 0, "absent": 0}
    shown = " ".join(narrows("lab", "mark", group).stdout.split())
    for name in ("blank", "without", "absent", "no answers", "not run"):
        assert name in shown
    assert "sender" not in shown


@pytest.mark.parametrize(
    ("text", "unit", "right"),
    [
        ("1/2", None, "0.5"),
        ("0.5", None, "1/2"),
        ("0,5", None, "0.5"),
        ("50 %", None, "0.5"),
        ("50", "%", "50"),
        ("50 %", "%", "50"),
        ("1/2", "%", "50"),
        ("0.5", "%", "50"),
        ("0.1 s", "ms", "100"),
        ("100ms", "ms", "100"),
        ("4x", None, "4"),
        ("4 times", None, "4"),
        ("1e2", "kB", "100"),
        ("0.1 MB", "kB", "100"),
    ],
)
def test_numbers_are_accepted_as_people_write_them(text: str, unit: str | None, right: str) -> None:
    (wanted,) = read_number(right, None)
    assert any(abs(value - wanted) < 1e-9 for value in read_number(text, unit))


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", None),
        ("much", None),
        ("1/0", None),
        ("5 kg", "ms"),
        ("100 s", "kB"),
        ("nan", None),
        ("1/2/3", None),
    ],
)
def test_other_texts_are_no_numbers(text: str, unit: str | None) -> None:
    assert read_number(text, unit) == []


def test_half_a_per_cent_is_not_fifty() -> None:
    assert read_number("0.5 %", "%") == [0.5]
    assert 50 not in read_number("50 %", None)


TASKS = """\
lesson:
  minutes: 10
  number: 3
  tasks:
    first:
      do: Look at the small buffer.
      predict: How long is the queue?
      runs: [NewReno @ small]
      look: [{figure: window, caption: A sawtooth., conditions: [NewReno @ small]}]
      questions:
        delay: {ask: How long is the queue?, unit: ms}
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lesson of one task."""
    place = tmp_path_factory.mktemp("task")
    family(place / "lesson", LAB + TASKS)
    return place


def test_a_task_asks_for_a_prediction_before_it_runs(task: Path) -> None:
    told = sentence(narrows("lab", "run", task / "lesson", "-o", task / "eve", "--task", "first"))
    assert "first.predict is empty: How long is the queue?" in told
    assert not (task / "eve" / "buffers").exists()


def test_a_task_runs_its_conditions_alone_and_draws_its_figures(task: Path) -> None:
    folder = task / "bob"
    command = ("lab", "run", task / "lesson", "-o", folder, "--task", "first")
    assert "first.predict is empty" in sentence(narrows(*command))
    sheet = folder / "answers.yaml"
    sheet.write_text(sheet.read_text().replace("first.predict:", "first.predict: twenty"))
    result = narrows(*command)
    assert result.exit_code == 0, (result.output, result.exception)
    cells = json.loads((folder / "buffers" / "campaign.json").read_text())["cells"]
    finished = [cell["scheme"] for cell in cells if cell["state"] == "finished"]
    assert finished == ["reno (droptail 1 bdp)"]
    figure = folder / "figures" / "first-1-window.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    shown = " ".join(result.stdout.split())
    assert "Look at" in shown
    assert "first.delay: How long is the queue?" in shown
    page = (folder / "report.html").read_text()
    assert "A sawtooth." in page
    assert "data:image/png;base64," in page
    # The rest is completed in the same folder, and a prediction is shown and not marked.
    assert narrows("lab", "run", task / "lesson", "-o", folder).exit_code == 0
    cells = json.loads((folder / "buffers" / "campaign.json").read_text())["cells"]
    assert {cell["state"] for cell in cells} == {"finished"}
    assert (folder / "figures" / "compared-rate.png").is_file()
    (task / "lesson" / "solution.yaml").write_text(
        "schema: narrows/lab-solution/1\nanswers: {first.delay: {from: NewReno @ small, column: delay}}\n"
    )
    (student,) = marks(folder)["students"]
    assert student["predictions"] == {"first": "twenty"}
    assert student["of"] == 1


def test_an_unknown_task_is_refused_with_those_there_are(task: Path) -> None:
    told = sentence(narrows("lab", "run", task / "lesson", "-o", task / "x", "--task", "frist"))
    assert 'has no task "frist"; did you mean "first"?' in told


def test_conditions_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    made = family(
        tmp_path / "lesson", LAB + TASKS.replace("runs: [NewReno @ small]", "runs: [NewReno @ smal]")
    )
    assert '"NewReno @ smal" names no condition' in sentence(narrows("lab", "show", made))


def test_a_copy_has_everything_but_the_right_answers(tmp_path: Path) -> None:
    made = family(tmp_path / "lesson", LAB + LESSON)
    (made / "solution.yaml").write_text(SOLUTION)
    copied = tmp_path / "copy"
    assert narrows("lab", "copy", made, copied).exit_code == 0
    assert sorted(path.name for path in copied.iterdir()) == [
        "buffers.yaml",
        "lab.yaml",
        "page.md",
        "table.csv",
    ]
    assert "exists already" in sentence(narrows("lab", "copy", made, copied))


def test_lessons_are_listed_in_their_order_with_numbers() -> None:
    document = json.loads(narrows("lab", "list", "--json").stdout)
    numbers = [entry["number"] for entry in document["labs"] if entry["kind"] == "lesson"]
    assert numbers == list(range(1, 12))
    shown = narrows("lab", "list").stdout
    assert "lesson 1" in shown


@pytest.mark.parametrize("name", [family.name for family in list_families() if family.origin == SHIPPED])
def test_every_shipped_laboratory_has_figures(name: str) -> None:
    from narrows.report.plotting import kind_of

    lab = store.load(name)
    tasks = lab.lesson.tasks if lab.lesson else ()
    drawings = [*lab.figures, *(drawing for task in tasks for drawing in task.figures)]
    assert drawings
    for drawing in drawings:
        assert kind_of(drawing.figure)
        assert drawing.caption
    for task in tasks:
        assert bool(task.conditions) == bool(task.figures) == bool(task.predict), task.name
    assert not (lab.folder / "solution.yaml").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("answers: {look.dely: 3}", 'question "look.dely" does not exist; did you mean "look.delay"?'),
        ("answers: {look.delay: [3]}", "must be a single value"),
        ("- 3", "answers are keys with values"),
    ],
)
def test_unreadable_answers_are_reported(done: tuple[Path, dict[str, float]], text: str, told: str) -> None:
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
        (("look.who:", "look.whom:"), 'question "look.whom" does not exist; did you mean "look.who"?'),
    ],
)
def test_an_invalid_solution_is_reported(
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


@pytest.mark.parametrize("name", [family.name for family in list_families() if family.origin == SHIPPED])
def test_shipped_lessons_have_solutions(name: str) -> None:
    lab = store.load(name)
    if lab.lesson is not None:
        assert read_solution(lab, None).keys() == lab.lesson.questions.keys()
        assert lab.lesson.minutes <= 60


def test_a_family_without_a_lesson_has_nothing_to_mark(tmp_path: Path) -> None:
    made = family(tmp_path / "plain")
    assert narrows("lab", "run", made, "--quick", "-o", tmp_path / "out").exit_code == 0
    assert "is not a lesson" in sentence(narrows("lab", "mark", tmp_path / "out"))
    lesson = tmp_path / "lesson"
    assert narrows("lab", "new", lesson, "--lesson").exit_code == 0
    assert narrows("lab", "run", lesson, "--quick", "-o", tmp_path / "other").exit_code == 0
    assert narrows("lab", "mark", tmp_path / "other").exit_code == 0
