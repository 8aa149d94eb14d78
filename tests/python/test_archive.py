"""`narrows archive`: campaigns of a list, their numbers, and differences between archives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from campaign_kit import SCENARIO, edited, narrows, sentence
from narrows.archive import comparing, listing, making
from narrows.documents.archive import Archive, ArchivedCampaign, ArchivedRun, Limits
from narrows.documents.results import Quantity
from narrows.errors import DataError, NarrowsError

LIST = """\
schema: narrows/archive-list/1
title: Two small ones
limits: {processor_minutes: 60, site_megabytes: 30}
campaigns:
  plain: {scenario: SMALL}
  slower: {scenario: SMALL, set: {path.forward.0.rate: 2 Mbit/s, runs: 1, schemes: [reno]}}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a list and its archive."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "small.yaml").write_text(SCENARIO)
    (folder / "list.yaml").write_text(LIST.replace("SMALL", str(folder / "small.yaml")))
    done = narrows("archive", "make", folder / "list.yaml", "-o", folder / "made")
    assert done.exit_code == 0, (done.output, done.exception)
    assert "2 campaigns, 5 runs" in done.stdout
    return folder


@pytest.fixture
def copied(place: Path, tmp_path: Path) -> Path:
    shutil.copytree(place / "made", tmp_path / "made")
    return tmp_path / "made"


def code_of(done: Result) -> int:
    """The exit code with which the program would have refused."""
    assert isinstance(done.exception, NarrowsError), (done.output, done.exception)
    return done.exception.exit_code


def compare(*words: object, code: int = 0) -> dict[str, Any]:
    done = narrows("archive", "compare", *words, "--json")
    assert done.exit_code == code, (done.output, done.exception)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_an_archive_has_the_numbers_of_its_campaigns(place: Path) -> None:
    document = json.loads((place / "made" / "archive.json").read_text())
    assert list(document["campaigns"]) == ["plain", "slower"]
    for name, campaign in document["campaigns"].items():
        results = json.loads((place / "made" / "campaigns" / name / "results.json").read_text())
        ours = {(run["row"], run["run"]): run["metrics"] for run in campaign["runs"]}
        theirs = {(row["row"], row["run"]): row["metrics"] for row in results["rows"] if row["flow"] is None}
        assert ours == theirs
    rates = [campaign["runs"][0]["metrics"]["throughput_bps"] for campaign in document["campaigns"].values()]
    assert rates[1] < 2.1e6 < rates[0], "the change of the list holds"
    assert document["site_bytes"] == sum(
        file.stat().st_size for file in (place / "made" / "site").rglob("*") if file.is_file()
    )
    assert document["processor_s"] > 0


def test_made_again_it_runs_nothing_and_stays_the_same(copied: Path, place: Path) -> None:
    records = {file: file.stat().st_mtime_ns for file in copied.rglob("run.json")}
    done = narrows("archive", "make", place / "list.yaml", "-o", copied)
    assert done.exit_code == 0, (done.output, done.exception)
    assert {file: file.stat().st_mtime_ns for file in copied.rglob("run.json")} == records
    result = compare(place / "made", copied)
    assert (result["campaigns"], result["rows"], result["changes"]) == (2, 3, [])


def test_simulated_anew_it_is_the_same_to_the_last_digit(place: Path, tmp_path: Path) -> None:
    done = narrows("archive", "make", place / "list.yaml", "-o", tmp_path / "again", "--only", "slower")
    assert done.exit_code == 0, (done.output, done.exception)
    result = compare(place / "made", tmp_path / "again")
    assert (result["campaigns"], result["changes"]) == (1, [])
    assert result["only_before"] == ["plain"]
    words = narrows("archive", "compare", place / "made", tmp_path / "again").stdout
    assert "all 1 row in 1 campaign are the same in every run and metric" in words
    assert "only before: plain" in words


def test_a_changed_value_is_named_with_its_row_and_runs(copied: Path, place: Path) -> None:
    with edited(copied / "archive.json") as document:
        run = document["campaigns"]["plain"]["runs"][0]
        before = run["metrics"]["throughput_bps"]
        run["metrics"]["throughput_bps"] = before * 2
    result = compare(place / "made", copied)
    (change,) = result["changes"]
    assert (change["campaign"], change["row"], change["metric"]) == ("plain", run["row"], "throughput_bps")
    assert (change["runs"], change["changed"]) == (2, 1)
    assert result["rows_changed"] == 1
    words = narrows("archive", "compare", place / "made", copied).stdout
    assert "1 of 3 rows in 2 campaigns differ" in words
    assert "1 of 2" in words


def test_another_scenario_another_plane_and_lacking_runs_are_not_compared(copied: Path, place: Path) -> None:
    with edited(copied / "archive.json") as document:
        document["campaigns"]["slower"]["hash"] = "sha256:0"
        document["campaigns"]["plain"]["runs"].pop()
    result = compare(place / "made", copied)
    assert result["other_scenario"] == ["slower"]
    assert [name.startswith("plain: ") for name in result["only_before"]] == [True]
    with edited(copied / "archive.json") as document:
        document["campaigns"]["plain"]["plane"] = "emulate"
    assert compare(place / "made", copied)["by_chance"] == ["plain"]


