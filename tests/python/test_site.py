"""`narrows site`: pages that are written, kept and drawn again, and refusals."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import compare_kit
from campaign_kit import edited, narrows, one_and_two, sentence
from narrows.campaign import notes, sealing
from narrows.documents.data import from_data
from narrows.documents.site import Site
from narrows.errors import UsageError
from narrows.report.packed import unpack
from narrows.site import build, making, page_workers, ranks


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_and_two(tmp_path_factory.mktemp("site") / "results")


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    # File times show whether files have changed.
    shutil.copytree(made, tmp_path / "results", copy_function=shutil.copy2)
    return tmp_path / "results"


def site(*words: object, code: int = 0) -> dict[str, Any]:
    done = narrows("site", *words, "--json")
    assert done.exit_code == code, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def files_of(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_site_has_a_page_per_campaign_and_names_only_what_is_there(place: Path) -> None:
    notes.add_tags(place / "two", ["paper"])
    notes.add_note(place / "two", "before <the> update")
    target = place.parent / "web"
    made = site(place, "-o", target)
    assert [Path(one["folder"]).name for one in made["campaigns"]] == ["one", "two"]
    assert all(one["drawn"] for one in made["campaigns"])
    document = json.loads((target / "site.json").read_text())
    assert document["format"] == "narrows/site/1.1"
    assert not [name for name in files_of(target) if name.rsplit("/", 1)[-1].startswith(".")]
    list_page = (target / "index.html").read_text()
    assert "before &lt;the&gt; update" in list_page
    for page in (target / "index.html", *(Path(one["page"]) for one in made["campaigns"])):
        text = page.read_text()
        named = re.findall(r'(?:href|src)="([^"#]+?)(?:#[^"]*)?"', text)
        for name in named:
            if not name.startswith("data:"):
                assert (page.parent / name).is_file(), f"{page} names {name}"
        assert "http" not in text.replace("http-equiv", "").replace("xmlns", "")
        assert str(place) not in text, "no path of this machine is told to the world"
    assert str(place.parent) not in (target / "site.json").read_text()


def test_a_run_is_kept_as_a_script_with_all_figures_over_time(place: Path) -> None:
    target = place.parent / "web"
    page = Path(site(place / "one", "-o", target)["campaigns"][0]["page"])
    contents = json.loads(next(page.parent.glob("*/contents.json")).read_text())
    assert {"throughput", "delay", "queue", "window", "rtt", "share", "sequence"} <= set(
        contents["quantities"]
    )
    assert set(contents["runs"]) == {"reno-r1", "reno-r2", "cubic-r1", "cubic-r2"}
    mark = page.parent / json.loads((target / "site.json").read_text())["campaigns"][page.parent.name]["mark"]
    script = (mark / contents["runs"]["reno-r1"]["file"]).read_text()
    found = re.fullmatch(r'narrowsRuns\.take\("reno-r1", "([A-Za-z0-9+/=]+)"\);\n', script)
    assert found
    charts, _ = unpack(found[1])
    assert list(charts) == contents["runs"]["reno-r1"]["charts"]
    assert (mark / "results.csv").read_bytes() == (place / "one" / "results.csv").read_bytes()
    assert (mark / "scenario.yaml").read_text() == json.loads((place / "one" / "campaign.json").read_text())[
        "scenario"
    ]["written"]


def test_several_processes_draw_the_pages_that_one_draws(place: Path) -> None:
    many = place.parent / "many"
    for number in range(page_workers.FEW):
        shutil.copytree(place / "one", many / f"copy-{number}", copy_function=shutil.copy2)
    (many / "copy-3" / "results.json").write_text("{}")
    alone, beside = place.parent / "alone", place.parent / "beside"
    steps: list[tuple[int, int, str]] = []
    first = build([many], alone)
    second = build([many], beside, processes=2, progress=lambda *step: steps.append(step))
    assert [one.drawn for one in second.campaigns] == [True] * (page_workers.FEW - 1)
    assert [one.problem for one in second.problems] == [one.problem for one in first.problems]
    assert files_of(alone) == files_of(beside)
    for name in files_of(alone):
        assert (alone / name).read_bytes() == (beside / name).read_bytes(), name
    assert [number for number, _, _ in steps] == list(range(1, page_workers.FEW + 1))


def test_pages_of_folders_of_the_same_name_show_them_apart(place: Path) -> None:
    for day in ("monday", "tuesday"):
        shutil.copytree(place / "one", place.parent / day / "run", copy_function=shutil.copy2)
    target = place.parent / "web"
    (page,) = [Path(one["page"]) for one in site(place.parent / "monday", "-o", target)["campaigns"]]
    assert "monday/run" not in page.read_text()
    made = site(place.parent / "monday", place.parent / "tuesday", "-o", target)
    for day, campaign in zip(("monday", "tuesday"), made["campaigns"], strict=True):
        assert f"{day}/run" in Path(campaign["page"]).read_text()


def test_made_again_addresses_stay_and_only_what_has_changed_is_drawn(place: Path) -> None:
    target = place.parent / "web"
    first = site(place / "one", "-o", target)
    page = Path(first["campaigns"][0]["page"])
    before = page.stat().st_mtime_ns
    second = site(place, "-o", target)
    assert [one["drawn"] for one in second["campaigns"]] == [False, True]
    assert second["campaigns"][0]["page"] == first["campaigns"][0]["page"]
    assert page.stat().st_mtime_ns == before
    notes.add_tags(place / "one", ["good"])
    third = site(place, "-o", target)
    assert [one["drawn"] for one in third["campaigns"]] == [True, False]
    assert "good" in page.read_text()
    assert len([part for part in page.parent.iterdir() if part.is_dir()]) == 1, (
        "no files of the old page are left"
    )


def test_a_campaign_that_is_gone_stays_until_it_is_pruned(place: Path) -> None:
    target = place.parent / "web"
    pages = [Path(one["page"]) for one in site(place, "-o", target)["campaigns"]]
    shutil.rmtree(place / "two")
    again = site(place, "-o", target)
    assert again["kept"] == [pages[1].parent.name] and again["removed"] == []
    assert pages[1].is_file() and pages[1].parent.name in (target / "index.html").read_text()
    pruned = site(place, "-o", target, "--prune")
    assert pruned["removed"] == [pages[1].parent.name]
    assert not pages[1].exists() and pages[0].is_file()
    assert pages[1].parent.name not in (target / "index.html").read_text()


def test_a_campaign_that_was_moved_keeps_its_page(place: Path) -> None:
    target = place.parent / "web"
    before = {one["page"] for one in site(place, "-o", target)["campaigns"]}
    (place / "two").rename(place / "three")
    after = site(place, "-o", target)
    assert {one["page"] for one in after["campaigns"]} == before and after["kept"] == []
    shutil.copytree(place / "one", place / "copy")
    copied = site(place, "-o", target)
    assert len({one["page"] for one in copied["campaigns"]}) == 3, "a copy has a page of its own"


def damage(folder: Path) -> None:
    (folder / "campaign.json").write_text("{")


def newer(folder: Path) -> None:
    file = folder / "campaign.json"
    file.write_text(file.read_text().replace("narrows/campaign/1", "narrows/campaign/9"))


def cut(folder: Path) -> None:
    file = folder / "cells" / "cubic-r2" / "packets.parquet"
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize("how", [damage, newer, cut])
def test_unreadable_campaigns_yield_one_sentence(place: Path, how: Any) -> None:
    target = place.parent / "web"
    how(place / "two")
    made = site(place, "-o", target, code=3)
    assert [Path(one["folder"]).name for one in made["campaigns"]] == ["one"]
    (problem,) = made["problems"]
    assert str(place / "two") in problem["problem"] and "\n" not in problem["problem"]
    text = (target / "index.html").read_text()
    assert str(place) not in text
    assert "Not shown" in text and ("campaign.json" in text or "packets.parquet" in text)
    shown = narrows("site", place, "-o", target)
    assert shown.exit_code == 3 and shown.stderr.count("\n") == 1


def test_a_damaged_campaign_keeps_the_page_of_before(place: Path) -> None:
    target = place.parent / "web"
    pages = [Path(one["page"]) for one in site(place, "-o", target)["campaigns"]]
    damage(place / "two")
    site(place, "-o", target, "--prune", code=3)
    assert pages[1].is_file()
    assert "The page of an earlier state" in (target / "index.html").read_text()


def test_a_campaign_that_is_being_written_is_listed_apart(place: Path) -> None:
    target = place.parent / "web"
    file = place / "two" / "campaign.json"
    with edited(file) as document:
        document["sessions"][-1]["ended_at"] = None
    lock = os.open(place / "two", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = site(place, "-o", target)
    finally:
        os.close(lock)
    assert len(made["campaigns"]) == 1
    assert made["problems"][0]["busy"] and "is being written at the moment" in made["problems"][0]["problem"]
    assert site(place, "-o", target)["problems"] == []


def test_folders_of_others_are_refused(place: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("mine")
    before = files_of(other)
    said = narrows("site", place, "-o", other)
    assert isinstance(said.exception, UsageError) and said.exception.exit_code == 2
    assert "is not empty and holds no site" in sentence(said)
    assert "is not empty and holds no site" in sentence(narrows("site", place, "-o", place / "one"))
    assert files_of(other) == before
    (tmp_path / "site").mkdir()
    entry = {"source": "a", "origin": "b", "mark": "c", "assets": [], "listed": {}, "ranking": []}
    for content, words in (
        ('{"format": "narrows/site/2"}', "update narrows"),
        ('{"format": "narrows/site/1"}', "is damaged"),
        (json.dumps({"format": "narrows/site/1", "campaigns": {"../..": entry}}), "is not a name of a page"),
    ):
        (tmp_path / "site" / "site.json").write_text(content)
        assert words in sentence(narrows("site", place, "-o", tmp_path / "site"))
    assert "does not exist" in sentence(narrows("site", tmp_path / "nix", "-o", tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_a_list_of_pages_that_was_edited_is_refused(place: Path) -> None:
    target = place.parent / "web"
    site(place, "-o", target)
    text = (target / "site.json").read_text()
    (target / "site.json").write_text(text.replace('"runs": 4', '"runs": 40', 1))
    assert "its digest does not fit" in sentence(narrows("site", place, "-o", target))


@pytest.mark.parametrize("path", [(), ("campaigns", "{}"), ("campaigns", "{}", "listed")])
def test_a_site_with_members_of_a_newer_version_is_not_rewritten(place: Path, path: tuple[str, ...]) -> None:
    target = place.parent / "web"
    site(place, "-o", target)
    file = target / "site.json"
    document = json.loads(file.read_text())
    page = next(iter(document["campaigns"]))
    names = [name.format(page) for name in path]
    part = document
    for name in names:
        part = part[name]
    part["invented"] = 1
    file.write_text(sealing.seal(document, "narrows/site/1"))
    before = file.read_bytes()
    said = sentence(narrows("site", place, "-o", target))
    assert f"the file.{'.'.join((*names, 'invented'))} was written by a newer version" in said
    assert file.read_bytes() == before


def test_only_one_process_writes_a_site(place: Path) -> None:
    target = place.parent / "web"
    target.mkdir()
    lock = os.open(target, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "another narrows is writing this site" in sentence(narrows("site", place, "-o", target))
    finally:
        os.close(lock)


def test_a_killed_run_leaves_a_site_that_can_be_read(place: Path) -> None:
    target = place.parent / "web"
    site(place / "one", "-o", target)
    for number in range(8):
        shutil.copytree(place / "two", place / f"more-{number}")
    notes.add_tags(place / "one", ["changed"])
    command = [sys.executable, "-m", "narrows", "site", str(place), "-o", str(target)]
    pages = target / "campaigns"
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while len(list(pages.glob("*/index.html"))) < 4:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for page in (target / "index.html", *pages.glob("*/index.html")):
        for name in re.findall(r'(?:href|src)="([^"#]+?)(?:#[^"]*)?"', page.read_text()):
            assert name.startswith("data:") or (page.parent / name).is_file(), f"{page} names {name}"
    whole = site(place, "-o", target)
    assert len(whole["campaigns"]) == 10
    assert not [name for name in files_of(target) if ".tmp" in name]


def test_ranks_are_those_that_the_runs_leave_open(tmp_path: Path) -> None:
    def runs(throughput: float, count: int) -> list[dict[str, float | None]]:
        return [
            {"throughput_bps": throughput * (1 + 0.01 * number), "delay_p95_ns": 5e7}
            for number in range(count)
        ]

    results = tmp_path / "results"
    schemes = {"best": runs(9e6, 12), "twin": runs(9e6, 12), "worse": runs(4e6, 12)}
    compare_kit.campaign(results / "many", schemes, document={"name": "many"})
    few = {"best": runs(9e6, 3), "worse": runs(4e6, 3)}
    compare_kit.campaign(results / "few", few, document={"name": "few"})
    compare_kit.campaign(
        results / "old", schemes, document={"name": "many", "created_at": "2020-01-01T00:00:00Z"}
    )
    compare_kit.campaign(results / "alone", {"best": runs(9e6, 12)}, document={"name": "alone"})
    target = tmp_path / "web"
    assert len(site(results, "-o", target)["campaigns"]) == 4
    listed = from_data(json.loads((target / "site.json").read_text()), Site).campaigns
    tables = {one.metric.name: one.table for one in ranks.tables(listed)}
    table = tables["throughput_bps"]
    assert [column.head for column in table.columns] == [
        "experiment",
        "plane",
        "runs",
        "best",
        "twin",
        "worse",
    ]
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["many", "simulate", "12", "1-2", "1-2", "3"]
    ]
    assert "many" in table.rows[0][0].to, "the latest campaign counts"
    assert str(table.rows[0][3].small).endswith("Mbit/s")


def test_a_hundred_campaigns_take_little_room_in_the_list(tmp_path: Path) -> None:
    runs = [{"throughput_bps": 9e6 + number, "delay_p95_ns": 5e7} for number in range(2)]
    for number in range(100):
        compare_kit.campaign(tmp_path / "results" / f"c{number:03}", {f"scheme-{k}": runs for k in range(3)})
    target = tmp_path / "web"
    assert len(site(tmp_path / "results", "-o", target)["campaigns"]) == 100
    assert (target / "index.html").stat().st_size < 300_000
    assert sum(one["drawn"] for one in site(tmp_path / "results", "-o", target)["campaigns"]) == 0


def test_names_of_pages_can_be_addresses() -> None:
    assert making._ID.fullmatch("20261121t101500z-first-look-3fa9c1-aaaaaa")


SWEEP = """\
schema: narrows/scenario/1
question: How do rate and delay shape the queue?
path: {forward: [{rate: 2 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}
schemes: [reno]
duration: 2 s
sweep:
  path.forward.0.rate: {loguniform: [1 Mbit/s, 4 Mbit/s]}
  path.forward.1.delay: {uniform: [5 ms, 50 ms]}
  design: latin-hypercube
  points: 24
"""


def swept(folder: Path, points: int = 24) -> None:
    file = folder.with_suffix(".yaml")
    file.write_text(SWEEP.replace("points: 24", f"points: {points}"))
    done = narrows("sweep", "run", file, "-o", folder, "--json")
    assert done.exit_code == 0, done.output


def test_a_sweep_has_a_page_with_its_figures(place: Path) -> None:
    swept(place / "space")
    target = place.parent / "site"
    made = site(place, "-o", target)
    (one,) = made["sweeps"]
    assert one["drawn"]
    page = Path(one["page"]).read_text()
    assert page.count("<svg") == 2, "heat maps and effects"
    assert "How do rate and delay shape the queue?" in page
    assert "path.forward.0.rate" in page
    assert ' style="' not in page and "unsafe" not in page, "the policy of pages takes no style attributes"
    index = (target / "index.html").read_text()
    assert f'href="sweeps/{one["id"]}/index.html"' in index
    # An unchanged page is not drawn again; the page of a missing campaign stays until it is pruned.
    (again,) = site(place, "-o", target)["sweeps"]
    assert (again["id"], again["drawn"]) == (one["id"], False)
    shutil.rmtree(place / "space")
    assert site(place, "-o", target)["sweeps"] == []
    assert Path(one["page"]).is_file()
    site(place, "-o", target, "--prune")
    assert not Path(one["page"]).exists()
    assert "sweeps/" not in (target / "index.html").read_text()


def test_a_damaged_sweep_costs_one_sentence_and_keeps_its_page(place: Path) -> None:
    swept(place / "space", 4)
    target = place.parent / "site"
    (one,) = site(place, "-o", target)["sweeps"]
    (part,) = (place / "space").glob("data/*/*.parquet")
    part.write_bytes(b"nothing")
    made = site(place, "-o", target, code=3)
    assert made["sweeps"] == []
    assert "was changed after it was written" in made["problems"][0]["problem"]
    assert Path(one["page"]).is_file()
