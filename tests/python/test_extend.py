"""Extensions: reading crates, refusals, the workspace, and sets, with a compiler that only pretends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows import __version__, cargo, extended
from narrows.documents.extensions import Extension, ExtensionSet
from narrows.errors import DataError, NarrowsError, UnavailableError
from narrows.extend import building, crates, new, sets, sources, workspace, writing
from narrows.extend.kinds import KINDS
from narrows.scenario import registry

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"

#: In place of cargo: notes its arguments, fails as $FAKE_CARGO says, and "builds" files of a few bytes.
CARGO = """#!/bin/sh
echo "$@" >> "$FAKE_LOG"
case "$FAKE_CARGO" in
    compile) printf 'error[E0308]: mismatched types\\n --> src/mine.rs:3:5\\n'; exit 101 ;;
    test) if [ "$1" = test ]; then
        printf "thread 'it_conforms' (7) panicked at tests/x.rs:9:1:\\npacket 7 is not inside\\n"; exit 101
    fi ;;
    build) if [ "$1" = build ]; then printf 'error: could not compile\\n'; exit 101; fi ;;
    signal) if [ "$1" = build ]; then kill -INT $PPID; sleep 20; fi ;;
esac
mkdir -p "$CARGO_TARGET_DIR/release"
echo "$NARROWS_EXTENSIONS_BUILT" > "$CARGO_TARGET_DIR/release/narrows-agent"
echo module > "$CARGO_TARGET_DIR/release/lib_native.so"
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user without extensions, with a compiler that pretends to work."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cargo", "cc", "clang", "llvm-strip", "pkg-config"):
        (tools / name).write_text(CARGO if name == "cargo" else "#!/bin/sh\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FAKE_LOG", str(tmp_path / "cargo.log"))
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    monkeypatch.delenv(extended.VARIABLE, raising=False)
    monkeypatch.setattr(sets, "_git", lambda: "0123456789ab")
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "data" / "narrows" / "extensions"


def crate_at(folder: Path, name: str = "mine", kind: str = "queue") -> Path:
    new.make(KINDS[kind], name, folder)
    return folder


def read(folder: Path) -> crates.Crate:
    return crates.read(folder, str(folder))


def change(file: Path, old: str, new_text: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new_text))


# -- new and the examples ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_crate_is_the_example_under_its_name(tmp_path: Path, kind: str) -> None:
    place = crate_at(tmp_path / "mine", "mine", kind)
    crate = read(place)
    assert (crate.name, dict(crate.described.adds)) == ("mine", {kind: ["mine"]})
    assert set(crate.files_of("mine")) == {"mine.rs"}
    example = KINDS[kind]
    for path in place.rglob("*"):
        if path.is_file():
            assert example.entry not in path.read_text(), path
            assert example.example not in path.read_text(), path
    source = (EXAMPLES / example.example / "src" / f"{example.entry}.rs").read_text()
    assert len((place / "src" / "mine.rs").read_text().splitlines()) == len(source.splitlines())


@pytest.mark.parametrize("kind", KINDS)
def test_examples_can_be_added(kind: str) -> None:
    crate = read(EXAMPLES / KINDS[kind].example)
    assert dict(crate.described.adds) == {kind: [KINDS[kind].entry]}


def test_new_refuses_names_and_folders(tmp_path: Path) -> None:
    for name in ("Mine", "my-queue", "1st", "", "a" * 41, "a b", "../x"):
        with pytest.raises(DataError, match="can't name an entry"):
            new.make(KINDS["queue"], name, tmp_path / "x")
    for name in ("fn", "std", "crate"):
        with pytest.raises(DataError, match="a word of Rust"):
            new.make(KINDS["queue"], name, tmp_path / "x")
    (tmp_path / "there").mkdir()
    with pytest.raises(NarrowsError, match="already exists"):
        new.make(KINDS["queue"], "mine", tmp_path / "there")
    assert not (tmp_path / "x").exists()


