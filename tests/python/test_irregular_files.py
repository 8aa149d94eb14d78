"""Pipes, sockets, devices and folders in place of files: every command refuses them at once."""

from __future__ import annotations

import ast
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import narrows
from campaign_kit import simulate
from forked_commands import Ended, run_all
from narrows.files import open_regular, read_bytes

SCENARIO = """\
schema: narrows/scenario/1
name: traced
question: Is it refused?
where: simulate
path: {forward: [{rate: {trace: link.csv}, queue: {droptail: 20 kB}}, {delay: 10 ms}]}
schemes: [reno]
duration: 1 s
"""
SWEEP = """\
schema: narrows/scenario/1
question: Is it refused?
where: simulate
path: {forward: [{rate: 2 Mbit/s, queue: {droptail: 20 kB}}, {delay: 10 ms}]}
schemes: [reno]
duration: 500 ms
sweep: {path.forward.1.delay: [5 ms, 10 ms], design: grid}
"""
#: Commands that read a campaign, with `C` for its folder, `O` for a second one and `X` for a new one.
LOOKING = [
    "show C", "show C/cells/reno-r1", "show C/cells/reno-r1 --interval 0.1", "check C",
    "check C/cells/reno-r1", "compare C O", "compare O C",
    "plot C --figure throughput -o X.svg", "plot C --figure summary -o X.svg", "ls C", "note C", "tag C",
    "merge C O -o X", "site C -o X", "export C --format csv -o X", "export C --format pantheon -o X",
]  # fmt: skip
#: Commands that compute results again from the records, and replace whatever is in their place.
MENDING = ["report C --report html", "run link.yaml -o C --no-report"]
QUERIES = [
    ["query", "select count(*) from results", "C"],
    ["query", "select count(*) from packets", "C"],
]
SWEPT = ["sweep show S", "show S", "plot S --figure effects -o X.svg", "site S -o X", "merge S T -o X"]
#: Commands whose argument is a file, with `P` for the pipe.
NAMING = [
    "run P", "run P --dry-run", "sweep run P", "scenarios P", "show P", "check P", "report P", "compare P O",
    "plot P -o X.svg", "ls P", "note P", "tag P", "merge P P -o X", "site P -o X", "export P -o X",
    "query q P", "import pantheon P -o X", "import qlog P -o X", "import ss P -o X", "import pcapng P -o X",
    "import mahimahi P -o X", "import iperf3 P -o X", "trace show P", "trace convert P X.csv",
    "trace import P", "models add x P", "models show P", "programs check P", "lab show P",
    "lab mark buffers P", "hunt P", "calibrate P -o X", "calibrate link.csv --map P -o X",
    "calibrate link.csv --trace P -o X", "show C --metrics P", "run link.yaml -o X --metrics P",
    "shell --trace-up P -- true", "run link.yaml -o P",
]  # fmt: skip
#: The exit code of a command that does not end by itself.
HANGS = None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the campaigns `C` and `O` and the sweeps `S` and `T`."""
    place = tmp_path_factory.mktemp("irregular")
    (place / "link.csv").write_text("time_s,rate_mbps\n0,4\n0.5,2\n1,4\n")
    (place / "link.yaml").write_text(SCENARIO)
    (place / "space.yaml").write_text(SWEEP)
    home = Path.cwd()
    os.chdir(place)
    try:
        simulate(place / "O")
        ended = run_all(
            [
                ["run", "link.yaml", "-o", "C", "--no-report"],
                ["note", "C", "Something."],
                ["sweep", "run", "space.yaml", "-o", "S", "--on", "local:1"],
                ["sweep", "run", "space.yaml", "-o", "T", "--on", "local:1"],
            ],
            place,
        )
    finally:
        os.chdir(home)
    assert [one.code for one in ended] == [0] * 4, ended
    return place


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _with_pipe(made: Path, place: Path, name: str) -> Path:
    """A copy of everything in which a pipe replaces a file."""
    shutil.copytree(made, place)
    path = place / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return path


def _refused(one: Ended, codes: tuple[int, ...]) -> None:
    assert one.code is not HANGS, f"{one.words} waits"
    assert "internal error" not in one.output and "Traceback" not in one.output, (one.words, one.output)
    assert one.code in codes, (one.words, one.code, one.output)


@pytest.mark.parametrize(
    "name",
    ["campaign.json", "results.json", "results.csv", "results.parquet", "files", "run.json",
     "packets.parquet"],
)  # fmt: skip
def test_a_pipe_in_a_campaign_hangs_no_command(made: Path, tmp_path: Path, name: str) -> None:
    inner = _files(made / "C")
    where = next((f"C/{one}" for one in inner if name in one), f"C/{name}")
    pipe = _with_pipe(made, tmp_path / "w", where)
    commands = [[*words.replace("X", f"x{n}").split()] for n, words in enumerate(LOOKING)] + QUERIES
    ended = run_all(commands, tmp_path / "w")
    # No command that reads a campaign has changed it.
    assert pipe.is_fifo()
    mended = run_all([words.split() for words in MENDING], tmp_path / "w")
    for one in (*ended, *mended):
        _refused(one, (0, 1, 2, 3, 6))
    if name in ("campaign.json", "results.json"):
        for one in ended:
            # Packets, also as logs in Pantheon's format, are read from the records alone.
            if name == "results.json" and ("pantheon" in one.words or "packets" in one.words[1]):
                assert one.code == 0, one
            elif one.words[0] in ("show", "compare", "plot", "query", "export") and "C" in one.words:
                assert one.code == 3, (one.words, one.code, one.output)
    if name == "results.json":
        # As the error messages say, a report computes them again.
        assert mended[0].code == 0 and pipe.is_file(), mended[0]
        (again,) = run_all([["plot", "C", "--figure", "throughput", "-o", "again.svg"]], tmp_path / "w")
        assert again.code == 0, again
    assert next(one for one in ended if one.words == ["check", "C"]).code in (1, 3)


def test_a_pipe_in_a_sweep_hangs_no_command(made: Path, tmp_path: Path) -> None:
    for number, name in enumerate(_files(made / "S")):
        _with_pipe(made, tmp_path / str(number), f"S/{name}")
        commands = [words.replace("X", f"x{n}").split() for n, words in enumerate(SWEPT)]
        commands += [["query", "select count(*) from results", "S"]]
        commands += [["sweep", "run", "space.yaml", "-o", "S", "--on", "local:1"]]
        for one in run_all(commands, tmp_path / str(number)):
            _refused(one, (3,))


def test_pipes_sockets_and_devices_are_no_arguments(made: Path, tmp_path: Path) -> None:
    place = tmp_path / "w"
    shutil.copytree(made, place)
    os.mkfifo(place / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(place / "socket"))
    commands = []
    for number, words in enumerate(NAMING):
        # One of each kind if the same code opens the files.
        others = (
            ("socket", "/dev/zero", "/dev/kmsg", "/dev/tty") if words in ("run P", "trace show P") else ()
        )
        for path in ("pipe", *others):
            named = [path if word == "P" else word.replace("X", f"x{number}") for word in words.split()]
            commands.append(named)
    ended = run_all(commands, place)
    for one in ended:
        # No scheme, family or view has that name, which is a usage error.
        _refused(one, (1, 2, 3))
    read = [one for one in ended if one.words[0] in ("run", "trace", "import", "show", "check", "compare")]
    for one in read:
        if "-o" not in one.words or one.words[0] == "import":
            assert one.code == 3, (one.words, one.code, one.output)


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[list[Path]]:
    """A pipe, a socket and a folder."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(tmp_path / "socket"))
        yield [tmp_path / "pipe", tmp_path / "socket", tmp_path]


