"""A thousand campaigns with random changes: none is shown silently, and none passes `narrows check`.

What counts as shown: a number, a text or a table that differs from that of the campaign as it was, from a
command that ends with 0 and says nothing. A change that no command shows (of white space in run.json, say)
must still be found by `check`. By default fifty of them are tried; NARROWS_TAMPERED=1000 (`make nightly`)
tries all.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import narrows
from campaign_kit import narrows as call
from campaign_kit import simulate
from narrows.campaign import results
from narrows.campaign.checking import check_campaign
from narrows.campaign.json_files import read_json
from narrows.campaign.store import CampaignFolder
from narrows.errors import NarrowsError

SCENARIO = """\
schema: narrows/scenario/1
name: tampered
title: What was measured
question: Is every change found?
where: simulate
path: {forward: [{rate: {trace: link.csv}, queue: {droptail: 20 kB}}, {delay: 10 ms}, {loss: 1 %}]}
schemes: [reno, cubic]
flows: {count: 2}
duration: 300 ms
runs: 2
"""
COUNT = int(os.environ.get("NARROWS_TAMPERED", "50"))
SEED = 20261127
#: Parts of a campaign, weighted by their share of the changes.
_PARTS = {
    "results.json": 6, "campaign.json": 6, "results.csv": 2, "results.parquet": 2, "run.json": 3,
    "packets.parquet": 2, "states.parquet": 1, "queues.parquet": 1, "files": 1,
}  # fmt: skip


@dataclass
class World:
    """The original campaign, a similar second one, and the commands' output about the first."""

    campaign: Path
    other: Path
    shown: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    place = tmp_path_factory.mktemp("tampering")
    (place / "link.csv").write_text("time_s,rate_mbps\n0,4\n0.1,2\n0.3,4\n")
    simulate(place / "c", SCENARIO)
    simulate(place / "o", SCENARIO + "seed: 7\n")
    made = World(place / "c", place / "o")
    made.shown = {name: _plain(look(made.campaign), made.campaign) for name, look in LOOKS.items()}
    assert all(not word for _, word in made.shown.values()), made.shown
    return made


# -- output of the commands --------------------------------------------------------------------


def _plain(shown: tuple[Any, bool], folder: Path) -> tuple[Any, bool]:
    """The displayed content of a folder, independent of its location."""
    return repr(shown[0]).replace(str(folder.parent), ""), shown[1]


def _called(*words: object) -> tuple[str, bool]:
    """The output of a command, and whether it reports a problem."""
    done = call(*words)
    assert done.exception is None or isinstance(done.exception, NarrowsError | SystemExit), done.exception
    # A comparison reports its omissions in their place.
    word = bool(done.stderr.strip()) or "not those that the run left" in done.stdout
    return done.stdout, done.exit_code != 0 or word


def _loaded(folder: Path) -> tuple[Any, bool]:
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            campaign = narrows.load(folder)
            run = campaign.run("cubic-r2")
            found = [campaign.question, campaign.scenario, campaign.verdicts, campaign.results.to_pylist()]
            found += [campaign.summary.to_pylist(), run.packets().to_pylist(), run.settings]
            return repr(found), bool(said)
    except NarrowsError:
        return None, True


SUMS = "select cell, sum(size_bytes), sum(arrived_ns) from packets group by all order by all"
#: Everything that shows a campaign.
LOOKS: dict[str, Callable[[Path], tuple[Any, bool]]] = {
    "show": lambda folder: _called("show", folder, "--json"),
    "compare": lambda folder: _called("compare", folder, "--json"),
    "query": lambda folder: _called("query", "select * from results order by all", folder, "--json"),
    "packets": lambda folder: _called("query", SUMS, folder),
    "load": _loaded,
}


def _drawn(folder: Path) -> tuple[Any, bool]:
    target = folder.parent / "figure.svg"
    done = _called("plot", folder, "--figure", "throughput", "-o", target)
    return (target.with_suffix(".csv").read_text() if not done[1] else None), done[1]


def _reported(folder: Path) -> tuple[Any, bool]:
    done = _called("report", folder, "--report", "none")
    return (done[0], [(folder / f"results.{kind}").read_bytes() for kind in ("json", "csv")]), done[1]


# -- changes ---------------------------------------------------------------------------------------


def _flip(path: Path, chance: random.Random) -> str:
    content = bytearray(path.read_bytes())
    at = chance.randrange(len(content))
    content[at] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"byte {at} flipped"


