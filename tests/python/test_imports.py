"""The packages of `narrows` depend on each other in one direction only."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import narrows

ROOT = Path(narrows.__file__).parent


def imported(file: Path) -> Iterator[str]:
    """The packages and top-level modules of `narrows` that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            first, _, rest = f"{name}.".partition(".")
            if first == "narrows" and rest:
                yield rest.partition(".")[0]


def dependencies() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.py"):
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        found.setdefault(own, set()).update(set(imported(file)) - {own})
    return found


def test_no_packages_import_each_other() -> None:
    found = dependencies()
    assert {"agent", "scenario"} <= found["campaign"], "nothing was read"
    list(graphlib.TopologicalSorter(found).static_order())


def test_a_cycle_is_found() -> None:
    found = dependencies()
    found["scenario"].add("campaign")
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter(found).static_order())


def test_agents_are_started_by_their_client_only() -> None:
    """Everything else uses `narrows.agent`; ssh is the other program with a protocol."""
    starts = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        if "subprocess.Popen(" in file.read_text(encoding="utf-8")
    }
    # Reports are drawn by separate processes; compilers and wrappers of Pantheon are external; a shell
    # survives the program and restores its terminal.
    others = {"extend/building.py", "report/assemble.py", "programs/build.py", "scenario/programs/wrapper.py"}
    others |= {"live/terminal_guard.py"}
    assert starts == {"agent/location.py", "agent/process.py", "hosts/ssh.py"} | others
