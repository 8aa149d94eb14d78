"""Nonsensical traces are refused before anything runs, with file, line and key, by the real core."""

from __future__ import annotations

from pathlib import Path

import pytest

from narrows.errors import ScenarioError
from narrows.scenario import load

SCENARIO = """\
schema: narrows/scenario/1
question: Why?
duration: 1 s
schemes: [reno]
path:
  forward:
    - {rate: {trace: up.trace}, queue: {droptail: 60 kB}}
    - {delay: 1 ms}
"""


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("5\n3\n", "'up.trace': line 2: the time 3 ms comes before 5 ms of the line above"),
        ("", "'up.trace': the file is empty"),
        ("hello\n", "'up.trace': line 1: 'hello' is not a time"),
        ("time_s,rate_mbps\n0,1\n2,5\n1,7\n", "'up.trace': line 4"),
    ],
)
def test_refused_with_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "up.trace").write_text(content)
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO)
    with pytest.raises(ScenarioError) as error:
        load(file)
    (problem,) = error.value.problems
    assert str(problem).startswith(f"{file}:7:7: path.forward.0: trace: "), problem
    assert words in str(problem), problem


def test_a_good_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("1\n1\n7\n")
    (tmp_path / "s.yaml").write_text(SCENARIO)
    assert len(load(tmp_path / "s.yaml").scenario.files.contents) == 1