def _another_number(path: Path, chance: random.Random) -> str:
    text = path.read_bytes()
    found = [match for match in re.finditer(rb"(?<![\w.])\d+(\.\d+)?", text) if match[0] != b"1.1"]
    if path.suffix == ".parquet" or not found:
        return _flip(path, chance)
    one = chance.choice(found)
    new = str(float(one[0]) * chance.choice([3, 10, 0.5]) + 1).encode()
    path.write_bytes(text[: one.start()] + new + text[one.end() :])
    return f"{one[0]!r} at {one.start()} became {new!r}"


def _another_member(path: Path, chance: random.Random) -> str:
    """Removes a member of a document or changes its value, without reformatting the text."""
    if path.suffix != ".json":
        return _flip(path, chance)
    document = json.loads(path.read_text())
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                visit(value[key])

    visit(document)
    where, key = chance.choice(places)
    if chance.random() < 0.4:
        del where[key]
        told = f"{key} removed"
    else:
        where[key] = chance.choice([None, "changed", 0, 1e9, [], {}])
        told = f"{key} became {where[key]!r}"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return told


def _cut(path: Path, chance: random.Random) -> str:
    content = path.read_bytes()
    left = chance.randrange(len(content))
    path.write_bytes(content[:left])
    return f"cut to {left} bytes"


def _longer(path: Path, chance: random.Random) -> str:
    with path.open("ab") as stream:
        stream.write(chance.choice([b"\n", b" ", b"x", b"\0" * 8]))
    return "made longer"


_OF_FILES = [_flip, _flip, _another_number, _another_number, _another_member, _another_member, _cut, _longer]


def _differ(one: Path, two: Path) -> bool:
    return two.is_file() and one.read_bytes() != two.read_bytes()


def tamper(folder: Path, other: Path, chance: random.Random) -> str:
    """Changes one thing in a campaign; returns a description."""
    part = chance.choices([*_PARTS], [*_PARTS.values()])[0]
    path = chance.choice(sorted((folder / part).iterdir() if part == "files" else folder.rglob(part)))
    inner = path.relative_to(folder)
    match chance.choices(["content", "removed", "exchanged", "swapped", "added"], [14, 2, 3, 1, 1])[0]:
        case "removed":
            path.unlink()
            return f"{inner} removed"
        case "exchanged" if _differ(path, other / inner):
            shutil.copyfile(other / inner, path)
            return f"{inner} of another campaign"
        case "swapped":
            cells = sorted((folder / "cells").iterdir())
            one, two = chance.sample(cells, 2)
            one.rename(folder / "x")
            two.rename(one)
            (folder / "x").rename(two)
            return f"{one.name} and {two.name} swapped"
        case "added":
            new = chance.choice(["cells/cubic-r1/more.parquet", "cells/bbr1-r1/run.json", "files/0-more"])
            (folder / new).parent.mkdir(exist_ok=True)
            shutil.copyfile(next(folder.rglob("run.json")), folder / new)
            return f"{new} added"
    before = path.read_bytes()
    while True:
        words = chance.choice(_OF_FILES)(path, chance)
        # A random value may equal the old one.
        if path.read_bytes() != before:
            return f"{inner}: {words}"


def _silent(folder: Path, known: World, looks: dict[str, Callable[[Path], tuple[Any, bool]]]) -> list[str]:
    """The commands whose output changes without a warning."""
    found = []
    for name, look in looks.items():
        shown, word = _plain(look(folder), folder)
        if not word and shown != known.shown[name][0]:
            found.append(name)
    return found


def _passes(folder: Path) -> bool:
    return call("check", folder).exit_code == 0