# -- reading -------------------------------------------------------------------------------------


def test_the_hash_is_the_one_of_sha256sum(tmp_path: Path) -> None:
    crate = read(crate_at(tmp_path / "mine"))
    copy = tmp_path / "copy"
    for path, content in crate.files.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(content)
    script = "find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum"
    done = subprocess.run(["sh", "-c", script], cwd=copy, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == crate.described.sha256


def test_the_hash_does_not_depend_on_where_narrows_lies(tmp_path: Path) -> None:
    first = crate_at(tmp_path / "a" / "mine")
    before = read(first).described.sha256
    change(first / "Cargo.toml", str(sources.folder_for_crates()), "/somewhere/else")
    assert read(first).described.sha256 == before
    change(first / "src" / "mine.rs", "push_back", "push_front")
    assert read(first).described.sha256 != before


@pytest.mark.parametrize(
    ("old", "new_text", "says"),
    [
        ('version = "0.1", path', 'version = "0.9", path', "requires narrows-net 0.9, and this is Narrows"),
        ('queue = ["mine"]', 'queues = ["mine"]', "this kind of entry does not exist; did you mean"),
        ('queue = ["mine"]', 'queue = ["other"]', "src/other.rs does not exist"),
        ('queue = ["mine"]', 'queue = ["Mine"]', "can't name an entry"),
        ('queue = ["mine"]', "queue = []", "lists no entries"),
        ('queue = ["mine"]', "queue = 3", "Expected `array`"),
        ("[package.metadata.narrows]", "[package.metadata.other]", "lists no entries"),
        ('name = "mine"', 'name = "narrows-mine"', "can't be the name of an extension"),
        ('name = "mine"', 'name = "a b"', "can't be the name of an extension"),
        ('name = "mine"', 'name = ', "Cargo.toml"),
        ("[dependencies]", '[dependencies]\nother = { path = "../other" }', "is a folder, which"),
        ('publish = false', 'publish = false\nbuild = "make.rs"', "has a build script"),
    ],
)  # fmt: skip
def test_a_crate_is_refused_in_one_sentence(tmp_path: Path, old: str, new_text: str, says: str) -> None:
    place = crate_at(tmp_path / "mine")
    change(place / "Cargo.toml", old, new_text)
    with pytest.raises(DataError) as refusal:
        read(place)
    assert says in str(refusal.value)
    assert str(refusal.value).startswith(str(place / "Cargo.toml"))
    assert "\n" not in str(refusal.value)


def test_an_entry_that_needs_its_crate_is_refused_with_its_line(tmp_path: Path) -> None:
    place = crate_at(tmp_path / "mine")
    change(place / "src" / "mine.rs", "use std::collections::VecDeque;", "use crate::shared::Store;")
    with pytest.raises(DataError, match=r"src/mine\.rs:\d+: uses crate::, which leads elsewhere"):
        read(place)


def test_folders_without_a_crate_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; name the folder of a crate"):
        read(tmp_path)
    with (
        pytest.raises(DataError, match="does not exist; name the folder of a crate"),
        crates.open_folder(tmp_path / "x"),
    ):
        pass
    (tmp_path / "file.crate").write_text("no archive")
    with pytest.raises(DataError, match="can't be unpacked"), crates.open_folder(tmp_path / "file.crate"):
        pass


def test_an_archive_of_cargo_package_is_a_crate(tmp_path: Path) -> None:
    place = crate_at(tmp_path / "mine")
    with tarfile.open(tmp_path / "mine-0.1.0.crate", "w:gz") as archive:
        archive.add(place, "mine-0.1.0")
    with crates.open_folder(tmp_path / "mine-0.1.0.crate") as folder:
        assert read(folder).described.sha256 == read(place).described.sha256


@pytest.mark.parametrize(
    ("wanted", "version", "fits"),
    [
        # By the examples of https://doc.rust-lang.org/cargo/reference/specifying-dependencies.html.
        ("1.2.3", "1.9.0", True), ("1.2.3", "2.0.0", False), ("1.2.3", "1.2.2", False),
        ("0.2.3", "0.2.9", True), ("0.2.3", "0.3.0", False), ("0.2", "0.2.0", True), ("0.2", "0.3.0", False),
        ("0.0.3", "0.0.3", True), ("0.0.3", "0.0.4", False), ("0.0", "0.0.9", True), ("0.0", "0.1.0", False),
        ("0", "0.9.9", True), ("0", "1.0.0", False), ("~1.2.3", "1.2.9", True), ("~1.2.3", "1.3.0", False),
        ("~1", "1.9.0", True), ("~1", "2.0.0", False), ("*", "7.1.0", True), ("1.*", "1.9.0", True),
        ("1.*", "2.0.0", False), ("=1.2.3", "1.2.3", True), ("=1.2.3", "1.2.4", False),
        (">=1.2, <1.5", "1.4.9", True), (">=1.2, <1.5", "1.5.0", False), ("nonsense", "1.0.0", False),
    ],
)  # fmt: skip
def test_requirements_are_those_of_cargo(wanted: str, version: str, fits: bool) -> None:
    assert crates.admits(wanted, version) is fits


@given(st.text(max_size=200))
def test_any_text_is_a_manifest_or_refused(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Cargo.toml").write_text(text, encoding="utf-8", errors="surrogatepass")
        with pytest.raises(DataError) as refusal:
            read(Path(folder))
        assert "\n" not in str(refusal.value)


# -- the workspace -------------------------------------------------------------------------------


def test_the_workspace_has_the_entries_in_the_lists(tmp_path: Path) -> None:
    added = [read(crate_at(tmp_path / kind, f"my_{kind}", kind)) for kind in KINDS]
    files = workspace.compose(sources.read_sources(), added)
    for kind, place in KINDS.items():
        assert f"narrows/{place.into}/my_{kind}.rs" in files
        assert f"\n    my_{kind},".encode() in files[f"narrows/{place.registry}"]
        assert files[f"narrows/{place.folder}/src/lib.rs"].count(b"extern crate self") == 1
    manifest = files["Cargo.toml"].decode()
    assert '"extensions/my-queue"' in manifest and "core/units" in manifest and '"tests"' not in manifest
    for path, content in files.items():
        if path.endswith("Cargo.toml"):
            assert b'path = "../tests"' not in content, path
            assert b"dev-dependencies]" not in content or path.startswith("ext"), path
    size = sum(map(len, files.values()))
    assert 3_000_000 < size < 30_000_000


def test_a_name_of_narrows_is_refused(tmp_path: Path) -> None:
    crate = read(crate_at(tmp_path / "mine", "codel"))
    with pytest.raises(DataError, match="codel: Narrows has a queue codel already; choose another name"):
        workspace.compose(sources.read_sources(), [crate])


def test_files_that_stay_keep_their_times(tmp_path: Path) -> None:
    writing.write_files(tmp_path, {"a/x": b"1", "b": b"2"})
    os.utime(tmp_path / "a" / "x", (1, 1))
    writing.write_files(tmp_path, {"a/x": b"1", "c": b"3"})
    assert (tmp_path / "a" / "x").stat().st_mtime == 1
    assert not (tmp_path / "b").exists() and (tmp_path / "c").read_bytes() == b"3"


def test_the_archive_has_the_sources_of_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = sources.read_sources()
    archive = tmp_path / sources.ARCHIVE
    sources.pack(archive)
    assert archive.stat().st_size < 2_500_000
    monkeypatch.setattr(sources, "_PACKAGE", tmp_path)
    monkeypatch.setattr(sources, "find_tree", lambda: None)
    assert sources.read_sources() == tree
    archive.unlink()
    with pytest.raises(UnavailableError, match="the sources of Narrows can't be read"):
        sources.read_sources()


# -- sets ----------------------------------------------------------------------------------------


def names(place: sets.SetFolder) -> list[str]:
    return [crate.name for crate in place.read().crates]


def test_crates_are_added_replaced_and_removed(home: Path, tmp_path: Path) -> None:
    place = sets.user_set()
    first, second = crate_at(tmp_path / "a", "first"), crate_at(tmp_path / "b", "second", "scheme")
    assert sets.add(place, read(first)) is False
    assert sets.add(place, read(second)) is False
    change(first / "src" / "first.rs", "push_back", "push_front")
    assert sets.add(place, read(first)) is True
    assert names(place) == ["second", "first"]
    built = place.current
    assert built is not None and len([*home.glob("built-*")]) == 1
    assert json.loads((built / "narrows-agent").read_text()) == [
        {"name": crate.name, "version": crate.version, "sha256": crate.sha256}
        for crate in place.read().crates
    ]
    assert place.problem is None
    sets.remove(place, "second")
    assert names(place) == ["first"]
    with pytest.raises(DataError, match=r'extension "frist" does not exist in .*; did you mean "first"'):
        sets.remove(place, "frist")
    sets.remove(place, "first")
    assert not home.exists()


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        ("compile", r"it can't be compiled: error\[E0308\]: mismatched types at src/mine.rs:3:5"),
        ("test", "a test refuses it: it_conforms: packet 7 is not inside"),
        ("build", "it can't be compiled: error: could not compile"),
    ],
)
def test_a_failure_leaves_the_set_as_it_was(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, says: str
) -> None:
    place = sets.user_set()
    sets.add(place, read(crate_at(tmp_path / "a", "first")))
    before = (place.current, place.read())
    monkeypatch.setenv("FAKE_CARGO", fails)
    with pytest.raises(DataError, match=says):
        sets.add(place, read(crate_at(tmp_path / "b", "second")))
    assert (place.current, place.read()) == before
    assert len([*home.glob("built-*")]) == 1


