"""Sweeps: designs, the data set, resuming, the stopping rule, engines, and the use of results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import narrows
from campaign_kit import edited
from narrows.cli.all_commands import app
from narrows.errors import DataError, ScenarioError, UnavailableError, UsageError
from narrows.statistics.runs import summarise
from narrows.sweep import designs
from narrows.sweep.effects import effects, points_of
from narrows.sweep.engines import engine
from narrows.sweep.execute import SweepRun
from narrows.sweep.loading import LoadedSweep, load_sweep
from narrows.sweep.merge import merge
from narrows.sweep.parts import digest_of
from narrows.sweep.store import SweepFolder, SweepRow
from narrows.sweep.work import DEFAULT_MEMORY
from processes import eventually, is_alive

SCENARIO = """\
schema: narrows/scenario/1
question: How does the queue depend on rate, delay and buffer?
where: simulate
path:
  forward: [{rate: 2 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}, {loss: 0.1 %}]
  backward: [{delay: 20 ms}]
schemes: [cubic, reno]
flows: {count: 2}
duration: DURATION
runs: 2
seed: 3
sweep:
"""
SWEEP = """\
  path.forward.0.rate: {loguniform: [1 Mbit/s, 10 Mbit/s]}
  path.forward.1.delay: {uniform: [5 ms, 50 ms], label: one way}
  path.forward.0.queue.droptail: [0.5 bdp, 1 bdp, 2 bdp]
  design: latin-hypercube
  points: 8
