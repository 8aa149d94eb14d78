"""campaign.json and results.json whose members were changed by hand: one sentence, never a crash."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from narrows.cli.all_commands import app
from narrows.errors import NarrowsError
from narrows.report import ReportError

SCENARIO = """schema: narrows/scenario/1
question: Is a changed file told?
where: simulate
path: {forward: [{rate: 2 Mbit/s, queue: {droptail: 60 kB}}, {delay: 10 ms}]}
schemes: [reno, "linux:cubic"]
duration: 1 s
runs: 2
"""
#: Wrong values for a member.
OTHERS: tuple[Any, ...] = (None, True, -1, 2.5, "\x1b[2J", [], [[]], {}, {"a": {}})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changed")
    (folder / "one.yaml").write_text(SCENARIO)
    out = folder / "out"
    done = CliRunner().invoke(app, ["run", str(folder / "one.yaml"), "-o", str(out), "--no-report"])
    assert done.exit_code == 0, done.output
    return out


def places(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The addresses of all members, but only of one element of each list."""
    items = document.items() if isinstance(document, dict) else list(enumerate(document))[:1]
    for key, value in items:
        yield (*at, key)
        # The scenario as written is only for people.
        if isinstance(value, dict | list) and key != "written":
            yield from places(value, (*at, key))


def changed(document: dict[str, Any], at: tuple[Any, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(document)
    inner: Any = result
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    return result


@pytest.mark.parametrize("name", ["campaign.json", "results.json"])
def test_a_member_of_another_type_is_reported_or_harmless(finished: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    shutil.copytree(finished, folder)
    document = json.loads((folder / name).read_text())
    seen, told = 0, 0
    for at in places(document):
        # Three of them, different ones for each member: each takes a tenth of a second.
        for other in (OTHERS[(seen // 3 + step) % len(OTHERS)] for step in (0, 3, 6)):
            (folder / name).write_text(json.dumps(changed(document, at, other)))
            seen += 1
            told += looked_at(folder, (name, at, other))
    assert seen > 150 and told > seen / 10


def looked_at(folder: Path, what: object) -> bool:
    """Shows the campaign and prepares a report of it; returns whether it was refused."""
    from narrows.report import data

    done = CliRunner().invoke(app, ["show", str(folder)])
    error = done.exception
    refused = isinstance(error, NarrowsError)
    assert error is None or refused or isinstance(error, SystemExit), (what, repr(error))
    assert "\x1b[2J" not in done.output, what
    try:
        campaign = data.load(folder)
        for run in campaign.runs:
            assert run.flows is not None
        assert campaign.schemes is not None and campaign.name is not None and campaign.planes is not None
    except (ReportError, NarrowsError):
        refused = True
    return refused
