"""`narrows.compare` and `narrows.plot`, as used by programs and notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

import narrows
from compare_kit import Values, campaign


def runs(factor: float) -> list[Values]:
    return [
        {"throughput_bps": factor * 11e6 * (1 + number / 1000), "delay_p95_ns": 6e7 + 1e5 * number}
        for number in range(10)
    ]


def test_a_comparison_prints_like_the_command(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"reno": runs(1), "cubic": runs(1)})
    after = campaign(tmp_path / "b", {"reno": runs(0.9), "cubic": runs(1)}, first_seed=1000)
    found = narrows.compare(before, str(after), fail_on=["throughput worse by 5 %"])
    assert [limit["broken"] for limit in found.document["limits"]] == [True]
    assert len(found.broken) == 1
    assert "reno" in str(found) and "-10" in str(found)
    assert found.markdown().startswith("### ")
    assert narrows.compare(narrows.load(after), flow="all").broken == []
    with pytest.raises(narrows.NarrowsError, match=r"metric .* does not exist"):
        narrows.compare(before, after, metrics=["througput"])


def test_a_figure_is_matplotlibs(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"reno": runs(1), "cubic": runs(0.8)})
    figure = narrows.plot(folder, "summary", width_mm=88)
    assert figure.get_figwidth() == pytest.approx(88 / 25.4)
    assert len(figure.axes) >= 1
    with pytest.raises(narrows.NarrowsError, match=r"figure .* does not exist"):
        narrows.plot([folder], "summery")
