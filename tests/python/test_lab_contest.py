"""Contests: submitted schemes ranked over paths that their authors do not know."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shell_kit
from campaign_kit import narrows, sentence
from narrows.documents.data import from_data, to_data
from narrows.documents.lessons import Contest
from narrows.errors import DataError, UsageError
from narrows.lab.contest import Entrant, Rules, for_students, power, ranking, ranks
from narrows.lab.submissions import Submission

ROOT = Path(__file__).resolve().parents[2]
RULES = Rules("simulate", 60)
NAN = float("nan")
SCENARIO = """\
schema: narrows/scenario/1
question: Who has the most power here?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 4 bdp}}, {delay: 10 ms}]}
schemes: [reno]
duration: 3 s
runs: 2
"""


# -- order ---------------------------------------------------------------------------------------


def entrant(name: str, *paths: list[float]) -> Entrant:
    return Entrant(Submission(name, Path(name)), list(paths))


def table(document: Contest | dict[str, Any], key: str) -> dict[str, Any]:
    contest = from_data(document, Contest) if isinstance(document, dict) else document
    return {place.name: getattr(place, key) for place in contest.ranking}


def test_equal_values_share_a_rank_and_failures_are_last() -> None:
    assert ranks(np.array([3.0, 1.0, 2.0])).tolist() == [1, 3, 2]
    assert ranks(np.array([2.0, 2.0, 1.0])).tolist() == [1.5, 1.5, 3]
    assert ranks(np.array([NAN, 0.0, NAN])).tolist() == [2.5, 1, 2.5]
    assert ranks(np.array([NAN, NAN])).tolist() == [1.5, 1.5]


def test_the_mean_rank_decides_and_not_the_size_of_a_lead() -> None:
    found = ranking(
        [
            entrant("steady", [5.0], [5.0], [5.0]),
            entrant("wild", [900.0], [4.0], [4.0]),
            entrant("slow", [1.0], [1.0], [1.0]),
        ],
        ["a", "b", "c"],
        RULES,
    )
    assert [place.name for place in found.ranking] == ["steady", "wild", "slow"]
    assert table(found, "place") == {"steady": 1, "wild": 2, "slow": 3}
    assert table(found, "score") == pytest.approx({"steady": 4 / 3, "wild": 5 / 3, "slow": 3})
    assert table(found, "won") == {"steady": 2, "wild": 1, "slow": 0}
    # Other paths might have exchanged the first two, but would not have moved the third.
    assert (table(found, "place_low")["slow"], table(found, "place_high")["slow"]) == (3, 3)
    assert (table(found, "place_low")["wild"], table(found, "place_high")["wild"]) == (1, 2)


def test_ties_share_a_place_and_the_next_one_is_left_out() -> None:
    found = ranking([entrant(name, [1.0, 3.0]) for name in "ab"] + [entrant("c", [1.0, 1.0])], ["p"], RULES)
    assert table(found, "place") == {"a": 1, "b": 1, "c": 3}
    assert table(found, "score") == {"a": 1.5, "b": 1.5, "c": 3}


def test_failures_on_a_path_are_ranked_last_there() -> None:
    found = ranking(
        [entrant("fails", [NAN, NAN], [9.0, 9.0]), entrant("continues", [0.01, 0.01], [1.0, 1.0])],
        ["hard", "easy"],
        RULES,
    )
    assert table(found, "score") == {"fails": 1.5, "continues": 1.5}
    assert table(found, "failed") == {"fails": 1, "continues": 0}
    assert table(found, "values")["fails"] == [None, 9.0]


def test_names_of_paths_are_hidden() -> None:
    found = ranking([entrant("a", [1.0]), entrant("b", [2.0])], ["satellite"], RULES)
    assert "satellite" not in json.dumps(to_data(for_students(found, per_path=True)))
    shown = to_data(for_students(found, per_path=False))
    assert "values" not in shown["ranking"][0]
    assert found.paths == ["satellite"]


# -- a contest -----------------------------------------------------------------------------------


def contest(place: Path, scenarios: dict[str, str], submissions: dict[str, str]) -> tuple[Path, Path]:
    """Folders with the paths and with the submissions."""
    for folder, files in (("paths", scenarios), ("in", submissions)):
        (place / folder).mkdir()
        for name, text in files.items():
            (place / folder / name).write_text(text)
    return place / "paths", place / "in"


def test_a_contest_continues_whatever_a_submission_does(tmp_path: Path) -> None:
    lossy = SCENARIO.replace("{delay: 10 ms}", "{delay: 10 ms}, {loss: 1 %}")
    several = SCENARIO + "matrix: {path.forward.1.delay: [5 ms, 40 ms]}\n"
    paths, submitted = contest(
        tmp_path,
        {"deep.yaml": SCENARIO, "lossy.yaml": lossy, "several.yaml": several},
        {
            "ada.yaml": "vegas\n",
            "bob.yaml": "scheme: exp\nbeta: 0.9\n",
            "carl.yaml": "{scheme: exp, gamma: 7}\n",
            "dora.yaml": "[this, is, no scheme]\n",
            "eve.yaml": "cubik\n",
            "notes.txt": "nobody\n",
        },
    )
    out = tmp_path / "out"
    done = narrows("lab", "contest", paths, submitted, "-o", out, "--per-path", "--json")
    assert done.exit_code == 6, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert shown == json.loads((out / "ranking.json").read_text())
    assert shown["paths"] == ["path 1", "path 2", "path 3", "path 4"]
    assert table(shown, "failed") == {"ada": 0, "bob": 0, "carl": 4, "dora": 4, "eve": 4}
    assert table(shown, "place")["carl"] == 3 and table(shown, "place")["eve"] == 3
    problems = table(shown, "problems")
    assert problems["ada"] == problems["bob"] == []
    assert "gamma" in problems["carl"][0] and "is not a scheme" in problems["dora"][0]
    assert "cubik" in problems["eve"][0] and "cubic" in problems["eve"][0]
    # A deep queue: a scheme that keeps it empty has more power.
    ada, bob = table(shown, "values")["ada"], table(shown, "values")["bob"]
    assert ada[0] > bob[0] and None not in [*ada, *bob]
    for hidden in ("lossy", "several", str(paths)):
        for name in ("ranking.html", "ranking.csv", "ranking.json"):
            assert hidden not in (out / name).read_text(), (hidden, name)
    lines = list(csv.DictReader((out / "ranking.csv").read_text().splitlines()))
    assert [line["name"] for line in lines] == [one["name"] for one in shown["ranking"]]
    assert float(lines[0]["path 1 power"]) == pytest.approx(shown["ranking"][0]["values"][0], rel=1e-5)
    whole = json.loads((out / "contest.json").read_text())
    assert whole["paths"] == ["deep", "lossy", "several 1", "several 2"]
    # The same command finds everything complete, and prints the same.
    records = {path: path.stat().st_mtime_ns for path in out.rglob("run.json")}
    assert len(records) == 2 * 4 * 2
    again = narrows("lab", "contest", paths, submitted, "-o", out)
    assert again.exit_code == 6
    assert records == {path: path.stat().st_mtime_ns for path in out.rglob("run.json")}
    assert "path 1" not in again.stdout and "eve: " in again.stdout
    assert all(len(line) <= 80 for line in again.stdout.splitlines() if line[:1].isdigit())


def test_a_failure_on_one_path_does_not_end_the_others(tmp_path: Path) -> None:
    """Sprout generates its media, and sends no file."""
    file = SCENARIO + "flows: {traffic: {transfer: 100 kB}}\n"
    paths, submitted = contest(
        tmp_path, {"a file.yaml": file, "two.yaml": SCENARIO}, {"s.yaml": "sprout\n", "r.yaml": "reno\n"}
    )
    done = narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out", "--per-path", "--json")
    assert done.exit_code == 6, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert table(shown, "failed") == {"s": 1, "r": 0}
    values = table(shown, "values")["s"]
    assert values[0] is None and values[1] > 0
    (problem,) = table(shown, "problems")["s"]
    assert "a file" not in problem


def test_power_is_that_of_the_own_flows() -> None:
    one = {"throughput_bps": 2e6, "delay_p95_ns": 20e6}
    other = {"throughput_bps": 1e6, "delay_p95_ns": 50e6}
    assert power([one]) == pytest.approx(100)
    assert power([one, other]) == pytest.approx(60)
    for silent in ({"throughput_bps": 0.0, "delay_p95_ns": None}, {"throughput_bps": None}):
        assert np.isnan(power([silent])) and np.isnan(power([one, silent]))


def test_submissions_that_exceed_their_time_are_last(tmp_path: Path) -> None:
    """The submission's own program: here one that never ends and simulates nothing."""
    if shutil.which("cargo") is None or shutil.which("prlimit") is None:
        pytest.skip("needs cargo and prlimit")
    paths, submitted = contest(tmp_path, {"one.yaml": SCENARIO}, {"good.yaml": "reno\n"})
    for name, main in (
        ("endless", "fn main() { let mut n = 0u64; loop { n = std::hint::black_box(n.wrapping_add(1)); } }"),
        ("crashing", 'fn main() { panic!("no idea"); }'),
        ("silent", "fn main() {}"),
        ("broken", "fn main() { this is not a program }"),
    ):
        crate = submitted / name
        (crate / "src").mkdir(parents=True)
        manifest = f'[package]\nname = "{name}"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n'
        (crate / "Cargo.toml").write_text(manifest)
        (crate / "src" / "main.rs").write_text(main)
    done = narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out", "--limit", "1 s", "--json")
    assert done.exit_code == 6, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert shown["ranking"][0]["name"] == "good"
    assert table(shown, "place") == {"good": 1, "endless": 2, "crashing": 2, "silent": 2, "broken": 2}
    problems = table(shown, "problems")
    assert problems["endless"] == ["a run took more than 1 s of processor time"]
    assert "no idea" in problems["crashing"][0] or "exit code 101" in problems["crashing"][0]
    assert "without leaving a record" in problems["silent"][0]
    assert problems["broken"][0].startswith("it can't be built: error")