def command(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "narrows", "extend", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, env={**os.environ, **environment})


def test_ctrl_c_leaves_the_set_as_it_was(home: Path, tmp_path: Path) -> None:
    crate_at(tmp_path / "a", "first")
    assert command("add", tmp_path / "a").returncode == 0
    before = sets.user_set().current
    crate_at(tmp_path / "b", "second")
    done = command("add", tmp_path / "b", FAKE_CARGO="signal", NARROWS_EXTENSIONS="off")
    assert done.returncode != 0
    assert sets.user_set().current == before and names(sets.user_set()) == ["first"]


def test_two_crates_may_not_add_the_same_entry(home: Path, tmp_path: Path) -> None:
    place = sets.user_set()
    sets.add(place, read(crate_at(tmp_path / "a", "first")))
    other = crate_at(tmp_path / "b", "first")
    change(other / "Cargo.toml", 'name = "first"', 'name = "other"')
    with pytest.raises(DataError, match="other: the extension first has a queue first already"):
        sets.add(place, read(other))


def test_the_command_line_adds_lists_and_removes(home: Path, tmp_path: Path) -> None:
    done = command("new", "queue", "mine", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"]
    done = command("add", "mine")
    assert done.returncode == 0, done.stderr
    assert "added mine 0.1.0" in done.stdout
    done = command("list", "--json")
    listed = json.loads(done.stdout)
    assert listed["crates"][0]["adds"] == {"queue": ["mine"]} and listed["folder"] == str(home)
    assert "mine" in command("list").stdout
    done = command("remove", "nine")
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    assert command("remove", "mine").returncode == 0
    assert not home.exists()
    assert "no extensions" in command("list").stdout


def test_a_machine_without_compiler_is_refused(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crate = read(crate_at(tmp_path / "mine"))
    tools = tmp_path / "tools"
    (tools / "clang").unlink()
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(UnavailableError, match=r"install \(Debian names\): clang libelf-dev"):
        sets.add(sets.user_set(), crate)
    (tools / "cargo").unlink()
    with pytest.raises(UnavailableError, match="there is no cargo"):
        sets.add(sets.user_set(), crate)
    assert not home.exists()


# -- sets in use ---------------------------------------------------------------------------------


def in_use(where: Path, **environment: str) -> list[str]:
    """The folder and the problem of the set that `import narrows` uses in a folder."""
    script = "from narrows import extended; print(extended.folder); print(extended.problem)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=where, capture_output=True, text=True, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_set_is_in_use_for_its_build_of_narrows_alone(home: Path, tmp_path: Path) -> None:
    assert in_use(tmp_path) == ["", ""]
    place = sets.user_set()
    sets.add(place, read(crate_at(tmp_path / "a", "first")))
    assert in_use(tmp_path) == [str(place.current), ""]
    assert in_use(tmp_path, NARROWS_EXTENSIONS="off") == ["", ""]
    assert place.current is not None
    (place.current / extended.BESIDE).write_text("1 2")
    folder, problem = in_use(tmp_path)
    assert folder == "" and "were built for another build of Narrows" in problem
    assert place.problem is not None
    done = subprocess.run(
        [sys.executable, "-m", "narrows", "schemes"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 4 and "narrows extend build" in done.stderr and done.stderr.count("\n") == 1
    assert sets.rebuild(place) == ["first"]
    assert in_use(tmp_path) == [str(place.current), ""]


def test_a_project_has_a_set_of_its_own_if_this_user_made_it(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "deep" / "down").mkdir(parents=True)
    place = sets.project_set(project)
    sets.add(place, read(crate_at(tmp_path / "a", "first")))
    assert in_use(project / "deep" / "down") == [str(place.current), ""]
    assert in_use(tmp_path) == ["", ""]
    # The same folder from elsewhere, which this user has not built.
    copied = tmp_path / "copied"
    subprocess.run(["cp", "-a", project, copied], check=True)
    assert in_use(copied) == ["", ""]
    assert in_use(copied, NARROWS_EXTENSIONS=str(copied / extended.IN_PROJECT))[0].startswith(str(copied))
    sets.remove(place, "first")
    assert not (project / ".narrows").exists() and not home.exists()


def test_files_that_were_changed_are_refused(home: Path, tmp_path: Path) -> None:
    place = sets.user_set()
    sets.add(place, read(crate_at(tmp_path / "a", "first")))
    assert place.current is not None
    (place.current / "crates" / "first" / "src" / "first.rs").write_text("")
    with pytest.raises(DataError, match="has changed since it was added; add first again"):
        place.crates()
    (place.current / sets.FILE).write_text("{")
    with pytest.raises(DataError, match="can't be read"):
        place.read()


def test_an_empty_set_has_this_version() -> None:
    assert ExtensionSet(narrows=__version__).crates == []


def test_an_agent_with_other_extensions_is_refused_with_those_of_both_sides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine, changed = (Extension(name="mine", version="0.1.0", sha256=digit * 64) for digit in "ab")
    registry.check_extensions([], "server: agent")
    with pytest.raises(UnavailableError) as refusal:
        registry.check_extensions([mine], "server: agent")
    assert "server: agent has the extensions mine 0.1.0 (aaaaaaaaaaaa), and this" in str(refusal.value)
    assert "package has no extensions; both ends need the same" in str(refusal.value)
    known = replace(registry.load(), extensions=(mine,))
    monkeypatch.setattr(registry, "load", lambda: known)
    registry.check_extensions([mine], "server: agent")
    for theirs in ([], [changed], [mine, changed]):
        with pytest.raises(UnavailableError, match=r"this package has the extensions mine 0\.1\.0 \(aaa"):
            registry.check_extensions(theirs, "server: agent")


def test_errors_of_cargo_become_one_line() -> None:
    said = "warning: x\nerror: no matching package named `foo` found\nlocation searched: crates.io index\n"
    assert cargo.first_error(said).startswith("error: no matching package named `foo` found")
    assert cargo.first_error("   Compiling x\n") == ""
    assert building.first_panic("nothing") == ""
