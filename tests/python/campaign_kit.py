"""Small simulated campaigns, for tests of results."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from narrows.campaign import sealing
from narrows.cli.all_commands import app

SCENARIO = """\
schema: narrows/scenario/1
name: small
question: Does it work?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}]}
schemes: [reno, cubic]
flows: {count: 2, interval: 200 ms}
duration: 1 s
runs: 2
"""
#: The same scenario with losses.
LOSSY = SCENARIO.replace("{delay: 10 ms}", "{delay: 10 ms}, {loss: 1 %}")


def narrows(*arguments: object) -> Result:
    """Calls the program inside this process."""
    return CliRunner().invoke(app, [str(one) for one in arguments])


def simulate(folder: Path, text: str = SCENARIO, *options: str) -> Path:
    """Simulates a campaign into a folder that does not exist yet."""
    file = folder.parent / f"{folder.name}.yaml"
    file.write_text(text)
    done = narrows("run", file, "-o", folder, "--no-report", *options)
    assert done.exit_code == 0, (done.output, done.exception)
    return folder


@contextlib.contextmanager
def edited(file: Path) -> Iterator[dict[str, Any]]:
    """Lets a test edit one of our JSON files, and then updates its digest as if Narrows had written it."""
    document = json.loads(file.read_text())
    sealed = document.pop("digest", None) is not None
    yield document
    kind = document["format"].partition(".")[0]
    file.write_text(sealing.seal(document, kind) if sealed else json.dumps(document))


def one_and_two(place: Path) -> Path:
    """A new folder with two campaigns, `one` and `two`."""
    place.mkdir()
    for name in ("one", "two"):
        simulate(place / name)
    return place


def sentence(result: Result) -> str:
    """The sentence of a refusal, from the program's last line."""
    assert result.exception is not None, result.output
    return str(result.exception)


def rows_of(table: Any, **where: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow table that have these values."""
    rows = table.to_pylist()
    return [row for row in rows if all(row[name] == value for name, value in where.items())]
