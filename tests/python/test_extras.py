"""Messages about missing libraries."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from narrows.errors import EXIT_CANNOT_HERE, UnavailableError
from narrows.extras import EXTRAS, missing_library

ROOT = Path(__file__).resolve().parents[2]


def without(library: str, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command with a library that can't be imported, as if it were not installed."""
    program = (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {library!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from narrows.cli import main\n"
        f"sys.argv = ['narrows', *{list(args)!r}]\n"
        "main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd, timeout=120
    )


def test_every_library_is_in_the_extra_that_is_named() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert any(one.replace("-", "_").startswith(library) for one in extras[extra]), library


def test_only_known_libraries_have_an_install_hint() -> None:
    told = missing_library(ModuleNotFoundError("no", name="matplotlib.figure"))
    assert isinstance(told, UnavailableError)
    assert str(told).endswith("pip install 'narrows[plot]'")
    assert missing_library(ModuleNotFoundError("no", name="narrows.nothing")) is None
    assert missing_library(ValueError("no")) is None


def test_a_hunt_without_scipy_says_what_to_install_before_it_begins(tmp_path: Path) -> None:
    words = ["hunt", "reno", "--worst", "loss", "--budget", "45", "-o", "hunt"]
    done = without("scipy", *words, cwd=tmp_path)
    assert done.returncode == EXIT_CANNOT_HERE, done.stderr
    assert done.stderr == (
        "narrows: narrows hunt needs SciPy, which is not installed; pip install 'narrows[hunt]'\n"
    )
    assert not (tmp_path / "hunt").exists()


def test_a_run_without_matplotlib_keeps_its_results_and_says_what_a_report_needs(tmp_path: Path) -> None:
    words = ["run", "one-flow", "--where", "simulate", "--schemes", "reno", "--time", "1", "-o", "look"]
    done = without("matplotlib", *words, cwd=tmp_path)
    assert done.returncode == EXIT_CANNOT_HERE, done.stderr
    assert "the results are complete" in done.stderr
    assert "pip install 'narrows[plot]'" in done.stderr
    assert (tmp_path / "look" / "results.json").is_file()
    assert without("matplotlib", *words, "--no-report", cwd=tmp_path).returncode == 0
    plot = without("matplotlib", "plot", "look", "--figure", "throughput", cwd=tmp_path)
    assert plot.returncode == EXIT_CANNOT_HERE
    assert "pip install 'narrows[plot]'" in plot.stderr