def test_only_regular_files_are_opened(odd: list[Path], tmp_path: Path) -> None:
    for path in (*odd, Path("/dev/zero"), Path("/dev/null"), Path("/dev/kmsg")):
        with pytest.raises(OSError, match=r"regular file|directory"):
            open_regular(path)
    file = tmp_path / "file"
    file.write_bytes(b"xyz")
    assert read_bytes(file, 3) == b"xyz"
    with pytest.raises(OSError, match="too large"):
        read_bytes(file, 2)


#: Modules that read files of the package, of the system or of their own in private folders.
_OTHERS = {
    "agent/cell.py", "agent/portable.py", "blocks/html.py", "campaign/gathering.py", "capacity.py",
    "cli/__init__.py", "cli/completion.py", "comparison/compose.py", "comparison/equivalence.py",
    "documents/reference.py", "extend/sources.py", "extend/writing.py", "files.py", "identify/page.py",
    "scenario/declarations/reference.py",
    "lab/contest_report.py", "lab/new.py", "lab/page.py", "live_page/page.py",
    "programs/trial.py", "report/assemble.py", "report/drawing.py", "report/page.py", "report/paper.py",
    "scenario/chance.py", "scenario/habits.py", "scenario/quantity.py",
    "scenario/reference.py", "site/pages.py",
}  # fmt: skip


def _reads_a_path(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("read_text", "read_bytes"):
        # A path as an argument is read by a function of Narrows, which uses narrows.files itself.
        known = any(not isinstance(argument, ast.Constant) for argument in call.args)
        return isinstance(call.func, ast.Attribute) and not known
    modes = [one.value for one in call.args if isinstance(one, ast.Constant)]
    silent = not (call.args or call.keywords)
    return name == "open" and (silent or any(mode in ("r", "rb", "rt") for mode in modes))


def test_every_other_module_reads_through_the_one_that_takes_regular_files_alone() -> None:
    package = Path(narrows.__file__).parent
    found = {
        str(path.relative_to(package))
        for path in sorted(package.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _reads_a_path(node)
    }
    assert found - _OTHERS == set(), "read files with narrows.files"
