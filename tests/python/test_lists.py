"""Lists that accompany the tests: modules of test programs, tests that may be skipped, mutants."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from conftest import ROOT

#: Folders of test programs with a module for each file.
PROGRAMS = [path.parent for path in sorted(ROOT.glob("**/tests/all/main.rs")) if "target" not in path.parts]
LIST = (ROOT / "tests" / "may-skip.txt").read_text().splitlines()
MUTANTS = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text())["mutant"]


def functions(path: str) -> str:
    """All Rust functions of the files that may contain a package's tests."""
    return "\n".join(file.read_text() for file in (ROOT / path).rglob("*.rs"))


@pytest.mark.parametrize("folder", PROGRAMS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_file_of_a_test_program_is_forgotten(folder: Path) -> None:
    files = {path.stem for path in folder.glob("*.rs")} - {"main"}
    folders = {path.parent.name for path in folder.glob("*/mod.rs")}
    named = re.findall(r"^mod (\w+);$", (folder / "main.rs").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(files | folders)


def test_tests_that_may_be_skipped_exist_and_have_a_reason() -> None:
    rust = {"narrows-agent": functions("agent/tests"), "narrows-tests": functions("tests/tests")}
    for line in LIST:
        if line.startswith("#"):
            continue
        name, _, reason = line.partition(": ")
        assert reason, line
        package, _, rest = name.partition("::")
        if package.endswith(".py"):
            function = rest.partition("[")[0]
            assert f"def {function}(" in (ROOT / "tests" / "python" / package).read_text(), line
        else:
            assert f"fn {rest.rpartition('::')[2]}(" in rust[package], line


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: str(mutant["name"]))
def test_mutants_are_of_today(mutant: dict[str, str]) -> None:
    content = (ROOT / mutant["file"]).read_text()
    # If you have rewritten the line, change it in tests/mutants.toml too, or break another line there.
    assert content.count(mutant["old"]) == 1
    if "cargo" not in mutant:
        file, _, name = mutant["test"].partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()