@pytest.mark.study
@pytest.mark.timeout(600)
def test_a_crate_can_be_a_submission(tmp_path: Path) -> None:
    """The example's crate, built where its tests were built."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo")
    lone = SCENARIO.replace(
        "schemes: [reno]", "schemes: [reno]\nflows: [{label: a}, {scheme: vegas, label: b}]"
    )
    paths, submitted = contest(tmp_path, {"one.yaml": SCENARIO, "two.yaml": lone}, {"reno.yaml": "reno\n"})
    (submitted / "aimd").symlink_to(ROOT / "examples" / "own-scheme")
    out = tmp_path / "out"
    out.mkdir()
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "examples" / "own-scheme" / "target")
    target.mkdir(exist_ok=True)
    (out / "build").symlink_to(target)
    done = narrows("lab", "contest", paths, submitted, "-o", out, "--per-path", "--json")
    assert done.exit_code == 0, (done.output, done.exception)
    values = table(json.loads(done.stdout), "values")
    # Textbook AIMD is nearly Reno, but not quite: beside Vegas both get a different share.
    assert values["aimd"] == pytest.approx(values["reno"], rel=0.2)
    assert values["aimd"][1] != values["reno"][1] and values["aimd"][1] < values["aimd"][0]
    flows = json.loads((out / "runs" / "aimd" / "two" / "results.json").read_text())["rows"]
    assert {row["flow_scheme"] for row in flows if row["flow"] is not None} == {"exp", "vegas"}


def test_a_busy_machine_costs_no_submission_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no run of an emulated path is valid, it is repeated a limited number of times."""
    handed_in = {f"{name}.yaml": "linux:reno\n" for name in ("busy", "calm", "spoilt")}
    paths, submitted = contest(tmp_path, {"one.yaml": SCENARIO}, handed_in)
    places: dict[str, list[str]] = {}

    def play(entrant: Entrant, _course: Any, place: Path, *rest: Any, **_words: Any) -> list[str]:
        tried = places.setdefault(entrant.submission.name, [])
        tried.append(str(place.relative_to(tmp_path / "out")))
        valid = {"busy": len(tried) == 2, "calm": True, "spoilt": False}[entrant.submission.name]
        if valid:
            rest[2][0][1] = 7.0
        # With one valid run of two a path counts.
        return ["late"] if not valid or entrant.submission.name == "calm" else []

    monkeypatch.setattr("narrows.lab.contest._play", play)
    words = ("lab", "contest", paths, submitted, "-o", tmp_path / "out", "--where", "emulate", "--json")
    done = narrows(*words)
    assert done.exit_code == 6, (done.output, done.exception)
    shown = json.loads(done.stdout)
    assert places == {
        "busy": ["runs/busy/one", "again/busy/one/2"],
        "calm": ["runs/calm/one"],
        "spoilt": ["runs/spoilt/one", "again/spoilt/one/2", "again/spoilt/one/3"],
    }
    assert table(shown, "place") == {"busy": 1, "calm": 1, "spoilt": 3}
    assert table(shown, "problems") == {"busy": [], "calm": ["late"], "spoilt": ["late"]}


