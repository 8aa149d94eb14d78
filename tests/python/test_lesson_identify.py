"""The lesson on identifying senders: the cards of its page are those of the senders in its solution."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from narrows.identify.features import BESIDE_CUBIC, LONG, SHALLOW
from narrows.identify.running import SIMULATE, Order, run_probes
from narrows.identify.text import title_of, value_of

PAGE = Path(__file__).parents[2] / "labs" / "lesson-identify" / "page.md"
SENDERS = {"A": "scalable", "B": "bbr1", "C": "{scheme: cubic, beta: 0.85}", "D": "illinois"}
_NUMBER = re.compile(r"[0-9.]+")


def rows_of(letter: str) -> dict[tuple[str, str], tuple[str, str]]:
    """The value and the interval of each line of a card on the page."""
    part = PAGE.read_text(encoding="utf-8").split(f"### {letter}\n")[1].split("\n#")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines() if "|" in line]
    return {(title, probe): (value, interval) for title, probe, value, interval in cells[2:]}


@pytest.mark.parametrize("letter", SENDERS)
def test_the_page_has_the_card_of_the_sender(letter: str, tmp_path: Path) -> None:
    probes = (LONG, SHALLOW, BESIDE_CUBIC)
    card = run_probes(SENDERS[letter], tmp_path, Order(SIMULATE, 6, probes=probes))
    rows = rows_of(letter)
    shown = {(title_of(line), line.probe.removeprefix("probe-")): line for line in card.lines if not line.why}
    assert len(rows) >= 15
    for key, (value, interval) in rows.items():
        line = shown[key]
        if line.words:
            assert value_of(line).split()[0] == value
            continue
        low, high = map(float, _NUMBER.findall(interval)[:2])
        assert line.low is not None and line.high is not None
        assert line.low <= high and low <= line.high, (key, interval, line.value)
