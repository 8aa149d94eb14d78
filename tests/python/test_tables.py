"""Tables of `show`, `run` and `check` fit the terminal, truncate nothing, and show verdicts beside
numbers."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

import forked_commands
from compare_kit import Values, campaign, on_terminal

LONG = "pcc-allegro latency_coefficient=900 and more of the kind=0.125, then two of linux:cubic"


def made(place: int, spread: float = 0.01) -> list[Values]:
    """Ten runs of one flow."""
    return [
        {
            "throughput_bps": 11.123e6 * (1 + spread * ((3 * number + place) % 10)),
            "delay_p95_ns": 61.04e6 + number * 1e5,
            "queueing_delay_p95_ns": 41.04e6 + number * 1e5,
            "loss_ratio": 0.01234 + number * 1e-4,
            "utilization_ratio": 0.9434,
            "jain_index": None,
        }
        for number in range(10)
    ]


def campaigns(tmp_path: Path, count: int) -> tuple[Path, Path, list[str]]:
    names = [LONG, *(f"scheme-{number}" for number in range(count - 1))]
    verdicts = {("scheme-0", 2): "degraded", (LONG, 3): "invalid"}
    first = campaign(tmp_path / "a", {name: made(place) for place, name in enumerate(names)})
    second = campaign(
        tmp_path / "b", {name: made(place + 1) for place, name in enumerate(names)}, verdicts=verdicts
    )
    return first, second, names


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("count", [2, 17, 24])
def test_no_number_and_no_name_is_cut(tmp_path: Path, columns: int, count: int) -> None:
    first, second, names = campaigns(tmp_path, count)
    for folders in ((second,), (first, second)):
        text = on_terminal("show", *folders, columns=columns)
        assert "…" not in text
        assert "..." not in text
        assert "10, 1 degraded" in text
        assert "9 of 10, 1 invalid" in text
        # A name that is longer than the terminal is wrapped between its words.
        unfolded = " ".join(text.split())
        for name in names:
            assert name in unfolded
        for line in text.splitlines():
            # A single word that is longer than the terminal, such as a folder's name, stays whole.
            assert len(line) <= columns or " " not in line, line
        assert not re.search(r"\d\.(?!\d)(?=[^\s])", text)
    assert "difference" in text


def test_the_spread_stands_beside_the_median_where_there_is_room(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"reno": made(0), "cubic": made(1)[:3], "bbr1": made(0, 0)[:3]})
    wide = on_terminal("show", folder, columns=200)
    assert "[" in row(wide, "reno")
    assert "11.35 (11.12 to 11.46)" not in row(wide, "reno")
    assert re.search(r"11\.\d\d \(11\.\d\d to 1\d\.\d\d\)", row(wide, "cubic"))
    # Sentences are wrapped between words, at any terminal width.
    told = " ".join(wide.split())
    assert "95 % interval of the median" in told and "smallest to largest run" in told
    assert "No room for the spread" not in told
    narrow = on_terminal("show", folder, columns=80)
    assert "11.12" in row(narrow, "bbr1")
    # With invalid runs, their counts need the room.
    tight = on_terminal("show", campaigns(tmp_path / "many", 2)[1], columns=60)
    assert "95 % interval" not in tight and "No room for the spread of the runs" in tight
    # The fairness of a single flow has no meaning.
    assert "Jain" not in narrow


def row(text: str, scheme: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(scheme))


def test_campaigns_stand_below_each_other_with_their_difference(tmp_path: Path) -> None:
    first = campaign(tmp_path / "a", {"reno": made(0)})
    slower: list[Values] = [
        {**one, "throughput_bps": 0.9 * (one["throughput_bps"] or 0), "loss_ratio": 0.0} for one in made(0)
    ]
    second = campaign(tmp_path / "b", {"reno": slower, "cubic": made(0)})
    lines = on_terminal("show", first, second, columns=100).splitlines()
    change = next(line for line in lines if "difference" in line)
    assert change.split()[1:3] == ["-10.0", "%"]
    assert "-100 %" in change
    assert any("cubic (a) is not part of it" in line for line in lines)
    assert sum("difference" in line for line in lines) == 1


def test_of_many_runs_only_those_are_listed_that_are_not_ok(tmp_path: Path) -> None:
    _, folder, _ = campaigns(tmp_path, 2)
    text = on_terminal("show", folder, columns=80)
    assert "18 of 20 runs are ok; the others:" in text
    good = campaign(tmp_path / "good", {"reno": made(0), "cubic": made(1)})
    assert "All 20 runs are ok." in on_terminal("show", good, columns=80)


def test_check_and_run_fit_too(tmp_path: Path) -> None:
    command = ["run", "first-look", "--where", "simulate", "--no-report", "--time", "5 s", "--runs", "2"]
    command += ["--schemes", "reno,cubic,vegas", "-o", "out"]
    for place, columns in enumerate((80, 100)):
        command[-1] = f"out-{place}"
        text = on_terminal(*command, columns=columns, cwd=tmp_path)
        table = text[text.index("\nscheme  ") + 1 :]
        assert "2 ok" in row(table, "reno")
        assert "…" not in table and all(len(line) <= columns for line in table.splitlines())
        text = on_terminal("check", f"out-{place}", columns=columns, cwd=tmp_path)
        assert re.search(r"checks on 6 records and their campaign: \d+ of \d+ hold", text)
        assert "All 6 runs are ok." in text
        assert "FAIL" not in text and all(len(line) <= columns for line in text.splitlines())
    file = tmp_path / "out-0" / "cells" / "reno-r1" / "run.json"
    document = json.loads(file.read_text())
    document["elements"][0]["in_packets"] += 1
    document["verdict"] = "degraded"
    document["reasons"] = [{"code": "cpu", "severity": "degraded", "text": "The machine was busy."}]
    file.write_text(json.dumps(document))
    done = forked_commands.run_in(os.environ, ["check", "out-0"], tmp_path)
    assert done.returncode == 1
    # A failed check is named with its cell; passed ones are only counted.
    assert "reno-r1" in done.stdout and "digest" in done.stdout
    assert "reno-r2" not in done.stdout
    # So is a run that is not ok, whose record may be sound.
    assert (
        "verdicts that the records hold:\n5 of 6 runs are ok; the others:" in done.stdout
        and "The machine was busy." in done.stdout
    )
    assert re.search(r"\d+ of \d+ hold, .*\d fail", done.stdout)


@pytest.mark.parametrize("command", ["show", "check", "ls"])
def test_a_scenario_is_not_a_campaign(tmp_path: Path, command: str) -> None:
    (tmp_path / "mine.yaml").write_text("name: mine\n")
    done = forked_commands.run_in(os.environ, [command, "mine.yaml"], tmp_path)
    assert done.returncode == 3
    assert "mine.yaml: is a file" in done.stderr and "narrows run mine.yaml --dry-run" in done.stderr