def test_a_contest_in_which_nothing_runs_has_a_ranking(tmp_path: Path) -> None:
    paths, submitted = contest(tmp_path, {"one.yaml": SCENARIO}, {})
    (submitted / "crate").mkdir()
    (submitted / "crate" / "Cargo.toml").write_text("")
    done = narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out", "--where", "emulate")
    assert done.exit_code == 6, (done.output, done.exception)
    assert "a crate can be simulated alone" in (tmp_path / "out" / "ranking.csv").read_text()


@pytest.mark.system
def test_objects_for_the_kernel_compete_emulated(tmp_path: Path) -> None:
    clang = os.environ.get("CLANG") or shutil.which("clang")
    if refusal := shell_kit.refusal() or ("" if clang else "needs clang"):
        pytest.skip(refusal)
    paths, submitted = contest(
        tmp_path, {"one.yaml": SCENARIO.replace("runs: 2", "runs: 1")}, {"kernel.yaml": "linux:reno\n"}
    )
    # The example of the guide, as a student would build it.
    page = (ROOT / "docs" / "guide" / "kernel-schemes.md").read_text()
    source = tmp_path / "my_cc.bpf.c"
    source.write_text(page.partition("```c\n")[2].partition("```")[0])
    target = submitted / "gentle.bpf.o"
    subprocess.run([str(clang), "-O2", "-g", "-target", "bpf", "-c", source, "-o", target], check=True)
    (submitted / "bad.bpf.o").write_bytes(b"\x7fELF and nothing more")
    (submitted / "crate").mkdir()
    (submitted / "crate" / "Cargo.toml").write_text("")
    words = ("lab", "contest", paths, submitted, "-o", tmp_path / "out", "--where", "emulate", "--json")
    done = narrows(*words)
    assert done.exit_code == 6, (done.output, done.exception)
    shown = json.loads(done.stdout)
    places = table(shown, "place")
    assert (places["bad"], places["crate"]) == (3, 3) and {places["kernel"], places["gentle"]} <= {1, 2}
    assert table(shown, "failed") == {"kernel": 0, "gentle": 0, "bad": 1, "crate": 1}
    assert table(shown, "problems")["gentle"] == []
    assert "a crate can be simulated alone" in table(shown, "problems")["crate"][0]
    assert table(shown, "problems")["bad"]


