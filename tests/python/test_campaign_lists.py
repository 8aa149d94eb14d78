"""`narrows ls`, `note`, `tag` and `merge`; a damaged campaign hides no other one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from campaign_kit import LOSSY, SCENARIO, edited, narrows, one_and_two, sentence, simulate
from narrows.campaign import gathering, notes, results
from narrows.campaign.store import CampaignFolder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_and_two(tmp_path_factory.mktemp("lists") / "results")


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "results")
    return tmp_path / "results"


# -- ls ------------------------------------------------------------------------------------------


def test_a_folder_is_listed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.add_tags(place / "two", ["paper", "good"])
    notes.add_note(place / "two", "before the update")
    monkeypatch.chdir(place.parent)
    shown = narrows("ls")
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.output.splitlines()]
    date = json.loads((place / "one" / "campaign.json").read_text())["created_at"][:10]
    assert lines == [
        ["campaign", "made", "plane", "runs", "verdicts"],
        ["results/one", date, "simulate", "4", "4", "ok"],
        ["results/two", date, "simulate", "4", "4", "ok"],
        ["tags:", "paper,", "good"],
        ["before", "the", "update"],
    ]
    document = json.loads(narrows("ls", "--json").output)
    assert [one["tags"] for one in document["campaigns"]] == [[], ["paper", "good"]]
    assert narrows("ls", "results", "--tag", "paper").output.count("simulate") == 1
    assert "no campaign has the tag bad" in narrows("ls", "results", "--tag", "bad").output
    assert "does not exist" in sentence(narrows("ls", "nix"))
    (place.parent / "empty").mkdir()
    assert narrows("ls", "empty").output == "no campaigns here; narrows run makes one\n"


def cut_packets(folder: Path) -> None:
    file = folder / "cells" / "cubic-r2" / "packets.parquet"
    file.write_bytes(file.read_bytes()[:-9])


def newer_run(folder: Path) -> None:
    file = folder / "cells" / "cubic-r2" / "run.json"
    file.write_text(file.read_text().replace('"narrows/run/1"', '"narrows/run/2"', 1))


def newer_campaign(folder: Path) -> None:
    file = folder / "campaign.json"
    file.write_text(file.read_text().replace("narrows/campaign/1", "narrows/campaign/9"))


def half_written(folder: Path) -> None:
    file = folder / "campaign.json"
    file.write_text(file.read_text()[:-100])


def missing_cell(folder: Path) -> None:
    shutil.rmtree(folder / "cells" / "cubic-r2")
    shutil.rmtree(folder / "cells" / "cubic-r1")


def empty_packets(folder: Path) -> None:
    (folder / "cells" / "cubic-r2" / "packets.parquet").write_bytes(b"")


#: After each change to a campaign, the expected message and whether it is still readable.
DAMAGES: list[tuple[Callable[[Path], None], str, bool]] = [
    (
        cut_packets,
        "cells/cubic-r2/packets.parquet is damaged or cut off: it does not end as a Parquet file",
        True,
    ),
    (empty_packets, "cells/cubic-r2/packets.parquet is cut off", True),
    (
        newer_run,
        "is in the format narrows/run/2, this version of narrows reads narrows/run/1; update narrows",
        True,
    ),
    (missing_cell, "is missing although the run is finished; .*, and 1 more run has such a problem", True),
    (
        newer_campaign,
        "narrows/campaign/9, this version of narrows reads narrows/campaign/1; update narrows",
        False,
    ),
    (half_written, "campaign.json: is damaged: ", False),
]


@pytest.mark.parametrize(("damage", "words", "readable"), DAMAGES)
def test_a_damaged_campaign_costs_one_sentence(
    place: Path, damage: Callable[[Path], None], words: str, readable: bool
) -> None:
    damage(place / "one")
    listed = narrows("ls", place)
    assert listed.exit_code == (0 if readable else 3)
    said = listed.stderr.splitlines()
    assert len(said) == 1 and said[0].startswith(str(place / "one")) and re.search(words, said[0]), said
    assert str(place / "two") in listed.stdout
    document = json.loads(narrows("ls", place, "--json").stdout)
    assert len(document["campaigns"]) == 2
    shown = narrows("show", place / "one", place / "two")
    assert shown.exit_code == (0 if readable else 3)
    assert [line for line in shown.stderr.splitlines() if re.search(words, line)] == shown.stderr.splitlines()
    assert "reno" in shown.stdout
    alone = narrows("show", place / "one")
    assert alone.exit_code == 0 if readable else re.search(words, sentence(alone))


def test_records_that_are_damaged_inside_are_reported_when_measured(place: Path) -> None:
    file = place / "one" / "cells" / "cubic-r2" / "packets.parquet"
    content = bytearray(file.read_bytes())
    content[100:1000] = bytes(900)
    file.write_bytes(content)
    for name in ("results.json", "results.csv", "results.parquet"):
        (place / "one" / name).unlink()
    shown = narrows("show", place / "one", place / "two")
    assert shown.exit_code == 3 and "reno" in shown.stdout
    (said,) = shown.stderr.splitlines()
    assert str(file) in said or "cubic-r2" in said
    assert narrows("check", place / "two").exit_code == 0


def test_a_campaign_that_is_being_written_is_reported(place: Path) -> None:
    with edited(place / "one" / "campaign.json") as document:
        document["ended_at"] = document["sessions"][-1]["ended_at"] = None
        document["cells"][0].update(state="pending", verdict=None)
    assert "being written" not in narrows("ls", place).output
    lock = os.open(place / "one", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        listed = narrows("ls", place)
        assert listed.exit_code == 0
        assert listed.stderr == f"{place / 'one'}: is being written at the moment; 3 of 4 runs are finished\n"
        assert "3 of 4" in listed.stdout and "being written" in listed.stdout
        shown = narrows("show", place / "one", place / "two")
        assert "being written at the moment" in shown.stderr and shown.exit_code == 0
        refused = narrows("merge", place / "one", place / "two", "-o", place / "three")
        assert "merge it when it is done" in sentence(refused)
    finally:
        os.close(lock)


def test_links_in_a_folder_are_not_followed(place: Path) -> None:
    (place / "loop").symlink_to(place)
    assert len(gathering.gather([place])) == 2


# -- notes and tags ------------------------------------------------------------------------------


def test_notes(place: Path) -> None:
    folder = place / "one"
    before = (folder / "campaign.json").read_bytes()
    assert narrows("note", folder).output == "there are no notes\n"
    assert "1. " in narrows("note", folder, "first").output
    assert narrows("note", folder, "second").output.splitlines()[1].endswith("  second")
    assert narrows("note", folder, "--remove", "1").output.endswith("  second\n")
    document = json.loads(narrows("note", folder, "--json").output)
    assert [one["text"] for one in document["notes"]] == ["second"]
    assert document == json.loads((folder / "notes.json").read_text())
    assert "there are notes 1 to 1" in sentence(narrows("note", folder, "--remove", "2"))
    assert "a note is some text" in sentence(narrows("note", folder, " "))
    assert "a note is some text" in sentence(narrows("note", folder, "a\x1b[2J"))
    assert "not both" in sentence(narrows("note", folder, "a", "--remove", "1"))
    assert "this is not a folder of results" in sentence(narrows("note", place, "a"))
    assert (folder / "campaign.json").read_bytes() == before
    assert narrows("check", folder).exit_code == 0


def test_tags_are_added_listed_and_removed(place: Path) -> None:
    folder = place / "one"
    assert narrows("tag", folder).output == "there are no tags\n"
    assert narrows("tag", folder, "paper", "good", "paper").output == "paper, good\n"
    assert narrows("tag", folder, "good", "--remove").output == "paper\n"
    assert json.loads(narrows("tag", folder, "--json").output)["tags"] == ["paper"]
    assert 'has no tag "good"; it has paper' in sentence(narrows("tag", folder, "good", "--remove"))
    assert '"a b" is not a tag' in sentence(narrows("tag", folder, "a b"))
    assert "name the tags" in sentence(narrows("tag", folder, "--remove"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is damaged"),
        ('{"format": "narrows/notes/2"}', "update narrows"),
        ('{"format": "narrows/notes/1", "tags": [1], "notes": []}', "is damaged"),
    ],
)
def test_damaged_notes_hide_nothing(place: Path, content: str, words: str) -> None:
    (place / "one" / "notes.json").write_text(content)
    listed = narrows("ls", place)
    assert listed.exit_code == 0 and listed.stdout.count("4 ok") == 2
    (said,) = listed.stderr.splitlines()
    assert words in said
    assert words in sentence(narrows("note", place / "one", "a"))


# -- merge ---------------------------------------------------------------------------------------


def merged(place: Path, *names: str, output: str = "both") -> dict[str, Any]:
    done = narrows("merge", *(place / name for name in names), "-o", place / output)
    assert done.exit_code == 0, (done.output, done.exception)
    assert narrows("check", place / output).exit_code == 0
    assert not list(place.glob(".*"))
    document: dict[str, Any] = json.loads((place / output / "campaign.json").read_text())
    return document


def numbers(folder: Path) -> set[tuple[str, int, int]]:
    return {(row.scheme, row.run, row.seed or 0) for row in results.read(folder).rows}


def test_more_runs_and_schemes_of_one_seed(tmp_path: Path) -> None:
    simulate(tmp_path / "a", LOSSY, "--schemes", "reno", "--runs", "2")
    simulate(tmp_path / "b", LOSSY, "--schemes", "cubic,reno", "--runs", "3")
    document = merged(tmp_path, "a", "b")
    whole = simulate(tmp_path / "whole", LOSSY, "--schemes", "reno,cubic", "--runs", "3")
    # Equal runs appear once, and the campaign equals the one that a single command makes.
    assert {cell["id"] for cell in document["cells"]} == {
        f"{scheme}-r{run}" for scheme in ("reno", "cubic") for run in (1, 2, 3)
    }
    assert document["hash"] == json.loads((whole / "campaign.json").read_text())["hash"]
    read, made = results.read(tmp_path / "both"), results.read(whole)
    assert read.rows == made.rows and read.summary == made.summary
    assert [one["folder"] for one in document["merged"]] == ["a", "b"]
    done = narrows(
        "run",
        tmp_path / "whole.yaml",
        "--schemes",
        "reno,cubic",
        "--runs",
        "4",
        "-o",
        tmp_path / "both",
        "--no-report",
    )
    assert "holds another campaign" in sentence(done)
    done = narrows(
        "run",
        tmp_path / "whole.yaml",
        "--schemes",
        "reno,cubic",
        "--runs",
        "3",
        "-o",
        tmp_path / "both",
        "--no-report",
    )
    assert done.exit_code == 0 and "nothing is left to run" in done.stderr


def test_runs_of_other_seeds_get_separate_numbers(tmp_path: Path) -> None:
    simulate(tmp_path / "a", LOSSY)
    simulate(tmp_path / "b", LOSSY, "--seed", "2")
    before = {row for name in ("a", "b") for row in numbers(tmp_path / name)}
    document = merged(tmp_path, "a", "b")
    found = numbers(tmp_path / "both")
    assert {(scheme, seed) for scheme, _, seed in found} == {(scheme, seed) for scheme, _, seed in before}
    seeds = {run: {seed for _, other, seed in found if other == run} for run in (1, 2, 3, 4)}
    # Run k of every scheme shares its seed, as everywhere.
    assert all(len(one) == 1 for one in seeds.values()) and len(set.union(*seeds.values())) == 4
    entry = next(cell for cell in document["cells"] if cell["id"] == "reno-r3")
    assert entry["origin"] == {"campaign": "b", "cell": "reno-r1"}
    run = json.loads((tmp_path / "both" / "cells" / "reno-r3" / "run.json").read_text())
    assert (run["cell"]["id"], run["cell"]["run"], run["cell"]["seed"]) == ("reno-r3", 3, entry["seed"])
    assert document["scenario"]["resolved"]["runs"] == 4
    old = {row.seed: row.metrics for row in results.read(tmp_path / "b").rows if row.flow == 1}
    new = {row.seed: row.metrics for row in results.read(tmp_path / "both").rows if row.flow == 1}
    assert all(new[seed] == metrics for seed, metrics in old.items() if seed in new)
    assert narrows("report", tmp_path / "both", "--no-pdf").exit_code == 0
    # Merged campaigns can be merged again.
    simulate(tmp_path / "c", LOSSY, "--seed", "3", "--runs", "1")
    again = merged(tmp_path, "both", "c", output="all")
    assert len(again["cells"]) == 10


def test_interrupted_campaigns_complete_each_other(tmp_path: Path) -> None:
    for name, lost in (("a", "reno-r1"), ("b", "cubic-r2")):
        folder = simulate(tmp_path / name, LOSSY)
        shutil.rmtree(folder / "cells" / lost)
        opened = CampaignFolder.read(folder)
        opened.change(lost, state="pending", verdict=None, digest=None)
        opened.save()
    document = merged(tmp_path, "a", "b")
    assert [cell["state"] for cell in document["cells"]] == ["finished"] * 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("duration: 1 s", "duration: 900 ms"), r"are different experiments \(duration differs\)"),
        (("{delay: 10 ms}", "{delay: 11 ms}"), r"are different experiments \(network and base_rtt differ\)"),
        (("count: 2", "count: 1"), "reno is set up differently in them"),
    ],
)
def test_different_experiments_are_not_merged(
    place: Path, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    simulate(tmp_path / "other", SCENARIO.replace(*change))
    refused = narrows("merge", place / "one", tmp_path / "other", "-o", tmp_path / "both")
    assert re.search(words, sentence(refused)) and not (tmp_path / "both").exists()


def test_other_refusals_of_merge(place: Path, tmp_path: Path) -> None:
    assert "two campaigns or more" in sentence(narrows("merge", place / "one", "-o", tmp_path / "x"))
    assert "already exists" in sentence(narrows("merge", place / "one", place / "two", "-o", place))
    cut_packets(place / "one")
    assert "damaged or cut off" in sentence(
        narrows("merge", place / "one", place / "two", "-o", tmp_path / "x")
    )
    assert not (tmp_path / "x").exists()