@pytest.mark.timeout(300 + COUNT)
def test_no_change_is_shown_without_a_word_or_passes_check(world: World, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    missed = []
    for number in range(COUNT):
        # Under the original name, because commands print it.
        folder = tmp_path / str(number) / "c"
        shutil.copytree(world.campaign, folder)
        told = tamper(folder, world.other, chance)
        known = World(world.campaign, world.other, {**world.shown})
        looks = dict(LOOKS)
        # Drawing and reporting take longest.
        if number % 10 == 0:
            looks |= {"plot": _drawn, "report": _reported}
            for name in ("plot", "report"):
                known.shown[name] = _of_the_first(world, name, tmp_path)
        passed = _passes(folder)
        if silent := _silent(folder, known, looks):
            missed.append(f"{number}: {told}: shown by {', '.join(silent)}")
        if passed:
            missed.append(f"{number}: {told}: passes check")
        shutil.rmtree(folder.parent)
    assert not missed, "\n".join(missed)


def _of_the_first(world: World, name: str, place: Path) -> Any:
    if name not in world.shown:
        folder = place / "first" / "c"
        shutil.copytree(world.campaign, folder, dirs_exist_ok=True)
        world.shown[name] = _plain({"plot": _drawn, "report": _reported}[name](folder), folder)
    return world.shown[name]


# -- single kinds ----------------------------------------------------------------------------------


@pytest.fixture
def copy(world: World, tmp_path: Path) -> Path:
    return shutil.copytree(world.campaign, tmp_path / "c")


def _reseal(folder: Path, change: Callable[[dict[str, Any]], object], name: str = "results.json") -> None:
    """A change by an attacker who computes the digest again."""
    from campaign_kit import edited

    with edited(folder / name) as document:
        change(document)


def _failing(folder: Path) -> dict[str, str]:
    return {check.name: check.detail for check in check_campaign(CampaignFolder.read(folder)) if not check.ok}


def test_numbers_are_measured_again_from_the_records(copy: Path) -> None:
    def triple(document: dict[str, Any]) -> None:
        for part in (*document["rows"], *document["summary"]):
            if isinstance(part["metrics"]["throughput_bps"], float):
                part["metrics"]["throughput_bps"] *= 3

    _reseal(copy, triple)
    failing = _failing(copy)
    assert "throughput_bps of reno-r1, flow 1 is" in failing["results"], failing
    assert f"narrows report {copy} makes it again" in failing["results"]
    # The tables were made from the genuine results.
    assert "results.csv" in failing["tables"]
    assert call("check", copy).exit_code == 1


def test_a_resolved_scenario_of_another_path_is_found(copy: Path) -> None:
    def tenfold(document: dict[str, Any]) -> None:
        resolved = document["scenario"]["resolved"]
        resolved["network"]["forward"][1]["delay"] *= 10

    _reseal(copy, tenfold, "campaign.json")
    told = _failing(copy)["scenario"]
    assert "its resolved scenario is not the one of its hash" in told and "4 more" in told


@pytest.mark.parametrize("name", ["results.json", "results.csv", "results.parquet"])
def test_lost_or_changed_results_are_computed_again(copy: Path, world: World, name: str) -> None:
    good = (copy / name).read_bytes()
    for bad in (None, b"", good[: len(good) // 2], good.replace(b"reno", b"vegas")):
        (copy / name).unlink()
        if bad is not None:
            (copy / name).write_bytes(bad)
        assert call("check", copy).exit_code == 1
        assert call("report", copy, "--report", "none").exit_code == 0
        assert (copy / name).read_bytes() == good
        assert call("check", copy).exit_code == 0


def test_campaigns_without_digests_are_read_and_check_says_so(copy: Path, world: World) -> None:
    """As written by earlier versions."""
    for name in ("campaign.json", "results.json"):
        document = json.loads((copy / name).read_text())
        del document["digest"]
        document["format"] = document["format"].removesuffix(".1")
        (copy / name).write_text(json.dumps(document))
    assert not _silent(copy, world, dict(LOOKS))
    checks = {check.name: check for check in check_campaign(CampaignFolder.read(copy))}
    assert checks["campaign"].skipped and "noted no digest" in checks["campaign"].detail
    assert all(check.ok for check in checks.values())
    # No check relies on their numbers.
    text = (copy / "results.json").read_text()
    (copy / "results.json").write_text(text.replace('"throughput_bps": ', '"throughput_bps": 1', 1))
    assert "results" in _failing(copy)


def test_digests_can_be_computed_by_hand(copy: Path) -> None:
    import subprocess

    for name in ("campaign.json", "results.json"):
        done = subprocess.run(
            f"head -n -2 {copy / name} | sha256sum", shell=True, capture_output=True, text=True, check=True
        )
        assert json.loads((copy / name).read_text())["digest"] == f"sha256:{done.stdout.split()[0]}"


def test_merging_takes_no_changed_records_for_true_ones(world: World, copy: Path, tmp_path: Path) -> None:
    run = read_json(copy / "cells" / "reno-r1" / "run.json", "narrows/run/1")
    (copy / "cells" / "reno-r1" / "run.json").write_text(json.dumps(run))
    done = call("merge", copy, world.other, "-o", tmp_path / "m")
    assert isinstance(done.exception, NarrowsError) and "not those that the run left" in str(done.exception)


def test_results_of_a_killed_session_are_measured_and_never_refused(world: World, copy: Path) -> None:
    """Between the end of a cell and the writing of results the files do not match, and nothing is wrong."""
    _reseal(copy, _without_last)
    folder = CampaignFolder.read(copy)
    assert results.current(folder) is None
    assert results.read(copy) == results.read(world.campaign)


def _without_last(document: dict[str, Any]) -> None:
    (*_, last) = document["digests"]
    del document["digests"][last]
    document["rows"] = [row for row in document["rows"] if row["cell"] != last]
