"""The command line from the user's point of view."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import narrows
import processes
from narrows.cli.all_commands import app

PROGRAM = str(Path(sys.executable).parent / "narrows")


def _words(command: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    """The words of a command and of all commands below it."""
    yield names
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _words(below, *names, name)


COMMANDS = [words for words in _words(app) if words]


def call(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1"}
    return processes.run([PROGRAM, *arguments], cwd=cwd, env=environment)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_starts_with_an_example_and_shows_values(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], prog_name="narrows")
    assert done.exit_code == 0
    assert done.stdout.startswith("Example:  narrows ")
    # Marks of the library: of absent values, and of paragraphs that keep their lines.
    assert "Sentinel" not in done.stdout and "UNSET" not in done.stdout
    assert not re.search("^   narrows ", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("--version",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """Imports make help slow; counting them does not depend on the machine, as seconds would."""
    code = (
        "import atexit, sys, narrows.cli\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['narrows', *{arguments!r}]\n"
        "narrows.cli.main()"
    )
    done = processes.run([sys.executable, "-c", code])
    loaded = done.stderr.split()
    assert done.returncode == 0
    assert not {"numpy", "matplotlib", "pyarrow", "rich", "yaml", "typst", "narrows._native"} & set(loaded)
    # One module for each command and a few shared ones: 31 now.
    assert len([name for name in loaded if name.split(".")[0] == "narrows"]) <= 40


def test_help_is_that_of_the_program() -> None:
    """The list of commands is a file, which `make generated` writes."""
    code = "from narrows.cli.all_commands import app; app(['--help'], prog_name='narrows')"
    made = processes.run([sys.executable, "-c", code], env=os.environ | {"COLUMNS": "80"})
    assert call("--help").stdout == call("-h").stdout == made.stdout
    narrow = processes.run([PROGRAM, "--help"], env=os.environ | {"COLUMNS": "60"})
    assert len(max(narrow.stdout.splitlines(), key=len)) <= 60


def test_a_command_loads_itself_alone() -> None:
    """Each command is found by its name, without importing the modules of the others."""
    code = (
        "import sys\n"
        "from narrows.cli import app as program\n"
        "modules = [one for section in program._MODULES.values() for one in section.items()]\n"
        "for module, names in modules:\n"
        "    for name in names:\n"
        "        for other, _ in modules:\n"
        "            sys.modules.pop(f'narrows.cli.{other}', None)\n"
        "        program.app.commands.clear()\n"
        "        program.load(name)\n"
        "        found = sorted(program.app.commands)\n"
        "        assert found == sorted(names), (module, found)\n"
    )
    done = processes.run([sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (0, "")


#: Libraries that take longer to import than a help or a list takes to print.
HEAVY = (
    "pydantic", "typer", "numpy", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "scipy", "rich",
    "yaml", "jinja2", "safetensors", "narrows._native",
)  # fmt: skip


def imported_by(*words: str) -> set[str]:
    """The heavy libraries that a command has imported when it ends."""
    code = (
        "import atexit, sys\n"
        f"heavy = {HEAVY!r}\n"
        "atexit.register(lambda: print(*sys.modules.keys() & set(heavy), file=sys.stderr))\n"
        f"sys.argv = ['narrows', *{words!r}]\n"
        "from narrows.cli import main\n"
        "main()\n"
    )
    done = processes.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("name", app.commands)
def test_the_help_of_a_command_imports_no_heavy_library(name: str) -> None:
    assert imported_by(name, "--help") == set()


def test_the_list_of_schemes_imports_no_arrays() -> None:
    heavy = {"numpy", "pyarrow", "pandas", "matplotlib", "safetensors", "scipy", "duckdb"}
    assert not imported_by("schemes") & heavy


def test_the_list_of_scenarios_imports_no_arrays() -> None:
    assert imported_by("scenarios") <= {"rich", "yaml"}


def test_the_package_can_be_run_as_a_module() -> None:
    for arguments in (("--version",), ("run", "--help")):
        done = processes.run([sys.executable, "-m", "narrows", *arguments])
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.replace("python -m narrows", "narrows") == call(*arguments).stdout


def test_versions_agree() -> None:
    root = Path(__file__).resolve().parent.parent.parent
    assert f'version = "{narrows.__version__}"' in (root / "Cargo.toml").read_text()
    assert call("--version").stdout == f"narrows {narrows.__version__}\n"
    versions = json.loads(call("--version", "--json").stdout)
    assert versions["narrows"] == versions["native"] == versions["agent"]["narrows"] == narrows.__version__


@pytest.mark.parametrize(
    "arguments", [("--wrong",), ("walk",), ("run",), ("run", "first-look", "--wrong"), ()]
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_bad_scenarios_exit_with_3(tmp_path: Path) -> None:
    done = call("run", "none.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "narrows: none.yaml: does not exist; narrows scenarios lists the shipped ones\n"
    (tmp_path / "bad.yaml").write_text("schema: narrows/scenario/1\nqestion: x\n")
    done = call("run", "bad.yaml", cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.splitlines()[0] == 'bad.yaml:2:1: qestion: unknown key; did you mean "question"?'
    assert not (tmp_path / "results").exists()


def test_schemes_and_scenarios_are_listed() -> None:
    schemes = json.loads(call("schemes", "--json").stdout)["schemes"]
    assert {"reno", "cubic"} <= {one["name"] for one in schemes}
    assert "reno" in call("schemes").stdout
    scenarios = json.loads(call("scenarios", "--json").stdout)["scenarios"]
    assert "first-look" in [one["name"] for one in scenarios]
    assert call("scenarios", "first-look").stdout.startswith("# yaml-language-server")
    assert json.loads(call("schema").stdout)["title"] == "Narrows scenario"


def test_doctor_explains() -> None:
    done = call("doctor", "--json")
    assert done.returncode in (0, 4)
    document = json.loads(done.stdout)
    assert document["ok"] == (done.returncode == 0)
    for check in document["checks"]:
        assert check["ok"] or check["remedy"], check
