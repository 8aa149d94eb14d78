"""Fixtures and hooks of all tests."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from narrows.scenario import registry

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import forked_commands  # noqa: E402
import shell_kit  # noqa: E402
from browser import Browser  # noqa: E402
from shell_kit import Shell  # noqa: E402

# Under nohup, commands would inherit that they ignore the hang-ups which tests send.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def fixed_registry(monkeypatch: pytest.MonkeyPatch) -> registry.Registry:
    """A registry that does not change with the core, and has entries that the core does not have.

    If scenarios can use them, nothing in Python depends on the content of the registry.
    """
    fixed = registry.parse((HERE / "registry.json").read_text())
    monkeypatch.setattr(registry, "load", lambda: fixed)
    return fixed


@pytest.fixture(params=["root", "somebody"])
def shell(request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell as root and as an ordinary user."""
    with shell_kit.folder_for_everybody() as folder:
        yield shell_kit.shell_of(request.param, folder)


@pytest.fixture
def one_shell(tmp_path: Path) -> Shell:
    """A shell as the user who runs the tests."""
    return shell_kit.shell_of("root" if os.geteuid() == 0 else "somebody", tmp_path)


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps copies of agents for other hosts in a cache for these tests alone, made once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a process."""
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """A page without storage or history."""
    with chromium.new_page() as page:
        yield page


#: The slowest files, which come first: no process ends long after the others.
_LONGEST = (
    "test_calibrate.py", "test_notebooks.py", "test_kills.py", "test_figures_hold_data.py",
    "test_identify_page.py", "test_irregular_files.py", "test_identify_cards.py", "test_hunt.py",
    "test_sweep.py", "test_sweep_dask.py", "test_bbr_cases.py", "test_accessibility.py", "test_adding.py",
    "test_tampering.py", "test_site_browser.py", "test_mutated_scenarios.py", "test_lab.py",
)  # fmt: skip
#: Slow files whose tests share no fixture, so that several processes can run them.
_DIVIDED = ("test_bbr_cases.py", "test_calibrate.py", "test_kills.py", "test_notebooks.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the slowest files first."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadfile`, gives single tests of divided files to processes, and the other files whole, so
    that a fixture of a module is made once."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return nodeid if Path(file).name in _DIVIDED else file

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Appends the processor seconds of each test and of the processes that it started to the file that
    NARROWS_COSTS names. Unlike durations they hardly depend on what else the machine does."""
    before = _processor_seconds()
    result = yield
    if place := os.environ.get("NARROWS_COSTS"):
        with Path(place).open("a") as file:
            file.write(f"{_processor_seconds() - before:.2f}\t{item.nodeid}\n")
    return result


def _processor_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    # The process that forks commands has not ended, and is not among the children yet.
    return sum(one.ru_utime + one.ru_stime for one in used) + forked_commands.count_processor_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Records skipped tests for the summary of `make test`, as `narrows-skips` does for tests in Rust; and
    fails them where CI is "true", unless tests/may-skip.txt lists them with a reason."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)
        name = report.nodeid.split("/")[-1].replace("\t", " ")
        why = report.longrepr[2].removeprefix("Skipped: ").replace("\n", " ")
        if place := os.environ.get("NARROWS_SKIPS"):
            with Path(place).open("a") as file:
                file.write(f"{name}\t{why}\n")
        if os.environ.get("CI") == "true" and name.partition("[")[0] not in may_skip():
            report.outcome = "failed"
            report.longrepr = f"{name} was skipped ({why}), and tests/may-skip.txt does not list it"
    return report


def may_skip() -> set[str]:
    """The tests that may be skipped even in continuous integration."""
    lines = (ROOT / "tests" / "may-skip.txt").read_text().splitlines()
    return {line.split(": ")[0] for line in lines if not line.startswith("#")}