"""


def written(folder: Path, sweep: str = SWEEP, duration: str = "2 s") -> Path:
    file = folder / "space.yaml"
    file.write_text(SCENARIO.replace("DURATION", duration) + sweep)
    return file


def loaded(folder: Path, sweep: str = SWEEP, duration: str = "2 s") -> LoadedSweep:
    return load_sweep(str(written(folder, sweep, duration)), [])


def rows(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = SweepFolder.read(path).table().to_pylist()
    return sorted(found, key=lambda row: (row["cell"], row["flow"] or 0))


def run(sweep: LoadedSweep, path: Path, on: str | None = None, share: tuple[int, int] = (1, 1)) -> SweepRun:
    folder = SweepFolder.open(path, sweep)
    try:
        work = SweepRun(sweep, folder, engine(on), DEFAULT_MEMORY, share)
        work.run()
    finally:
        folder.close()
    return work


def problems(folder: Path, sweep: str) -> str:
    with pytest.raises(ScenarioError) as error:
        loaded(folder, sweep)
    return str(error.value)


# -- designs -------------------------------------------------------------------------------------


def test_a_grid_has_all_combinations_and_its_ends(tmp_path: Path) -> None:
    sweep = loaded(
        tmp_path,
        "  path.forward.0.rate: {uniform: [1 Mbit/s, 3 Mbit/s], steps: 3}\n"
        "  path.forward.1.delay: [10 ms, 30 ms]\n",
    )
    words = [tuple(point.words.values()) for point in sweep.sweep.points()]
    rates = ("1 Mbit/s", "2 Mbit/s", "3 Mbit/s")
    assert words == [(rate, delay) for rate in rates for delay in ("10 ms", "30 ms")]


def test_a_list_pairs_values_one_by_one(tmp_path: Path) -> None:
    text = "  path.forward.0.rate: [1 Mbit/s, 2 Mbit/s]\n  path.forward.1.delay: [10 ms, 30 ms]\n"
    text += "  design: list\n"
    sweep = loaded(tmp_path, text)
    words = [tuple(point.words.values()) for point in sweep.sweep.points()]
    assert words == [("1 Mbit/s", "10 ms"), ("2 Mbit/s", "30 ms")]
    assert "their numbers differ: 2 of rate, 1 of delay" in problems(tmp_path, text.replace(", 30 ms", ""))


def test_a_latin_hypercube_has_one_point_in_each_slice() -> None:
    points = list(designs.latin_hypercube(["a", "b", "c"], 5, 40))
    for column in zip(*points, strict=True):
        assert sorted(int(share * 40) for share in column) == list(range(40))
    assert points == list(designs.latin_hypercube(["a", "b", "c"], 5, 40))
    assert points != list(designs.latin_hypercube(["a", "b", "c"], 6, 40))


def test_sobol_points_are_even_and_more_of_them_keep_the_first() -> None:
    pytest.importorskip("scipy")
    points = list(designs.sobol(["a", "b"], 5, 256))
    assert len(set(points)) == 256
    assert points[:100] == list(designs.sobol(["a", "b"], 5, 100))
    for one in range(4):
        for other in range(4):
            inside = [p for p in points if int(p[0] * 4) == one and int(p[1] * 4) == other]
            assert 12 <= len(inside) <= 20  # 16 each, but for the shift


def test_constraints_leave_points_out(tmp_path: Path) -> None:
    for design in ("random", "latin-hypercube", "grid"):
        number = "" if design == "grid" else "  points: 30\n"
        sweep = loaded(
            tmp_path,
            "  path.forward.0.rate: {uniform: [1 Mbit/s, 9 Mbit/s]}\n"
            "  path.forward.1.delay: {uniform: [5 ms, 45 ms]}\n"
            f"  design: {design}\n{number}  constraints: [rate x delay < 20 kB, delay >= 10 ms]\n",
        )
        points = list(sweep.sweep.points())
        assert len(points) == 30 if design == "random" else 0 < len(points) < 30
        assert [point.number for point in points] == list(range(len(points)))
        for point in points:
            rate = float(sweep.scenario_at(point).to_json()["network"]["forward"][0]["rate"]["rate"])
            delay = float(sweep.scenario_at(point).to_json()["network"]["forward"][1]["delay"])
            assert rate * delay / 8e9 < 20_001
            assert delay >= 9_999_000


@pytest.mark.parametrize(
    ("sweep", "says"),
    [
        ("  path.forward.0.rate: {unform: [1 Mbit/s, 2 Mbit/s]}\n", "uniform"),
        (
            "  path.forward.0.rate: [1 Mbit/s]\n  design: sobel\n",
            'design "sobel" does not exist; did you mean "sobol"',
        ),
        ("  path.forward.0.rate: [1 Mbit/s]\n  points: 5\n", "follows from its values"),
        ("  runs: [1, 2]\n", "runs is the same for a whole sweep"),
        ("  path.forward.0.rate: [1 Mbit/s]\n  constraints: [rate < 5 ms]\n", "are not of one kind"),
        ("  path.forward.0.rate: [1 Mbit/s]\n  constraints: [rate]\n", "must compare two expressions"),
        (
            "  path.forward.0.rate: [1 Mbit/s]\n  constraints: [rate > 5 Mbit/s]\n",
            "no point keeps all constraints",
        ),
        (
            "  path.forward.0.rate: [1 Mbit/s]\n  until: {metric: delay_p96_ns, within: 5 %}\n",
            'metric "delay_p96_ns" does not exist; did',
        ),
        ("  path.forward.0.rate: [1 Mbit/s]\n  until: {metric: delay_p95_ns, within: 5 %}\n", "needs 6 runs"),
        ("  design: grid\n", "needs a key with values"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(tmp_path: Path, sweep: str, says: str) -> None:
    told = problems(tmp_path, sweep)
    assert says in told
    assert "\n" not in told


def test_a_point_that_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"at point 0 \(rate 0 Mbit/s\).*rate"):
        loaded(tmp_path, "  path.forward.0.rate: [0 Mbit/s]\n")


# -- cells and the data set ----------------------------------------------------------------------


def test_numbers_are_those_of_an_ordinary_campaign(tmp_path: Path) -> None:
    run(loaded(tmp_path), tmp_path / "sweep")
    point = next(row for row in rows(tmp_path / "sweep") if row["point"] == 5)
    text = written(tmp_path).read_text().partition("sweep:\n")[0]
    campaign = narrows.run(
        text,
        tmp_path / "campaign",
        set={
            "path.forward.0.rate": f"{point['rate_bps']:.0f} bit/s",
            "path.forward.1.delay": f"{point['one_way_ns']:.0f} ns",
            "path.forward.0.queue.droptail": f"{point['droptail_bdp']} bdp",
        },
        progress=False,
    )
    ordinary = {(row["scheme"], row["run"], row["flow"]): row for row in campaign.results.to_pylist()}
    compared = 0
    for row in rows(tmp_path / "sweep"):
        if row["point"] == 5:
            same = ordinary[row["scheme"], row["run"], row["flow"]]
            for name in SweepFolder.read(tmp_path / "sweep").document.metrics:
                assert row[name] == same[name], name
            assert row["verdict"] == same["verdict"]
            assert row["seed"] == same["seed"]
            compared += 1
    assert compared == 2 * 2 * 3


def test_engines_give_the_same_and_shares_make_a_whole(tmp_path: Path) -> None:
    sweep = loaded(tmp_path)
    run(sweep, tmp_path / "threads")
    run(sweep, tmp_path / "processes", "local:2")
    for number in (1, 2, 3):
        run(sweep, tmp_path / f"task-{number}", share=(number, 3))
    tasks = [tmp_path / f"task-{number}" for number in (1, 2, 3)]
    found = merge(tmp_path / "merged", tasks)
    assert (found.added, found.known, found.failed) == (32, 0, 0)
    assert merge(tmp_path / "merged", tasks[:2]).added == 0
    for other in ("processes", "merged"):
        assert rows(tmp_path / other) == rows(tmp_path / "threads")
    # The merged sweep is complete.
    assert run(sweep, tmp_path / "merged").known == 32
    assert len(list((tmp_path / "merged").glob("data/*/*.parquet"))) == 2


def test_another_sweep_is_not_mixed_in(tmp_path: Path) -> None:
    run(loaded(tmp_path, "  path.forward.0.rate: [1 Mbit/s]\n"), tmp_path / "a")
    other = loaded(tmp_path, "  path.forward.0.rate: [2 Mbit/s]\n")
    with pytest.raises(UsageError, match="holds another sweep"):
        SweepFolder.open(tmp_path / "a", other)
    run(other, tmp_path / "b")
    with pytest.raises(DataError, match="holds another sweep"):
        merge(tmp_path / "a", [tmp_path / "b"])


def test_equal_cells_run_once(tmp_path: Path) -> None:
    sweep = loaded(
        tmp_path,
        "  path.forward.0.rate: {choice: [1 Mbit/s, 2 Mbit/s]}\n  design: random\n  points: 20\n",
    )
    assert run(sweep, tmp_path / "out").known == 2 * 2 * 2


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "narrows", "sweep", "run", "space.yaml", "-o", "out", *more]
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def wait_for_parts(folder: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while not list(folder.glob("out/data/*/part-*.parquet")):
        assert process.poll() is None, "it has ended already"
        assert time.monotonic() < until
        time.sleep(0.05)


LONG = SWEEP.replace("points: 8", "points: 60")


def test_a_killed_sweep_resumes_and_runs_nothing_twice(tmp_path: Path) -> None:
    """With processes as workers; threads: test_kills.py."""
    sweep = loaded(tmp_path, LONG, "100 s")
    process = start(tmp_path, "--on", "local:2")
    wait_for_parts(tmp_path, process)
    # It can be read while it grows.
    there = narrows.query("select count(distinct cell) n from results", tmp_path / "out").to_pylist()
    assert 0 < there[0]["n"] < 240
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stderr
    process.stderr.close()
    before = {row["cell"] for row in rows(tmp_path / "out")}
    work = run(sweep, tmp_path / "out", "local:2")
    assert work.known == 240
    after = [row["cell"] for row in rows(tmp_path / "out") if row["flow"] is None]
    assert len(after) == len(set(after)) == 240
    assert before < set(after)
    # A quarter of the points, without a pause.
    run(sweep, tmp_path / "whole", share=(1, 4))
    whole = rows(tmp_path / "whole")
    chosen = {row["cell"] for row in whole}
    assert len(chosen) == 60
    assert [row for row in rows(tmp_path / "out") if row["cell"] in chosen] == whole


def test_ctrl_c_keeps_what_is_finished(tmp_path: Path) -> None:
    written(tmp_path, LONG, "100 s")
    process = start(tmp_path)
    wait_for_parts(tmp_path, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"are finished and kept in out" in said
    # It did not wait for the others.
    assert 0 < len({row["cell"] for row in rows(tmp_path / "out")}) < 240


def test_a_cell_that_takes_too_much_memory_fails_alone(tmp_path: Path) -> None:
    text = (
        "  path.forward.0.rate: [1 Mbit/s, 2 Gbit/s]\n  path.forward.2.loss: [0.1 %, 0 %]\n  design: list\n"
    )
    file = written(tmp_path, text, "10 s")
    limits = ["--memory", "20 MB", "--schemes", "cubic", "--json"]
    words = ["sweep", "run", str(file), "-o", str(tmp_path / "out"), *limits]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 6
    document = json.loads(result.stdout)
    assert document["cells"] == 2
    assert {one["point"] for one in document["failed"]} == {1}
    assert "more memory than the 20 MB" in document["failed"][0]["message"]


# -- the stopping rule ---------------------------------------------------------------------------

UNTIL = """\
  path.forward.2.loss: [0.01 %, 2 %]
  until: {metric: throughput_bps, flow: 1, within: 4 %, most: 20}
