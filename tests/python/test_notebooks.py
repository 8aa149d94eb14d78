"""The notebooks run from beginning to end, as in Jupyter."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
#: Figures of each, by the beginning of its name.
FIGURES = {
    "1-first-run": 1,
    "2-compare-schemes": 1,
    "3-sweep": 1,
    "4-own-metric": 0,
    "5-other-tools": 5,
    "6-teach-a-sender": 1,
}
#: Loops that take a minute, and shorter ones that `make test` runs in their place.
SHORTER = {"6-teach-a-sender": ("range(25)", "range(2)")}

# The packages of Jupyter warn about their own parts.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_every_notebook_is_listed_with_its_figures() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(FIGURES)


def _run(path: Path, place: Path, monkeypatch: pytest.MonkeyPatch, shorter: tuple[str, str] | None) -> None:
    """Runs a notebook in a new folder below `place`, with another loop if there is one."""
    text = path.read_text()
    notebook: nbformat.NotebookNode = nbformat.reads(text, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), (
        "clear the outputs before you commit"
    )
    if shorter is not None:
        assert text.count(shorter[0]) == 1, f"{shorter[0]} is the loop that takes long"
        for cell in code:
            cell.source = cell.source.replace(*shorter)
    # The user's settings have no influence.
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(place / name.lower()))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    work = place / "work"
    work.mkdir()
    client = NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": work}}
    )
    client.execute(env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    outputs = [output for cell in code for output in cell.outputs]
    errors = [output for output in outputs if output.output_type == "error"]
    assert not errors, errors
    figures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(figures) == FIGURES[path.stem]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_beginning_to_end(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(path, tmp_path, monkeypatch, SHORTER.get(path.stem))


@pytest.mark.nightly
@pytest.mark.parametrize("name", SHORTER)
def test_a_notebook_with_a_long_loop_runs_as_readers_run_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (path for path in NOTEBOOKS if path.stem == name)
    _run(path, tmp_path, monkeypatch, None)


def test_the_page_lists_all_of_them() -> None:
    text = (NOTEBOOKS[0].parent / "README.md").read_text()
    assert all(f"({path.name})" in text for path in NOTEBOOKS)
