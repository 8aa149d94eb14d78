"""The command `narrows identify`."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from campaign_kit import narrows, sentence, simulate
from narrows.documents.reference import schema

#: A path with losses on which Reno has several decreases in a few seconds.
PATH = """\
schema: narrows/scenario/1
name: small
path:
  forward: [{rate: 6 Mbit/s, queue: {droptail: 20 packets}}, {delay: 10 ms}]
schemes: [reno, "{scheme: cubic, beta: 0.8}"]
duration: 8 s
runs: 4
""".replace('"{scheme: cubic, beta: 0.8}"', "{scheme: cubic, beta: 0.8}")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("identify") / "small", PATH)


def test_a_campaign_has_a_card_for_each_scheme_and_its_document_follows_the_schema(campaign: Path) -> None:
    done = narrows("identify", campaign, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema("identify"))
    assert [card["where"] for card in document["cards"]] == ["simulate", "simulate"]
    lines = {line["name"]: line for line in document["cards"][0]["lines"] if line["probe"] == "small"}
    assert lines["decrease"]["low"] <= 0.5 <= lines["decrease"]["high"]
    assert lines["decrease"]["runs"] == 4 and lines["decrease"]["spans"]
    # A feature that needs a probe's path has no line for another scenario.
    assert "share" not in lines


def test_a_cell_has_a_card_with_one_run(campaign: Path) -> None:
    done = narrows("identify", campaign / "cells" / "reno-r2", "--json")
    assert done.exit_code == 0, done.output
    (card,) = json.loads(done.stdout)["cards"]
    line = next(line for line in card["lines"] if (line["name"], line["probe"]) == ("decrease", "small"))
    assert line["runs"] == 1 and line["cell"] == "reno-r2"


def test_no_line_of_the_table_is_wider_than_the_terminal(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = narrows("identify", campaign)
    assert done.exit_code == 0, done.output
    assert "window after a loss [share]" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines() if str(campaign) not in line) <= 80


def test_differences_exit_with_5_where_they_are_limits(campaign: Path) -> None:
    cells = {name: campaign / "cells" / name for name in ("reno-r1", "cubic-beta-0.8-r1")}
    both = (cells["reno-r1"], "--against", cells["cubic-beta-0.8-r1"])
    done = narrows("identify", *both, "--fail-on", "decrease")
    assert done.exit_code == 5, done.output
    assert "window after a loss" in done.stdout
    assert narrows("identify", *both).exit_code == 0
    assert narrows("identify", *both, "--fail-on", "slow-start-growth").exit_code == 0
    same = narrows("identify", cells["reno-r1"], "--against", cells["reno-r1"], "--fail-on", "any")
    assert same.exit_code == 0 and "no difference" in " ".join(same.stdout.split())


def test_markdown_has_a_row_for_each_difference(campaign: Path) -> None:
    cells = campaign / "cells"
    both = ("identify", cells / "reno-r1", "--against", cells / "cubic-beta-0.8-r1")
    document = json.loads(narrows(*both, "--json").stdout)
    text = narrows(*both, "--markdown").stdout
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(document["differences"][0]["lines"])


def test_records_of_bins_are_refused_with_the_reason(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "bins", PATH + "record: bins\n", "--runs", "1")
    done = narrows("identify", folder, "--json")
    (card, _) = json.loads(done.stdout)["cards"]
    assert "has bins and no packets" in card["notes"][0]
    assert {line["why"] for line in card["lines"] if line["probe"] == "small"} == {
        "none of its runs can be measured"
    }


def test_a_budget_leaves_out_probes_and_says_so(tmp_path: Path) -> None:
    done = narrows("identify", "reno", "--runs", "1", "--budget", "1 ms", "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    (card,) = json.loads(done.stdout)["cards"]
    # The first probe runs whatever it takes.
    (first,) = {line["probe"] for line in card["lines"] if line.get("value") is not None}
    reasons = {line.get("why") for line in card["lines"] if line["probe"] != first}
    assert reasons == {"its probe did not run within 1 ms"}
    assert json.loads((tmp_path / "out" / "identify.json").read_text())["cards"] == [card]
    # The folder is the same identification again.
    again = json.loads(narrows("identify", tmp_path / "out", "--json").stdout)["cards"][0]
    assert [line for line in again["lines"] if "value" in line] == [
        line for line in card["lines"] if "value" in line
    ]


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    done = narrows("identify", tmp_path)
    assert "neither a campaign" in sentence(done)