def test_a_value_that_appears_or_vanishes_is_a_change() -> None:
    def archive(value: float | None) -> Archive:
        run = ArchivedRun(row="reno", run=1, seed=1, verdict="ok", metrics={"m": value})
        campaign = ArchivedCampaign(title="t", plane="simulate", hash="h", runs=[run])
        metric = msgspec.convert(
            {"name": "m", "label": "m", "unit": "", "show_unit": "", "show_scale": 1}, Quantity
        )
        return Archive(
            title="t",
            narrows="1",
            git=None,
            processor_s=1,
            site_bytes=1,
            metrics=[metric],
            campaigns={"c": campaign},
        )

    assert not comparing.compare(archive(None), archive(None)).changes
    for first, second in ((None, 1.0), (1.0, None), (0, 1.0), (1.0, 1.0000000000000002)):
        (change,) = comparing.compare(archive(first), archive(second)).changes
        assert (change.before, change.after) == (first, second)


def test_an_exceeded_limit_ends_with_5_and_both_numbers(copied: Path, place: Path, tmp_path: Path) -> None:
    narrow = tmp_path / "narrow.yaml"
    narrow.write_text((place / "list.yaml").read_text().replace("site_megabytes: 30", "site_megabytes: 0.01"))
    done = narrows("archive", "make", narrow, "-o", copied)
    assert done.exit_code == 5, done.output
    assert "of 0.01 MB" in done.stderr
    archive = making.read_archive(copied)
    assert making.broken_limits(Limits(), archive) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "list.yaml:1:1: a list of an archive is keys with values"),
        ("schema: narrows/archive-list/2\ntitle: t\ncampaigns: {}", "narrows/archive-list/2"),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaigns: {}", "campaigns: needs at least one, such as"),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaigns: {a: {}}", "needs either scenario or lab"),
        (
            "schema: narrows/archive-list/1\ntitle: t\ncampaigns: {a: {lab: geni, set: {runs: 1}}}",
            "a laboratory states its own",
        ),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaigns: {../a: {lab: geni}}", "name of a folder"),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaigns: {a: {lab: genni}}", "geni"),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaigns: {a: {scenario: firstlook}}", "first-look"),
        ("schema: narrows/archive-list/1\ntitle: t\ncampaign: {a: {lab: geni}}", "campaign"),
        (
            "schema: narrows/archive-list/1\ntitle: t\n"
            "campaigns: {a: {scenario: first-look, set: {rums: 1}}}",
            "list.yaml:3:45: campaigns.a.set.rums",
        ),
        ("a: [", "list.yaml:2:1: is not valid YAML"),
    ],
)
def test_a_wrong_list_is_refused_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "list.yaml"
    file.write_text(text)
    done = narrows("archive", "make", file, "-o", tmp_path / "made", "--dry-run")
    assert code_of(done) == 3, (done.output, done.exception)
    assert words in sentence(done)
    assert not (tmp_path / "made").exists()


def test_foreign_folders_and_unknown_names_are_refused(place: Path, copied: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("")
    done = narrows("archive", "make", place / "list.yaml", "-o", tmp_path / "taken")
    assert (code_of(done), "holds something else" in sentence(done)) == (2, True)
    done = narrows("archive", "make", place / "list.yaml", "-o", copied, "--only", "plan")
    assert (code_of(done), "plain" in sentence(done)) == (2, True)
    done = narrows("archive", "compare", place, copied)
    assert (code_of(done), "the archive does not exist" in sentence(done)) == (3, True)
    (copied / "archive.json").write_text((copied / "archive.json").read_text().replace("reno", "cubic", 1))
    assert code_of(narrows("archive", "compare", copied, copied)) == 3


@given(text=st.text(max_size=200))
def test_any_text_is_a_list_or_refused(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "any-list.yaml"
    file.write_text(text, encoding="utf-8", errors="replace")
    try:
        listing.read_list(file)
    except DataError as error:
        assert all(line.startswith(f"{file}:") for line in str(error).splitlines())


def test_the_list_of_releases_has_all_paths_and_schemes_of_pantheon() -> None:
    listed = listing.read_list(listing.SHIPPED)
    assert (listed.limits.processor_minutes, listed.limits.site_megabytes) == (60, 30)
    root = Path(__file__).parents[2]
    whole = yaml.safe_load((root / "scenarios" / "pantheon" / "all-schemes.yaml").read_text())
    shipped = {f"pantheon/{file.stem}" for file in (root / "scenarios" / "pantheon").glob("*.yaml")}
    names = {campaign.scenario for campaign in listed.campaigns.values() if campaign.scenario}
    assert shipped <= names
    for campaign in listed.campaigns.values():
        if campaign.scenario in shipped - {"pantheon/all-schemes"}:
            changes = {change.path: change.text for change in campaign.changes}
            assert yaml.safe_load(changes["schemes"]) == whole["schemes"]
