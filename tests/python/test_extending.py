"""Extensions with the real compiler: examples are added, simulated, emulated, removed without a trace.

The target folder is that of the tree, so that dependencies are not compiled again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from narrows import extended
from narrows.extend import crates
from narrows.extend.kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")

SCENARIO = """\
schema: narrows/scenario/1
question: Do extensions run?
where: simulate
path:
  forward:
    - {rate: {RATE}, queue: {QUEUE}}
    - LINK
    - {delay: 10 ms}
  backward:
    - {delay: 10 ms}
schemes: [SCHEMES]
flows:
  - {label: bulk}
  - {traffic: {TRAFFIC}, label: noise}
duration: 4 s
seed: 1
"""
OURS = {
    "RATE": "ramp: {low: 4 Mbit/s, high: 12 Mbit/s, period: 1 s}",
    "QUEUE": "randomdrop: 40 kB",
    "LINK": "{biterrors: 0.00002 %}",
    "SCHEMES": "aimd, reno",
    "TRAFFIC": "imix: 1 Mbit/s",
}
#: Crates that compute for seconds only: optimising them would take longer.
PROFILE = "[profile.release.package.{}]\nopt-level = 0\ndebug = false\n"


class User:
    """A user whose extensions are in a folder of the target folder."""

    def __init__(self, home: Path) -> None:
        self.base = home / "data" / "narrows" / "extensions"
        self._environment = {
            **os.environ,
            "XDG_DATA_HOME": str(home / "data"),
            "CARGO_TARGET_DIR": str(TARGET),
            extended.VARIABLE: "",
        }

    def narrows(self, *words: object, where: Path | None = None) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "narrows", *map(str, words)]
        return subprocess.run(
            line, capture_output=True, text=True, cwd=where, env=self._environment, timeout=3000
        )

    def done(self, *words: object, where: Path | None = None) -> str:
        result = self.narrows(*words, where=where)
        assert result.returncode == 0, (words, result.stdout, result.stderr)
        return result.stdout


@pytest.fixture
def user() -> User:
    if shutil.which("cargo") is None or shutil.which("clang") is None:
        pytest.skip("needs cargo and clang")
    home = TARGET / "tmp" / "extending"
    (home / ".cargo").mkdir(parents=True, exist_ok=True)
    manifests = [*ROOT.glob("core/*/Cargo.toml"), *ROOT.glob("drivers/**/Cargo.toml")]
    manifests += [
        ROOT / name / "Cargo.toml"
        for name in ("formats", "agent", "python/binding", "bpf", "bpf/programs", "bpf/loader")
    ]
    names = sorted(
        line.split('"')[1]
        for file in manifests
        for line in file.read_text().splitlines()
        if line.startswith('name = "narrows-')
    )
    config = "".join(PROFILE.format(name) for name in names)
    (home / ".cargo" / "config.toml").write_text(config)
    user = User(home)
    # The set of a former run that failed.
    for left in [user.base / extended.CURRENT, user.base / extended.PROJECTS]:
        left.unlink(missing_ok=True)
    return user


def scenario(folder: Path, values: Mapping[str, str], name: str = "own.yaml") -> Path:
    text = SCENARIO
    for word, value in values.items():
        text = text.replace(word, value)
    (folder / name).write_text(text)
    return folder / name


def versions(cell: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads((cell / "run.json").read_text())["versions"]
    return known


def combined(folder: Path) -> Path:
    """All examples in one crate, so that Narrows is compiled once."""
    lines = [
        "[package]",
        'name = "own-all"',
        'version = "0.3.0"',
        'edition = "2024"',
        "[package.metadata.narrows]",
    ]
    for directory in ("src", "tests"):
        (folder / directory).mkdir(parents=True)
    for kind, known in KINDS.items():
        example = ROOT / "examples" / known.example
        lines.append(f'{kind} = ["{known.entry}"]')
        shutil.copy(example / "src" / f"{known.entry}.rs", folder / "src")
        if kind != "scheme":
            tests = (example / "tests" / "conformance.rs").read_text()
            tests = tests.replace(f"{known.example.replace('-', '_')}::", "own_all::")
            (folder / "tests" / f"{kind}.rs").write_text(tests)
    modules = "".join(f"pub mod {known.entry};\n" for known in KINDS.values())
    (folder / "src" / "lib.rs").write_text(f"//! All examples.\n{modules}")
    lines += [
        "[dependencies]",
        *(f'narrows-{name} = "0.1"' for name in ("cc", "net", "record", "traffic", "units")),
    ]
    lines += ['serde_json = "1"', "[dev-dependencies]", 'narrows-cell = "0.1"', 'narrows-sim = "0.1"']
    (folder / "Cargo.toml").write_text("\n".join(lines) + "\n")
    return folder


def check_sweep_and_contest(user: User, folder: Path, values: Mapping[str, str], identity: str) -> None:
    """Sweeps and contests take the entries of extensions, and a sweep names their crates."""
    space = scenario(folder, values, "space.yaml")
    with space.open("a") as file:
        file.write("sweep: {path.forward.2.delay: [5 ms, 10 ms], design: grid}\n")
    user.done("sweep", "run", space, "-o", folder / "space")
    assert identity in (folder / "space" / "sweep.json").read_text()
    (folder / "paths").mkdir()
    scenario(folder / "paths", values)
    (folder / "submissions").mkdir()
    for name, scheme in (("mine", values["SCHEMES"].split(",")[0]), ("theirs", "reno")):
        (folder / "submissions" / f"{name}.yaml").write_text(f"{{scheme: {scheme}}}\n")
    words = ("lab", "contest", folder / "paths", folder / "submissions", "-o", folder / "contest", "--json")
    ranking = json.loads(user.done(*words))["ranking"]
    assert sorted(row["name"] for row in ranking) == ["mine", "theirs"]
    assert all(row["failed"] == 0 for row in ranking), ranking


@pytest.mark.study
@pytest.mark.system
@pytest.mark.timeout(3600)
def test_the_examples_are_added_run_and_removed(user: User, tmp_path: Path) -> None:
    place = combined(tmp_path / "all")
    digest = crates.read(place, "").described.sha256
    without = user.done("schema")
    user.done("extend", "add", place)
    assert "own-all" in user.done("extend", "list")
    for words in ('"randomdrop"', '"biterrors"', '"aimd"', '"imix"'):
        assert words in user.done("schema") and words not in without
    assert "Additive increase" in user.done("schemes", "aimd") or "AIMD" in user.done("schemes", "aimd")

    written = scenario(tmp_path, OURS)
    user.done("run", written, "-o", tmp_path / "sim")
    identity = [{"name": "own-all", "version": "0.3.0", "sha256": digest}]
    assert versions(tmp_path / "sim" / "cells" / "aimd-r1")["extensions"] == identity
    campaign = json.loads((tmp_path / "sim" / "campaign.json").read_text())
    assert campaign["versions"]["agent"]["extensions"] == identity
    rows = json.loads((tmp_path / "sim" / "results.json").read_text())["rows"]
    values = {row["scheme"]: row["metrics"] for row in rows if row["flow"] == "all" or row["flow"] is None}
    assert values["aimd"]["delay_variation_p99_ns"] > 1e6
    # The mean of the sawtooth is 8 Mbit/s, of which AIMD uses most.
    assert 5e6 < values["aimd"]["throughput_bps"] < 8.2e6
    assert f"own-all 0.3.0 ({digest[:12]})" in user.done("show", tmp_path / "sim")
    assert f"own-all 0.3.0 ({digest[:12]})" in user.done("check", tmp_path / "sim")
    reasons = Path(tmp_path / "sim" / "cells" / "reno-r1" / "packets.parquet").read_bytes()

    result = user.narrows("run", written, "--where", "emulate", "-o", tmp_path / "emu", "--no-report")
    # On a busy machine runs may be invalid, which does not matter here; without namespaces there are none.
    assert result.returncode in (0, 4, 6), result.stderr
    if result.returncode != 4:
        assert versions(tmp_path / "emu" / "cells" / "aimd-r1")["extensions"] == identity

    check_sweep_and_contest(user, tmp_path, OURS, f"own-all@{digest[:12]}")

    user.done("extend", "remove", "own-all")
    assert user.done("schema") == without
    assert not user.base.exists()
    refused = user.narrows("run", written, "-o", tmp_path / "no")
    assert refused.returncode == 3 and "randomdrop" in refused.stderr
    plain = {**OURS, "RATE": "constant: 12 Mbit/s", "QUEUE": "droptail: 40 kB", "LINK": "{loss: 0.1 %}"}
    plain |= {"SCHEMES": "reno", "TRAFFIC": "cbr: 1 Mbit/s"}
    user.done("run", scenario(tmp_path, plain, "plain.yaml"), "-o", tmp_path / "plain")
    assert "extensions" not in versions(tmp_path / "plain" / "cells" / "reno-r1")
    # Records with extensions can still be read.
    assert user.done("show", tmp_path / "sim")
    assert user.narrows("check", tmp_path / "sim").returncode == 0
    assert reasons
