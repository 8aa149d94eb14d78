"""Building programs: reading recipes, missing and failing tools, and the real tools."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import jsonschema
import pytest

import processes
import program_kit
from narrows.errors import DataError, NarrowsError, UnavailableError
from narrows.programs.build import BUILT, THERE, build, in_words
from narrows.scenario.programs import recipe, store
from narrows.scenario.programs.keys import schema
from narrows.scenario.programs.manifest import read_text
from narrows.scenario.programs.missing import why_missing
from narrows.scenario.programs.program import Program
from narrows.scenario.programs.scheme import plan

MANIFEST = """\
schema: narrows/program/1
what: A program that is built
data: connector
build: {cargo: sources}
listener: {command: "{built}/bin/tool receive {port}", ready: udp}
connector: {command: "{built}/bin/tool send {address} {port}"}
"""
#: A stand-in for cargo: it creates a program where cargo would.
CARGO = """\
if [ "$1" = --version ]; then echo cargo 9.9.9; exit; fi
echo "   Compiling tool v1.0.0" >&2
echo run >> {calls}
while [ "$1" != --root ]; do shift; done
mkdir -p "$2/bin"
echo program > "$2/bin/tool"
chmod +x "$2/bin/tool"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of builds, and one with a manifest and sources."""
    monkeypatch.setenv(recipe.FOLDER_VARIABLE, str(tmp_path / "builds"))
    sources = tmp_path / "mine" / "sources"
    (sources / "src").mkdir(parents=True)
    (sources / "Cargo.toml").write_text('[package]\nname = "tool"\n')
    (sources / "Cargo.lock").write_text("")
    (sources / "src" / "main.rs").write_text("fn main() {}\n")
    (sources / "target").mkdir()
    return tmp_path / "mine"


def program(folder: Path, text: str = MANIFEST) -> Program:
    (folder / "mine.yaml").write_text(text)
    return read_text(text, folder / "mine.yaml", "mine")


def on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, script: str) -> None:
    monkeypatch.setenv("PATH", str(program_kit.fake_tool(tmp_path / "bin", name, script)))


def refused(folder: Path, kind: type[NarrowsError]) -> str:
    with pytest.raises(NarrowsError) as caught:
        build(program(folder), lambda line: None)
    assert type(caught.value) is kind
    return str(caught.value)


def test_it_is_built_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    on_path(monkeypatch, tmp_path, "cargo", CARGO.format(calls=calls))
    mine = program(folder)
    planned = plan(mine, mine.variants["default"], {})
    missing = "mine has not been built; run: narrows programs build mine"
    assert why_missing(planned) == missing
    lines: list[str] = []
    first = build(mine, lines.append)
    assert first.state == BUILT
    assert lines == ["Compiling tool v1.0.0"]
    assert first.folder is not None
    assert first.about.tool == "cargo 9.9.9"
    assert list(first.about.files) == ["bin/tool"]
    assert planned.connector.command[0] == str(first.folder / "bin" / "tool")
    assert why_missing(planned) is None
    # The second time nothing runs, and only the build remains.
    second = build(mine, lines.append)
    assert (second.state, second.about) == (THERE, first.about)
    assert calls.read_text() == "run\n"
    assert list((tmp_path / "builds").iterdir()) == [first.folder]
    assert in_words(second).startswith("mine: is built, with cargo 9.9.9, in ")
    # Files that cargo writes into its folder are not sources.
    (folder / "sources" / "target" / "x").write_text("x")
    assert build(mine, lines.append).state == THERE
    (folder / "sources" / "src" / "main.rs").write_text("fn main() { main() }\n")
    third = build(mine, lines.append)
    assert third.state == BUILT
    assert third.folder != first.folder
    assert plan(mine, mine.variants["default"], {}) != planned


def test_missing_parts_are_reported_in_a_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    said = refused(folder, UnavailableError)
    monkeypatch.setenv("PATH", path)
    assert (
        said
        == "mine is built with cargo, which is not on PATH; install Rust (rustup, or Debian's package cargo)"
    )
    failing = "echo 'error: failed to get `x`' >&2; echo '  Could not resolve host: registry' >&2; exit 101"
    on_path(monkeypatch, tmp_path, "cargo", failing)
    said = refused(folder, UnavailableError)
    assert said.startswith(
        "mine is not built: cargo could not reach its registry (Could not resolve host: registry); "
    )
    on_path(monkeypatch, tmp_path, "cargo", "echo 'error[E0425]: no such value'; echo more; exit 101")
    said = refused(folder, NarrowsError)
    assert said.startswith("mine is not built: cargo ended with exit code 101: error[E0425]: no such value; ")
    (log,) = (tmp_path / "builds").iterdir()
    assert said.endswith(f"is in {log}")
    assert log.read_text() == "error[E0425]: no such value\nmore\n"


def test_a_build_that_lost_its_files_says_so(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(monkeypatch, tmp_path, "cargo", CARGO.format(calls=tmp_path / "calls"))
    built = build(program(folder), lambda line: None).folder
    assert built is not None
    (built / "bin" / "tool").unlink()
    assert refused(folder, DataError) == f"{built} lacks bin/tool; remove the folder, and build it again"


def test_leftovers_of_killed_builds_are_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path(monkeypatch, tmp_path, "cargo", CARGO.format(calls=tmp_path / "calls"))
    old, new = tmp_path / "builds" / ".building-old", tmp_path / "builds" / ".building-new"
    for left in (old, new):
        left.mkdir(parents=True)
    os.utime(old, (0, 0))
    build(program(folder), lambda line: None)
    assert not old.exists()
    assert new.exists()


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("{cargo: sources}", "{cargo: nowhere}", "there is no Cargo.toml in the folder"),
        ("{cargo: sources}", "{go: sources}", "there is no go.mod in the folder"),
        ("{cargo: sources}", "{}", "must have one of the keys cargo, go, pip, npm or debian"),
        ("{cargo: sources}", "{crago: sources}", 'did you mean "cargo"'),
        ("{cargo: sources}", "{debian: [--all]}", "must be names of packages, such as [iperf3]"),
        ("{cargo: sources}", "{cargo: sources, go: sources}", "must have one of the keys"),
        ("{cargo: sources}", "{npm: sources}", "there is no package.json in the folder"),
        (
            "{cargo: sources}",
            "{debian: [one], then: make}",
            "makes more of sources, so one of cargo, go, pip or npm",
        ),
        ("{cargo: sources}", "{cargo: sources, then: 'make {biult}'}", "unknown placeholder {biult}"),
        ("{cargo: sources}", "sources", "must be keys with values, such as {cargo: quinn}"),
        ("{cargo: sources}", "{cargo: [a]}", "must be a folder, relative to the manifest"),
        ("build: {cargo: sources}\n", "", "unknown placeholder {built}"),
    ],
)
def test_recipes_are_read_strictly(folder: Path, old: str, new: str, text: str) -> None:
    with pytest.raises(DataError) as caught:
        program(folder, MANIFEST.replace(old, new, 1))
    assert text in str(caught.value)


def test_the_schema_knows_recipes() -> None:
    part = schema()["properties"]["build"]
    for name in recipe.LOCKED:
        jsonschema.validate({name: "x", "debian": ["x"], "then": "make"}, part)
    jsonschema.validate({"debian": ["x"]}, part)
    for wrong in ({}, {"cargo": "x", "go": "x"}, {"conda": "x"}, {"debian": ["x"], "then": "make"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, part)


def test_npm_installs_locked_packages_and_the_recipe_completes_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("package.json", "package-lock.json"):
        (folder / "sources" / name).write_text(name)
    installs = """\
