"""What stands in labels and reasons is printed as it stands, on a terminal as anywhere else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from narrows import console as consoles
from narrows.analysis.tables import print_cells
from narrows.campaign.progress import bars
from test_pantheon import data, narrows

__all__ = ["data"]

#: What rich would take for an emoji, a style, the end of a style, and an escape.
WORDS = (":x:", ":fire:", "[red]", "[/]", "[bold", "\\[", "[link=https://example.org]")


@pytest.fixture(params=["stdout_console", "stderr_console"])
def console(request: pytest.FixtureRequest) -> Console:
    made: Console = getattr(consoles, request.param)()
    made._force_terminal, made.width, made.file = True, 200, io.StringIO()
    made.no_color = True
    return made


def told(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("word", WORDS)
def test_words_of_users_are_printed_as_they_stand(console: Console, word: str) -> None:
    console.print(f"plain {word} text")
    assert f"plain {word} text" in told(console)
    cell: dict[str, Any] = {"id": f"{word}-r1", "state": "finished", "verdict": word}
    print_cells(console, [cell | {"reasons": [{"text": f"why {word}"}]}])
    assert f"{word}-r1" in told(console) and f"why {word}" in told(console)
    progress = bars(console, live=True)
    progress.add_task(f"task {word} run 1", note=f"note {word}")
    console.print(progress.get_renderable())
    assert f"task {word} run 1" in told(console) and f"note {word}" in told(console)


def test_tables_of_an_import_have_the_names_of_its_schemes(data: Path, tmp_path: Path) -> None:
    for file in list(data.glob("cubic_*")):
        file.rename(data / file.name.replace("cubic", ":fire:[red]"))
    (data / "pantheon_metadata.json").unlink()
    done = narrows("import", "pantheon", data, "-o", tmp_path / "out", "--no-report")
    # Pantheon's table, ours, and what is said about the row.
    assert done.output.count("pantheon::fire:[red]") >= 3
    assert "[Mbit/s]" in done.output and "\\[" not in done.output
