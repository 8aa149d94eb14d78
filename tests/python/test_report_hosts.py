"""Runs between two real hosts in the report, in `narrows show` and in `narrows check`.

The records are simulated, with a queue that never fills and one element in each direction, and then labelled
as a real path: the test chooses clocks and machines, and all numbers follow from the packets.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from narrows.cli.all_commands import app
from narrows.documents import resolved
from narrows.report import document, style
from narrows.report.content import Report
from narrows.report.data import load
from narrows.report.figures.summary import _common_parameters, _without
from report_campaigns import HOST, TIMES, Spec, network, write_campaign

ERROR_NS = 10_234_567


def _path() -> dict[str, Any]:
    path = network(queue_bytes=100_000_000)
    del path["forward"][1]
    return path


def _host(name: str, kernel: str, called: str, sent: int, arrived: int) -> dict[str, Any]:
    return {
        "name": name,
        "sysctls": {"net.ipv4.tcp_sack": "1"},
        "mtu": 1444,
        "host_name": called,
        "machine": {**HOST, "kernel": kernel},
        "versions": {"narrows": "0.1.0", "git": None},
        "cpu": {"busy_ratio": 0.25, "stolen_ratio": 0.0},
        "tunnel": {"sent": {"packets": sent}, "arrived": {"packets": arrived, "refused": {"forged": 3}}},
    }


def _as_real(record: dict[str, Any], spec: Spec) -> None:
    for way in ("forward", "backward"):
        record["cell"]["network"][way] = [{"name": f"{way}.0", "kind": "real"}]
    counts = []
    for element in record["elements"]:
        element["kind"] = "real"
        element.pop("capacity_bytes", None)
        counts.append((element["in_packets"], element["out_packets"]))
    (there, came_there), (back, came_back) = counts
    counted = {"left_out_sent": 0, "left_out_arrived": 0, "unknown": 0, "again": 0, "contradicting": 0}
    counted["marked"] = 2
    record.update(
        plane="hosts",
        host=None,
        hosts=[
            _host("sender", "6.1.55", "laptop", there, came_back),
            _host("receiver", "6.8.0", "cloud", back, came_there),
        ],
        started_at=TIMES[0],
        ended_at=TIMES[1],
        clock={
            "offset_ns": 5_000_000,
            "error_ns": ERROR_NS,
            "drift_ppb": 49_960.0,
            "by_ntp": {"offset_ns": 4_700_000, "bound_ns": 1_680_000, "drift_ppb": 50_000},
            "resolved": {"forward": spec.scheme != "cubic", "backward": True},
        },
        tunnel={"overhead_bytes": 56, "forward": counted, "backward": counted},
    )
    record["cell"]["where"] = "hosts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    specs = [Spec("cubic"), Spec("cubic", run=2), Spec("reno", runs_as=("reno", "reno"))]
    place = write_campaign(tmp_path_factory.mktemp("hosts") / "c", specs, path=_path(), shape=_as_real)
    for samples in place.glob("cells/*/queues.parquet"):
        samples.unlink()  # The queues of a real path are not sampled.
    return place


@pytest.fixture(scope="module")
def doc(folder: Path) -> Report:
    return document.compose(load(folder), {})


def test_one_way_delays_that_clocks_do_not_resolve_are_marked(doc: Report) -> None:
    table = doc.results.table
    notes = {note.mark: note.text for note in table.notes}
    columns = [column.head for column in table.columns]
    delay, queueing = (columns.index(name) for name in columns if "delay" in name)
    marked: dict[str, list[list[str]]] = {}
    scheme = ""
    for found in table.pad_rows():
        scheme = found[0].text or scheme  # Later rows of a scheme lack its name.
        marked.setdefault(scheme, []).append([notes[mark] for mark in found[delay].marks])
        assert not found[queueing].marks and found[queueing].text != "N/A"
    assert all("± 10.2 ms" in " ".join(texts) for texts in marked["cubic"])
    assert not any(marked["reno"])


def test_the_report_describes_clocks_and_both_machines(doc: Report) -> None:
    facts = dict(doc.runs[0].facts)
    assert facts["clocks"] == "± 10.2 ms, drift 50.0 ppm"
    assert facts["clocks by NTP"] == "-0.300 ms from what was measured, right to ± 1.680 ms"
    assert facts["around each packet"] == "56 bytes of the tunnel"
    assert facts["marked by the path"] == "4 packets"
    assert facts["CPU busy (receiver)"] == "25 %" and facts["refused datagrams (sender)"] == "3"
    sections = {section.title: dict(section.rows) for section in doc.system}
    assert sections["The sender (laptop)"]["kernel"] == "6.1.55"
    assert sections["The receiver (cloud)"]["kernel"] == "6.8.0"
    assert sections["The receiver (cloud)"]["net.ipv4.tcp_sack"] == "1"
    text = msgspec.json.encode(doc).decode()
    assert "a real path, of which what was sent and what arrived is all that is known" in text
    assert "smallest possible round trip" not in text
    assert "the capacity of a real path is not known" in text


def test_the_path_is_that_of_the_first_row(folder: Path) -> None:
    data = load(folder)
    data.runs.reverse()  # Cells are shuffled.
    assert isinstance(data.settings, resolved.Cell) and (data.settings.scheme, data.settings.run) == (
        "cubic",
        1,
    )


def test_records_of_real_paths_are_checked_and_shown(folder: Path) -> None:
    cell = folder / "cells" / "cubic-r1"
    checked = CliRunner().invoke(app, ["check", str(cell), "--json"])
    assert checked.exit_code == 0, checked.output
    checks = {check["name"]: check for check in json.loads(checked.output)["cells"][0]["checks"]}
    for name in ("conservation", "endpoints", "tunnel", "propagation", "fates", "states"):
        assert checks[name]["ok"] and not checks[name]["skipped"], checks[name]
    for name in ("lateness", "order", "rate", "queue_limit"):
        assert checks[name]["skipped"], checks[name]
    shown = CliRunner().invoke(app, ["show", str(cell)])
    assert "clocks of the hosts: known to 10.235 ms, drift 50.0 ppm" in shown.output, shown.output
    assert "the same by NTP: -0.300 ms from what was measured, right to ± 1.680 ms" in shown.output

    record = json.loads((cell / "run.json").read_text())
    record["hosts"][1]["tunnel"]["arrived"]["packets"] += 1
    (cell / "run.json").write_text(json.dumps(record))
    found = CliRunner().invoke(app, ["check", str(cell)])
    assert found.exit_code == 1 and "the tunnel counted" in found.output


def test_schemes_keep_their_colour_on_both_hosts_and_differ_by_marker_and_dash() -> None:
    here, there = (style.of(f"linux:bbr (sender {place})") for place in ("here", "there"))
    assert here.color == there.color == style.of("linux:bbr").color
    assert here.marker != there.marker and here.dash != there.dash


def test_names_are_not_cut_within_parentheses() -> None:
    names = [f"{scheme} (sender {place})" for place in ("here", "there") for scheme in ("a", "b", "c d=1")]
    assert _common_parameters(names) == []
    assert _common_parameters(names[:3]) == ["(sender here)"]
    assert [_without(name, ["(sender here)"]) for name in names[:3]] == ["a", "b", "c d=1"]