if [ "$1" = --version ]; then echo 10.9.9; exit; fi
[ "$1 $2" = "ci --ignore-scripts" ] || exit 1
cat package.json package-lock.json
mkdir -p node_modules/player
echo code > node_modules/player/player.js"""
    on_path(monkeypatch, tmp_path, "npm", installs)
    recipe_text = "{npm: sources, then: \"sh -c 'mkdir {built}/film; cat Cargo.toml > {built}/film/a'\"}"
    text = MANIFEST.replace("{cargo: sources}", recipe_text).replace("{built}/bin/tool", "sh {built}/film/a")
    built = build(program(folder, text), lambda line: None)
    assert built.folder is not None
    assert (built.folder / "node_modules" / "player" / "player.js").exists()
    assert (built.folder / "film" / "a").read_text() == (folder / "sources" / "Cargo.toml").read_text()
    # npm's dependencies are locked by its lock file, which is one of the sources.
    assert list(built.about.files) == ["film/a", "package-lock.json", "package.json"]
    assert built.about.tool == "npm 10.9.9"
    # Another film is another build.
    other = program(folder, text.replace("film/a'", "film/b'"))
    assert build(other, lambda line: None).state == BUILT


def test_packages_of_debian_are_installed_by_root_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = MANIFEST.replace("{cargo: sources}", "{debian: [one, two]}").replace("{built}/bin/", "")
    installed = tmp_path / "installed"
    installed.write_text("")
    place = program_kit.fake_tool(tmp_path / "bin", "dpkg-query", f"cat {installed}")
    installs = f"echo \"$@\"; [ $1 = update ] || echo 'two 1.2 install ok installed' >> {installed}"
    program_kit.fake_tool(place, "apt-get", installs)
    monkeypatch.setenv("PATH", str(place))
    installed.write_text("one 1.0-1 install ok installed\n")
    mine = program(folder, text)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UnavailableError, match="only root can; run: sudo apt-get install two"):
        build(mine, lambda line: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    lines: list[str] = []
    done = build(mine, lines.append)
    assert done.about.packages == {"one": "1.0-1", "two": "1.2"}
    assert lines == ["update -q", "install -q -y --no-install-recommends two"]
    assert in_words(done) == "mine: installed: one 1.0-1, two 1.2"
    assert in_words(build(mine, lines.append)) == "mine: is installed: one 1.0-1, two 1.2"


def test_shipped_programs_are_built_by_their_names(tmp_path: Path) -> None:
    env = {**os.environ, **program_kit.need("quinn")}
    # Without any tool: the build exists.
    env["PATH"] = str(program_kit.fake_tool(tmp_path / "bin", "nothing", "exit 1"))
    command = [sys.executable, "-m", "narrows", "programs", "build", "quinn", "--json"]
    done = processes.run(command, env=env)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["programs"]
    assert (found["name"], found["state"], found["kind"]) == ("quinn", "there", "cargo")
    for name in ("pair", "first-look"):
        done = processes.run([*command[:-2], name], env=env)
        assert done.returncode == 3
        assert f'program "{name}" does not exist' in done.stderr


def test_every_shipped_recipe_has_its_locked_sources() -> None:
    folder = program_kit.ROOT / "programs"
    kinds = {}
    for path in folder.glob("*.yaml"):
        found = store.load(path).build
        assert found is not None, path
        kinds[path.stem] = found.kind
        if found.sources is not None:
            assert len(recipe.identity(found)) == 64
    rust = dict.fromkeys(("quiche", "quinn", "s2n-quic"), "cargo")
    others = {"quic-go": "go", "libtorrent": "pip", "dashjs": "npm", "iperf3": "debian", "nginx": "debian"}
    assert kinds.items() >= (rust | others).items()
