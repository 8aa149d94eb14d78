"""Campaigns that the program of commit 99cbaacb made are read by today's program.

tests/old/99cbaacb.tar.xz was written by that commit's own agent and Python:

    harbour/        a campaign of two schemes and two runs, with a note and a tag
    killed/         a campaign whose process was killed, with its leftovers; killed.yaml is its scenario
    space/          a sweep
    web/site.json   the list of pages of a site of them
    told/           the answers of that program: `show --json`, `compare --json`, `sweep show --json`
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import narrows

OLD = Path(__file__).parents[1] / "old" / "99cbaacb.tar.xz"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def answer(*words: object) -> Any:
    done = narrows(*words, "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def told(old: Path, name: str) -> Any:
    return json.loads((old / "told" / name).read_text())


def test_an_old_campaign_shows_the_numbers_that_its_program_showed(old: Path) -> None:
    then, now = told(old, "show.json"), answer("show", old / "harbour")
    assert [row["cell"] for row in now["rows"]] == [row["cell"] for row in then["rows"]]
    compared = 0
    for before, after in zip(then["rows"], now["rows"], strict=True):
        for name in before["metrics"].keys() & after["metrics"].keys():
            assert after["metrics"][name] == before["metrics"][name], name
            compared += 1
    assert compared > 500
    assert [item["outcome"] for item in now["expect"]] == [item["outcome"] for item in then["expect"]]


def test_an_old_campaign_is_compared_as_its_program_did(old: Path) -> None:
    then, now = told(old, "compare.json"), answer("compare", old / "harbour", "--against", "cubic")
    for before, after in zip(then["rows"], now["rows"], strict=True):
        for name, metric in before["metrics"].items():
            assert after["metrics"][name]["base"] == metric["base"], name
            assert after["metrics"][name]["other"] == metric["other"], name


def test_an_old_campaign_passes_all_checks_although_reasons_have_other_words(old: Path) -> None:
    done = narrows("check", old / "harbour", "--json")
    assert done.exit_code == 0, done.stdout
    again = json.loads((old / "harbour" / "results.json").read_text())
    again["rows"][0]["metrics"]["throughput_bps"] += 1
    (old / "harbour" / "results.json").write_text(json.dumps(again))
    assert "throughput_bps" in narrows("check", old / "harbour").output


def test_an_old_campaign_is_listed_with_its_notes(old: Path) -> None:
    listed = {Path(line["path"]).name: line for line in answer("ls", old)["campaigns"]}
    assert set(listed) == {"harbour", "killed", "space"}
    harbour = listed["harbour"]
    assert (harbour["verdicts"], harbour["tags"], harbour["notes"][0]["text"]) == (
        "4 ok",
        ["old"],
        "made at 99cbaacb",
    )
    assert (listed["killed"]["finished"], listed["killed"]["cells"]) == (2, 40)


def test_an_old_campaign_gets_a_report(old: Path) -> None:
    assert narrows("report", old / "harbour").exit_code == 0
    page = (old / "harbour" / "report.html").read_text()
    assert "A narrow harbour" in page and "cubic-r1" in page


def test_an_old_sweep_is_evaluated_as_its_program_did(old: Path) -> None:
    then, now = told(old, "effects.json"), answer("sweep", "show", old / "space")
    assert [(line["main"], line["means"]) for line in now] == [(line["main"], line["means"]) for line in then]


def test_pages_of_an_old_site_keep_their_addresses(old: Path) -> None:
    pages = json.loads((old / "web" / "site.json").read_text())
    made = answer("site", old / "harbour", old / "space", "-o", old / "web")
    assert [page["id"] for page in made["campaigns"]] == list(pages["campaigns"])
    assert made["problems"] == []


def test_an_old_campaign_that_was_killed_is_completed(old: Path) -> None:
    done = narrows("run", old / "killed.yaml", "-o", old / "killed", "--no-report")
    assert done.exit_code == 0, (done.output, done.exception)
    assert answer("ls", old / "killed")["campaigns"][0]["verdicts"] == "40 ok"
    assert not list((old / "killed" / "cells").glob(".*"))
