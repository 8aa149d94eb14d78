"""The reference of elements: complete, with pictures of the core's behaviour, and reproducible bytes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from narrows import _native
from narrows.reference import elements, svg
from narrows.reference.examples import FAMILIES
from narrows.reference.probe import Change, Load, Packets, Stream, play
from narrows.scenario import registry

KNOWN = registry.load()
ENTRIES = [(family, name) for family in FAMILIES for name in getattr(KNOWN, family)]


@pytest.mark.parametrize(("family", "name"), ENTRIES, ids="-".join)
def test_pictures_are_small_valid_and_repeatable(family: str, name: str) -> None:
    text = elements.picture(family, name)
    assert len(text.encode()) < 30_000
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    series = [node for node in root.iter() if node.get("class", "").split()[:1][0:] and node.get("d")]
    assert len(series) > 2, "nothing is drawn besides the axes"
    assert elements.picture(family, name) == text


def test_the_page_names_everything() -> None:
    page = elements.markdown(KNOWN)
    for family, name in ENTRIES:
        entry = getattr(KNOWN, family)[name]
        section = page.split(f" `{name}`\n")
        assert any(entry.summary.rstrip(".") in part for part in section), name
        assert f"({elements.file_name(family, name)})" in page
        for param in entry.params:
            assert f"| `{param.name}` |" in page
    for param in (*KNOWN.bottleneck, *KNOWN.host_settings):
        assert f"| `{param.name}` |" in page


def test_an_entry_without_example_still_has_its_section(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for family in FAMILIES:
        keep = "droptail" if family == "queues" else ""
        for name in [name for name in FAMILIES[family] if name != keep]:
            monkeypatch.delitem(FAMILIES[family], name)
    (tmp_path / "elements").mkdir()
    (tmp_path / "elements" / "queue-gone.svg").write_text("old")
    written = elements.write(KNOWN, tmp_path)
    assert [path.name for path in written] == ["elements.md", "queue-droptail.svg"]
    assert [path.name for path in (tmp_path / "elements").iterdir()] == ["queue-droptail.svg"]
    assert "### queue `red`" in (tmp_path / "elements.md").read_text()


def _steady(count: int, every_us: float = 1000.0) -> Packets:
    return Load((Stream(every_us, ((0.0, count * every_us * 1e-6),)),)).packets()


def test_a_probe_has_exact_times() -> None:
    packets = _steady(5)
    fates = play("{delay: 20 ms}", packets)
    assert fates.left_ns.tolist() == [20_000_000 + 1_000_000 * index for index in range(5)]
    assert fates.dropped_ns.tolist() == [-1] * 5
    # 12 Mbit/s: 1 ms per packet; all arrive at once, one is served, two wait.
    fates = play("{rate: 12 Mbit/s, queue: {droptail: 3 kB}}", Packets.at_once(5, 1500))
    assert fates.left_ns.tolist() == [1_000_000, 2_000_000, 3_000_000, -1, -1]
    assert fates.dropped_ns.tolist() == [-1, -1, -1, 0, 0]
    assert fates.reason[3:] == ["queue_full", "queue_full"]


def test_a_probe_shows_copies_damage_and_changes() -> None:
    packets = _steady(1000)
    fates = play("{duplicate: 10 %}", packets)
    assert 60 < len(fates.copy_of) < 150
    originals = fates.left_ns[fates.copy_of.astype(int)]
    assert np.array_equal(np.sort(originals), np.sort(fates.copy_left_ns))
    assert 60 < int(play("{corrupt: 10 %}", packets).corrupt.sum()) < 150
    changes = [Change(500_000_000, "probe", {"open": False})]
    dropped = play("{gate: {open: true}}", packets, changes).dropped_ns
    assert np.count_nonzero(dropped >= 0) == 500
    assert dropped[dropped >= 0].min() == 500_000_000


def test_a_probe_marks_identifiable_flows() -> None:
    packets = FAMILIES["queues"]["pie"].load.packets()
    fates = play("{rate: 10 Mbit/s, queue: {red: {packets: 100 packets}}}", packets)
    assert fates.marked.any()
    assert set(packets.flow[fates.marked]) == {1}


def test_a_probe_refuses_nonsense() -> None:
    packets = _steady(2)
    columns = (packets.size, packets.flow, packets.ecn, packets.dscp, packets.ack)
    delay = json.dumps({"kind": "delay", "delay": 5})
    with pytest.raises(ValueError, match="the times must not decrease"):
        _native.probe_element(delay, packets.time_ns[::-1].copy(), *columns)
    with pytest.raises(ValueError, match="must have equal lengths"):
        _native.probe_element(delay, packets.time_ns[:1].copy(), *columns)
    with pytest.raises(ValueError, match="unknown link element 'dealy'"):
        _native.probe_element(json.dumps({"kind": "dealy"}), packets.time_ns, *columns)


def test_axes_have_round_ticks() -> None:
    assert svg.ticks_of(48) == [0, 10, 20, 30, 40]
    assert svg.ticks_of(1) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert svg.ticks_of(3.2) == [0, 1, 2, 3]
    for value in (0.3, 1.0, 7.7, 48.9, 120.0, 733.0):
        top = svg.round_up(value)
        assert value <= top <= 1.5 * value
        assert 3 <= len(svg.ticks_of(top)) <= 8


def test_dots_that_touch_become_one_stroke() -> None:
    picture = svg.Picture(10, 10, "x", "y", "t")
    picture.dots([(5, 0), (5, 0.1), (5, 0.2), (5, 10), (11, 5)], "one")
    assert picture.parts == ['<path class="one dot" d="M195 20h0M195 110v2"/>']