def test_folders_without_a_contest_are_refused(tmp_path: Path) -> None:
    paths, submitted = contest(tmp_path, {"one.yaml": SCENARIO}, {"a.yaml": "reno\n"})
    (tmp_path / "none").mkdir()
    for words, said, kind in (
        ((tmp_path / "none", submitted), "there is no scenario", DataError),
        ((paths, tmp_path / "none"), "no submission exists", DataError),
        ((paths, tmp_path / "nowhere"), "does not exist", DataError),
        ((paths, submitted, "--where", "hosts"), "simulate or emulate", UsageError),
        ((paths, submitted, "--limit", "soon"), "--limit", UsageError),
    ):
        done = narrows("lab", "contest", *words, "-o", tmp_path / "out")
        assert isinstance(done.exception, kind), (words, done.output)
        assert said in sentence(done)
    (submitted / "a.bpf.o").write_bytes(b"")
    assert "two submissions" in sentence(narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out"))
    (paths / "one.yaml").write_text(SCENARIO + "flows: [{label: a}, {scheme: exp, label: b}]\n")
    (submitted / "a.bpf.o").unlink()
    assert "exp represents" in sentence(narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out"))
    (paths / "one.yaml").write_text("schema: narrows/scenario/1\nquestion: What?\n")
    done = narrows("lab", "contest", paths, submitted, "-o", tmp_path / "out")
    assert isinstance(done.exception, DataError)