"""


def test_points_get_runs_until_the_interval_is_narrow(tmp_path: Path) -> None:
    file = written(tmp_path, UNTIL)
    file.write_text(file.read_text().replace("runs: 2", "runs: 6"))
    sweep = load_sweep(str(file), [])
    run(sweep, tmp_path / "out")
    by: dict[tuple[int, str], list[float]] = {}
    for row in rows(tmp_path / "out"):
        if row["flow"] == 1:
            by.setdefault((row["point"], row["scheme"]), []).append(row["throughput_bps"])
    assert {len(values) for values in by.values()} <= {6, 9, 13, 19, 20}
    assert len({len(values) for values in by.values()}) > 1
    for values in by.values():
        if len(values) < 20:
            summary = summarise(values)
            low, high = summary.ci95 or (0, 0)
            assert (high - low) / 2 <= 0.04 * (summary.median or 0.0)
    # Interrupted at any point, it ends the same.
    some = rows(tmp_path / "out")
    folder = SweepFolder.open(tmp_path / "again", sweep)
    own = [SweepRow(row["scheme"], row["cell"], row) for row in some if row["run"] in (1, 2, 5, 8)]
    folder.adopt(own)
    folder.end("interrupted", [])
    folder.close()
    run(sweep, tmp_path / "again", "local:2")
    assert rows(tmp_path / "again") == some


# -- what is made of it --------------------------------------------------------------------------


def test_effects_find_what_matters(tmp_path: Path) -> None:
    run(loaded(tmp_path, LONG), tmp_path / "out")
    folder = SweepFolder.read(tmp_path / "out")
    for one in points_of(folder, "throughput_bps"):
        found = effects(one)
        assert found.main["rate_bps"] > 0.85
        assert found.main["one_way_ns"] < 0.1
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "out")])
    assert "rate" in shown.stdout
    document = CliRunner().invoke(
        app, ["sweep", "show", str(tmp_path / "out"), "--metric", "delay_p95_ns", "--json"]
    )
    assert {one["scheme"] for one in json.loads(document.stdout)} == {"cubic", "reno"}
    for figure in ("surface", "effects"):
        picture = tmp_path / f"{figure}.png"
        drawn = CliRunner().invoke(
            app, ["plot", str(tmp_path / "out"), "--figure", figure, "-o", str(picture)]
        )
        assert drawn.exit_code == 0, drawn.output
        assert picture.stat().st_size > 10_000
        assert picture.with_suffix(".csv").read_text().startswith("scheme,metric")


def test_a_matrix_has_surfaces_too(tmp_path: Path) -> None:
    text = written(tmp_path).read_text().partition("sweep:\n")[0]
    text += "matrix: {path.forward.0.rate: [1 Mbit/s, 2 Mbit/s], path.forward.1.delay: [10 ms, 20 ms]}\n"
    narrows.run(text, tmp_path / "campaign", progress=False)
    picture = str(tmp_path / "x.svg")
    for figure in ("surface", "effects"):
        drawn = CliRunner().invoke(
            app, ["plot", str(tmp_path / "campaign"), "--figure", figure, "-o", picture]
        )
        assert drawn.exit_code == 0, drawn.output


def test_narrows_run_runs_a_sweep_and_a_damaged_part_is_named(tmp_path: Path) -> None:
    file = written(tmp_path)
    out = str(tmp_path / "out")
    assert CliRunner().invoke(app, ["run", str(file), "--set", "sweep.points=2", "-o", out]).exit_code == 0
    part = next((tmp_path / "out").glob("data/*/*.parquet"))
    part.write_bytes(part.read_bytes()[:200])
    with pytest.raises(DataError, match="was changed after it was written"):
        SweepFolder.read(tmp_path / "out").table()
    assert CliRunner().invoke(app, ["check", str(file)]).exit_code != 0


def test_commands_that_need_records_refuse_a_sweep(tmp_path: Path) -> None:
    run(loaded(tmp_path, "  path.forward.0.rate: [1 Mbit/s]\n"), tmp_path / "a")
    for command in ("check", "compare", "report"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "a")])
        assert isinstance(done.exception, DataError), (command, done.output)
        assert "holds a sweep" in str(done.exception) and "narrows sweep show" in str(done.exception)
    with pytest.raises(DataError, match="narrows query"):
        narrows.load(tmp_path / "a")


def test_unknown_and_unavailable_engines_are_refused(tmp_path: Path) -> None:
    for wrong in ("slurm", "local:x", "local:0"):
        with pytest.raises(UsageError, match="--on"):
            engine(wrong)
    with pytest.raises(UnavailableError, match="dask"):
        engine("dask:tcp://127.0.0.1:9")


def test_invalid_and_failed_points_are_counted(tmp_path: Path) -> None:
    """For a sweep whose data has an invalid cell, and a cell that failed: show, ls and the site
    report both."""
    import pyarrow.parquet as pq

    sweep = loaded(tmp_path)
    run(sweep, tmp_path / "out")
    folder = SweepFolder.read(tmp_path / "out")
    part = folder.parts[0]
    table = pq.read_table(part)
    cell = table["cell"][0].as_py()
    point, scheme = table["point"][0].as_py(), table["scheme"][0].as_py()
    verdicts = ["invalid" if one == cell else "ok" for one in table["cell"].to_pylist()]
    place = table.schema.get_field_index("verdict")
    pq.write_table(table.set_column(place, table.schema.field(place), [verdicts]), part)
    with edited(tmp_path / "out" / "sweep.json") as document:
        document["failed"] = [{"point": 9999, "scheme": scheme, "run": 1, "message": "it crashed"}]
        document["parts"][f"{part.parent.name}/{part.name}"] = digest_of(part.read_bytes())
    shown = CliRunner().invoke(app, ["sweep", "show", str(tmp_path / "out"), "--json"])
    (found,) = [one for one in json.loads(shown.stdout) if one["scheme"] == scheme]
    assert (found["cells"]["invalid"], found["cells"]["failed"]) == (1, 1)
    assert found["points_with_invalid"] == 1 and found["points_with_failed"] == 1
    text = CliRunner().invoke(app, ["sweep", "show", str(tmp_path / "out")]).stdout
    assert "1 invalid, 1 failed" in text and "1 with an invalid cell" in text
    listed = json.loads(CliRunner().invoke(app, ["ls", str(tmp_path), "--json"]).stdout)
    (line,) = listed["campaigns"]
    assert line["plane"] == "sweep" and "1 invalid" in line["verdicts"] and "points)" in line["verdicts"]
    site = tmp_path / "site"
    assert CliRunner().invoke(app, ["site", str(tmp_path / "out"), "-o", str(site)]).exit_code == 0
    assert "1 invalid" in (site / "index.html").read_text()
    (page,) = (site / "sweeps").glob("*/index.html")
    assert "with an invalid cell" in page.read_text()
    assert point is not None


_WORKERS = """
import os, time
def work(_):
    time.sleep(0.1)
    return os.getpid()
if __name__ == "__main__":
    from narrows.sweep.engines import processes
    executor = processes(2)
    print(*{future.result() for future in [executor.submit(work, n) for n in range(8)]}, flush=True)
    time.sleep(600)
"""


def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_WORKERS)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [int(word) for word in parent.stdout.readline().split()]
        parent.kill()
    assert workers
    eventually("the workers have ended", lambda: not any(map(is_alive, workers)), 60)
