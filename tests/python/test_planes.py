"""The planes' instructions to the agent about the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from narrows.campaign.planes import LocalPlane, Means


@pytest.mark.parametrize(
    ("where", "means", "words"),
    [
        ("simulate", Means(), ("--beside", "1")),
        ("simulate", Means(memory=30_000_000, emulator_threads=2), ("--memory", "30000000")),
        ("emulate", Means(), ()),
        ("emulate", Means(memory=30_000_000, emulator_threads=2), ("--emulator-threads", "2")),
    ],
)
def test_the_agent_receives_the_limits_of_its_run(where: str, means: Means, words: tuple[str, ...]) -> None:
    nothing = cast(Any, None)
    plane = LocalPlane(where, nothing, Path("files"), means)
    run = plane.run_of(nothing, Path("cell.json"), Path("out"), Path("log"), lambda _: None)
    assert cast(Any, run).more == words
