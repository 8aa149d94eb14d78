"""An export of an imported campaign equals the import, and other files are refused in one sentence."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign_kit import edited
from narrows.campaign.store import CampaignFolder
from narrows.errors import DataError
from narrows.pantheon.exporting import export_campaign
from narrows.pantheon.importing import import_folder
from narrows.pantheon.source import read_source
from narrows.pantheon.stats import read_stats
from report_campaigns import Spec, write_campaign
from test_pantheon import EPOCH_MS, constant, data, events, metadata, narrows, raw_logs, run_json

__all__ = ["data"]


def log(seed: int, off_ms: float = 0.0, opportunities: bool = False) -> str:
    """A merged log of three flows with losses, copies and two sizes, whose delays have this offset."""
    chance = random.Random(seed)
    whole = chance.random() < 0.5
    found: list[tuple[float, str]] = []
    at = 50.0
    for _ in range(300):
        at += chance.uniform(0.1, 20.0)
        sent = float(round(at)) if whole else round(at, 3)
        size, flow = chance.choice([88, 1500]), chance.randint(1, 3)
        found.append((sent, f"{sent:.3f} + {size} {flow}"))
        for _ in range(chance.choice([0, 1, 1, 1, 1, 1, 1, 2])):
            delay = float(round(chance.uniform(20, 60))) if whole else round(chance.uniform(20, 60), 3)
            delay += off_ms
            found.append((sent + delay, f"{sent + delay:.3f} - {size} {delay:.3f} {flow}"))
    if opportunities:
        ticks = sorted(chance.choices(range(4000), k=3000))
        found += [(tick + 0.544, f"{tick}.544 # 1500") for tick in ticks]
    return events([line for _, line in sorted(found, key=lambda one: one[0])], EPOCH_MS + 123.456)


def blocks(folder: Path) -> dict[str, str | None]:
    """The printed statistics of a data folder, by file."""
    return {file.name: read_stats(file).printed for file in sorted(folder.glob("*_stats_run*.log"))}


@pytest.mark.parametrize("remote", [False, True])
def test_numbers_stay_the_same_however_often_they_go_out_and_in(tmp_path: Path, remote: bool) -> None:
    folder = tmp_path / "data0"
    folder.mkdir()
    metadata(folder, cc_schemes=["Cubic", "a_b"], run_times=2, flows=3, mode="remote" if remote else "local")
    for seed, (scheme, run) in enumerate((s, r) for s in ("a_b", "Cubic") for r in (1, 2)):
        # If data seem to arrive before they are sent, acknowledgements take longer, and the reverse.
        off = random.Random(seed).uniform(-70.0, 70.0) if remote else 0.0
        off = round(off, 3)
        (folder / f"{scheme}_datalink_run{run}.log").write_text(log(seed, off, not remote))
        if seed:
            (folder / f"{scheme}_acklink_run{run}.log").write_text(log(seed + 100, -off))
        if remote:
            stats = "Local clock offset: 4.250 ms\nRemote clock offset: -0.125 ms\n"
            (folder / f"{scheme}_stats_run{run}.log").write_text(stats)
    seen = []
    for trip in range(3):
        source, campaign = tmp_path / f"data{trip}", tmp_path / f"campaign{trip}"
        done = import_folder(read_source(source), campaign)
        assert done.exit_code == 0
        cells = {entry.id: run_json(campaign, entry.id) for entry in done.folder.cells}
        told = {cell: (run["pantheon"]["text"], run["verdict"], run["clock"]) for cell, run in cells.items()}
        target = tmp_path / f"data{trip + 1}"
        assert export_campaign(done.folder, target, lambda _: None) == 4
        seen.append((told, blocks(target)))
        assert read_source(target).metadata == read_source(folder).metadata
        assert not (target / "a_b_acklink_run1.log").exists(), "there was none"
        for cell in cells.values():
            assert cell["pantheon"]["agrees"] is (True if trip else None)
    assert len(seen[0][1]) == 4 and all(seen[0][1].values())
    assert seen[0][0].keys() == seen[1][0].keys()
    assert seen[1] == seen[0] and seen[2] == seen[0]
    # The second time even the logs are the same.
    for file in (tmp_path / "data1").glob("*link_run*.log"):
        assert file.read_bytes() == (tmp_path / "data2" / file.name).read_bytes(), file.name
    if remote:
        assert "Remote clock offset: -0.125 ms" in (tmp_path / "data3" / "Cubic_stats_run2.log").read_text()


def test_raw_logs_with_offsets_go_out_as_pantheon_merges_them(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    metadata(folder, mode="remote", runtime=1)
    raw_logs(folder, "datalink", 0.0, -20.0)
    raw_logs(folder, "acklink", -20.0, 0.0)
    offsets = "Local clock offset: 0.000 ms\nRemote clock offset: 2.000 ms\n"
    (folder / "cubic_stats_run1.log").write_text(offsets)
    done = import_folder(read_source(folder), tmp_path / "first")
    first = run_json(tmp_path / "first")
    # The receiver is still 18 ms early, which makes delays of 15 ms negative; the record corrects it.
    assert first["pantheon"]["statistics"]["total"]["delay_p95_ms"] == pytest.approx(-3.0)
    assert first["pantheon"]["log"]["receiver_shift_ns"] == 3_000_000
    export_campaign(done.folder, tmp_path / "out", lambda _: None)
    import_folder(read_source(tmp_path / "out"), tmp_path / "second")
    second = run_json(tmp_path / "second")
    assert second["pantheon"]["text"] == first["pantheon"]["text"]
    assert second["reasons"] == first["reasons"] and second["clock"] == first["clock"]


def test_a_folder_without_metadata_gets_none(data: Path, tmp_path: Path) -> None:
    (data / "pantheon_metadata.json").unlink()
    done = import_folder(read_source(data), tmp_path / "in")
    export_campaign(done.folder, tmp_path / "out", lambda _: None)
    assert not (tmp_path / "out" / "pantheon_metadata.json").exists()
    assert read_stats(tmp_path / "out" / "cubic_stats_run1.log").started_at == "2017-07-14T02:40:00.000Z"


def test_the_largest_number_of_a_flow_has_a_report(data: Path, tmp_path: Path) -> None:
    (data / "cubic_datalink_run1.log").write_text(events(constant(2.0, flow=65_535)))
    metadata(data, flows=None)
    done = narrows("import", "pantheon", data, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "flow 65535" in (tmp_path / "out" / "report.html").read_text()


def test_a_log_that_is_not_in_order_is_counted_by_time_and_marked(data: Path, tmp_path: Path) -> None:
    rows = ["0.000 + 1500 1", "1.000 + 1500 1", "30.000 - 1500 30.000 1", "20.000 - 1500 19.000 1"]
    (data / "cubic_datalink_run1.log").write_text(events(rows))
    metadata(data, runtime=0.01)
    import_folder(read_source(data), tmp_path / "out")
    record = run_json(tmp_path / "out")
    assert record["verdict"] == "degraded"
    assert "cubic_datalink_run1.log:5: this line is 10.000 ms earlier" in record["reasons"][0]["text"]
    assert record["pantheon"]["statistics"]["total"]["throughput_mbps"] == pytest.approx(2.4)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x80 nothing\n"])
def test_acknowledgements_that_are_no_log_do_not_cost_the_run(
    data: Path, tmp_path: Path, content: bytes
) -> None:
    log = data / "cubic_acklink_run1.log"
    log.write_bytes(content)
    with pytest.raises(DataError, match=r"--lenient reads the run without its acknowledgements$"):
        import_folder(read_source(data), tmp_path / "strict")
    assert import_folder(read_source(data), tmp_path / "out", lenient=True).exit_code == 0
    record = run_json(tmp_path / "out")
    assert record["verdict"] == "degraded"
    assert "acknowledgements are not in the record" in record["reasons"][0]["text"]
    assert record["pantheon"]["logs"] == ["cubic_datalink_run1.log"]


@pytest.mark.parametrize("runtime", ["1e400", "1e300", "1" + "0" * 23, "-1", "0", "NaN", '"30"', "true"])
def test_an_invalid_time_is_reported(data: Path, tmp_path: Path, runtime: str) -> None:
    file = data / "pantheon_metadata.json"
    content = json.loads(file.read_text()) | {"runtime": "X"}
    file.write_text(json.dumps(content).replace('"X"', runtime))
    with pytest.raises(DataError, match=r'metadata.json: "runtime" is .*, not a number of seconds'):
        read_source(data)


def test_implausible_numbers_of_runs_are_refused(data: Path) -> None:
    metadata(data, run_times=1000)
    assert len(read_source(data).runs) == 1000
    for run_times in (1001, 10**12):
        metadata(data, run_times=run_times)
        with pytest.raises(DataError, match=r'metadata.json: "run_times" promises more than 1000 runs'):
            read_source(data)


def test_a_flow_of_which_nothing_arrived_voids_the_run(data: Path, tmp_path: Path) -> None:
    def void(name: str) -> str:
        done = import_folder(read_source(data), tmp_path / name)
        assert done.exit_code == 6
        assert run_json(tmp_path / name)["verdict"] == "invalid"
        return str(run_json(tmp_path / name)["pantheon"]["refused"])

    # The metadata promise it, and the merged log lacks it.
    metadata(data, flows=65_535)
    assert void("merged") == "no packet of flow 2 arrived"
    assert len(run_json(tmp_path / "merged")["cell"]["flows"]) == 1, "others left no log"
    # Its raw logs exist, but are empty.
    (data / "cubic_datalink_run1.log").unlink()
    metadata(data, flows=1, runtime=1)
    raw_logs(data, "datalink", 0.0, 0.0)
    for side in ("egress", "ingress"):
        log = data / f"cubic_datalink_run1_flow2_uidx.log.{side}"
        log.write_text(f"# 'x' {side}: {EPOCH_MS}.000\n")
    assert void("raw") == "no packet of flow 2 arrived"


def test_runs_with_fewer_flows_than_others_count_after_a_trip(tmp_path: Path) -> None:
    specs = [Spec("cubic", runs_as=("cubic",)), Spec("bbr1", runs_as=("bbr1", "bbr1"))]
    ours = write_campaign(tmp_path / "ours", specs, duration_s=3.0, simulated=True)
    export_campaign(CampaignFolder.read(ours), tmp_path / "data", lambda _: None)
    assert import_folder(read_source(tmp_path / "data"), tmp_path / "back").exit_code == 0


def test_acknowledgements_of_another_day_do_not_cost_the_run(data: Path, tmp_path: Path) -> None:
    log = data / "cubic_acklink_run1.log"
    log.write_text(events(constant(2.0, size=88), EPOCH_MS + 100 * 86_400_000))
    with pytest.raises(DataError) as raised:
        import_folder(read_source(data), tmp_path / "strict")
    assert str(raised.value).startswith(f"{log}: with it the run's events are 100 days apart")
    assert str(raised.value).endswith("; --lenient reads the run without its acknowledgements")
    assert import_folder(read_source(data), tmp_path / "out", lenient=True).exit_code == 0
    record = run_json(tmp_path / "out")
    assert record["verdict"] == "degraded"
    assert f"The acknowledgements are not in the record ({log}: with it" in record["reasons"][0]["text"]
    assert record["pantheon"]["logs"] == ["cubic_datalink_run1.log"]


@contextmanager
def nothing_regular(path: Path, kind: str) -> Iterator[None]:
    """Something else of that name. A process that reads the pipe nevertheless gets nothing, and need not
    wait."""
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir()
        yield
        return
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.open("wb").close(), daemon=True)
    writer.start()
    yield
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(reader)


@pytest.mark.parametrize("kind", ["fifo", "folder"])
@pytest.mark.parametrize(
    "name",
    [
        "cubic_datalink_run1.log",
        "cubic_acklink_run1.log",
        "cubic_stats_run1.log",
        "pantheon_metadata.json",
        "cubic_datalink_run2_flow1_uid1.log.egress",
    ],
)
def test_only_regular_files_are_read(data: Path, tmp_path: Path, name: str, kind: str) -> None:
    if name.endswith("egress"):
        (data / name.replace("egress", "ingress")).write_text("")
    with nothing_regular(data / name, kind):
        done = narrows("import", "pantheon", data, "-o", tmp_path / "out", "--no-report")
    assert isinstance(done.exception, DataError)
    assert str(done.exception).startswith(f"{data / name}: can't be read: it is no")
    assert "regular file" in str(done.exception)


def test_unusable_input_is_reported_in_one_sentence(data: Path, tmp_path: Path) -> None:
    def told(*options: str) -> str:
        done = narrows("import", "pantheon", data, "-o", tmp_path / "out", *options)
        assert isinstance(done.exception, DataError), done.output
        assert done.output == "", "nothing but the one sentence"
        assert not (tmp_path / "out").exists()
        return str(done.exception)

    log = data / "cubic_datalink_run1.log"
    log.write_text(events([]))
    assert told() == f"{data}: none of its runs can be used: no packet was logged, so the run is void"
    log.write_bytes(b"\x1f\x8b\x08\x00\x00")
    assert told() == f"{log}:1: the log is compressed (gzip); unpack it first"
    log.write_text("# init timestamp: 1500000000123.456")
    assert told() == f"{log}:1: the log ends in the middle of this line"
    strange = os.fsdecode(bytes(data) + b"/\xff_datalink_run1.log")
    Path(strange).write_text(events(constant(2.0)))
    assert (
        told() == rf"{data}/\xff_datalink_run1.log: is not valid UTF-8, so records can't hold it; rename it"
    )
    Path(strange).unlink()
    log.write_text(events(["1.000 + 1500 1", "1.500 - 1500"]))
    with pytest.raises(DataError, match=r":3: .*; --lenient reads up to there$"):
        import_folder(read_source(data), tmp_path / "out")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("cc_schemes", '["\\ud800"]', "half a character"),
        ("remote_desc", '"\\ud800"', "half a character"),
        ("test-name", '"\\udfff"', "half a character"),
        ("uplink_trace", '{"a": [{"\\ud800": 1}]}', "half a character"),
        ("prepend_mm_cmds", "1e999", "not a number"),
        ("uplink_trace", "[NaN]", "not a number"),
        ("flows", "1" + 400 * "0", "not a number"),
        ("mode", "[" * 30 + "]" * 30, "nested more deeply"),
        (None, "[" * 100_000, "nested more deeply"),
        (None, '{"a":' * 50_000, "nested more deeply"),
    ],
)
def test_metadata_that_records_cannot_contain_are_reported_with_their_key(
    data: Path, tmp_path: Path, key: str | None, value: str, why: str
) -> None:
    file = data / "pantheon_metadata.json"
    file.write_text(f'{{"{key}": {value}}}' if key else value)
    done = narrows("import", "pantheon", data, "-o", tmp_path / "out")
    assert isinstance(done.exception, DataError), done.exception
    place = f'{file}: "{key}": ' if key else f"{file}: "
    assert str(done.exception).startswith(place) and why in str(done.exception)


@pytest.mark.parametrize("year", [1, 1600, 1969, 1970, 2255, 2256, 2262, 9999])
def test_a_time_that_is_imported_can_be_exported(data: Path, tmp_path: Path, year: int) -> None:
    stats = data / "cubic_stats_run1.log"
    stats.write_text(f"Start at: {year:04}-12-31 23:59:59\n")
    campaign = tmp_path / "campaign"
    if 1970 <= year <= 2255:
        assert import_folder(read_source(data), campaign).exit_code == 0
        assert narrows("export", campaign, "--format", "pantheon", "-o", tmp_path / "out").exit_code == 0
        assert (tmp_path / "out" / stats.name).read_text().startswith(stats.read_text())
        return
    with pytest.raises(DataError, match=rf"run1\.log:1: .* year {year} .* expected 1970 to 2255"):
        read_source(data)
    stats.unlink()
    import_folder(read_source(data), campaign)
    record = run_json(campaign) | {"started_at": f"{year:04}-12-31T23:59:59.000Z"}
    (campaign / "cells" / "cubic-r1" / "run.json").write_text(json.dumps(record))
    # As in campaigns of versions without digests of records.
    with edited(campaign / "campaign.json") as listed:
        del listed["cells"][0]["digest"]
    done = narrows("export", campaign, "--format", "pantheon", "-o", tmp_path / "out")
    assert isinstance(done.exception, DataError) and "is not a plausible time of a run" in str(done.exception)


WORDS = st.text() | st.sampled_from(["\ud800", "a\udfffb"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(WORDS, inner),
)


@given(st.dictionaries(WORDS | st.sampled_from(["cc_schemes", "uplink_trace", "runtime"]), VALUES))
def test_metadata_that_are_taken_can_be_written(content: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "cubic_datalink_run1.log").touch()
        (Path(name) / "pantheon_metadata.json").write_text(json.dumps(content))
        try:
            source = read_source(Path(name))
        except DataError as error:
            assert str(error).startswith(f"{name}/pantheon_metadata.json: ")
        else:
            told = json.dumps(source.metadata, ensure_ascii=False, allow_nan=False)
            assert told.encode() and "".join(source.schemes).encode()


def test_an_import_needs_neither_figures_nor_scenarios(data: Path, tmp_path: Path) -> None:
    """These take longer to import than a log of a million lines takes to read. (Arrays come with the package
    that writes results.parquet.)"""
    program = (
        "import sys\n"
        "from narrows.cli.all_commands import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        "heavy = ('matplotlib', 'yaml', 'narrows.scenario.model')\n"
        "print('imported:', [name for name in heavy if name in sys.modules])\n"
    )
    command = [sys.executable, "-P", "-c", program, "import", "pantheon", str(data), "--no-report"]
    done = subprocess.run([*command, "-o", tmp_path / "out"], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("imported: []\n"), done.stdout


def test_an_export_writes_into_its_folder_only(data: Path, tmp_path: Path) -> None:
    """Names of schemes become names of files in the same folder, for any content of a campaign."""
    done = import_folder(read_source(data), tmp_path / "in")
    done.folder.change(done.folder.cells[0].id, scheme="pantheon:../../elsewhere")
    export_campaign(done.folder, tmp_path / "out", lambda _: None)
    assert (tmp_path / "out" / "elsewhere_datalink_run1.log").is_file()
