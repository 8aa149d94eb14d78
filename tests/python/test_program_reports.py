"""Metrics that programs report: manifests, values in output, and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from narrows.campaign import program_reports as reports
from narrows.documents.results import Measured, MeasuredFlow, Metric
from narrows.errors import DataError
from narrows.scenario.programs.manifest import read_text
from narrows.scenario.programs.reports import steps
from narrows.scenario.programs.scheme import plan as plan_of

MANIFEST = """\
schema: narrows/program/1
what: A pair of scripts
data: connector
listener: {command: "recv {port}", ready: tcp}
connector: {command: "send {address} {port}"}
reports:
"""


def plan(line: str, more: str = "") -> dict[str, str | None]:
    """The metric `x` of a manifest, in the form of the record."""
    program = read_text(f"{MANIFEST}  x: {line}\n{more}", Path("pair.yaml"), "pair")
    return plan_of(program, program.variants["default"], {}).reports["x"]


def wrong(line: str, more: str = "") -> str:
    with pytest.raises(DataError) as caught:
        plan(line, more)
    return str(caught.value)


def record(
    folder: Path, texts: dict[str, str], plans: list[dict[str, Any]], kept: int | None = None
) -> Measured:
    """A record with the output of flow 1, and of flow 2 if there are two plans; measured and reported."""
    logs = folder / "logs"
    for name, text in texts.items():
        path = logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    flows = []
    for number, one in enumerate(plans, 1):
        process = {
            side: {
                "printed": (
                    size := [len(texts.get(f"flow-{number}-{side}.{end}", "")) for end in ("out", "err")]
                ),
                "kept": size if kept is None else [kept, kept],
            }
            for side in ("listener", "connector")
        }
        flows.append({"flow": number, "program": {"name": "pair", "reports": {"x": one}, **process}})
    run = {"format": "narrows/run/1", "flows": flows}
    (folder / "run.json").write_text(json.dumps(run))
    made = measured_flows([*(str(flow["flow"]) for flow in flows), "all"])
    reports.add([(folder, made)])
    return made


def described(folder: Path, line: str) -> Metric:
    """The description of the metric that a program reports."""
    record(folder, {}, [plan(line)])
    (metric,) = reports.add([(folder, measured_flows(["1", "all"]))])
    return metric


def measured_flows(numbers: Sequence[str]) -> Measured:
    """Measurements without any metric."""
    flows = [MeasuredFlow(flow=number, scheme=None, metrics={}) for number in numbers]
    return Measured(flows=flows, absent={})


def value(folder: Path, text: str, line: str, kept: int | None = None) -> float | str:
    """The value of the metric in the sender's standard output, or the reason why there is none."""
    measured = record(folder, {"flow-1-connector.out": text}, [plan(line)], kept)
    found = measured.flows[0].metrics["reported_x"]
    if found is None:
        return str(measured.absent["1"]["reported_x"])
    assert measured.flows[1].metrics["reported_x"] == found, "a single flow is all flows"
    return float(found)


def test_values_are_found(tmp_path: Path) -> None:
    nested = json.dumps({"end": {"sum": {"bps": 12.5}}, "streams": [{"rtt": 4}, {"rtt": "8"}]})
    assert value(tmp_path, nested, "{json: end.sum.bps, unit: Mbit/s}") == 12.5e6
    assert value(tmp_path, nested, "{json: 'streams[*].rtt', combine: mean, unit: ms}") == 6e6
    assert value(tmp_path, nested, "{json: 'streams[1].rtt'}") == 8
    lines = 'starting\n{"rtt": 3}\n{"other": 1}\n{"rtt": 5}\nbroken {\n'
    assert value(tmp_path, lines, "{ndjson: rtt}") == 5
    assert value(tmp_path, lines, "{ndjson: rtt, combine: first}") == 3
    assert value(tmp_path, "rate=1.5\nrate=2.5 rate=4\n", "{regex: 'rate=([0-9.]+)', combine: max}") == 4
    assert value(tmp_path, "0.5 %", "{regex: '(.*) %', unit: '%'}") == 0.005


def test_missing_parts_are_reported_and_not_invented(tmp_path: Path) -> None:
    out = "the standard output of the connector"
    assert value(tmp_path, "", "{json: a}") == f"{out} is empty"
    assert value(tmp_path, "hello", "{json: a}") == f"{out} is not a JSON document"
    assert value(tmp_path, "{}", "{json: a.b}") == f"{out} has no a.b"
    assert value(tmp_path, '{"a": null}', "{json: a}") == f"null is not a number (a in {out})"
    assert value(tmp_path, '{"a": true}', "{json: a}") == f"true is not a number (a in {out})"
    assert value(tmp_path, '{"a": NaN}', "{json: a}") == f"NaN is not a number (a in {out})"
    assert value(tmp_path, '{"a": 1e999}', "{json: a}") == f"Infinity is not a number (a in {out})"
    assert "is not a number" in str(value(tmp_path, f'{{"a": {"9" * 4000}}}', "{json: a}"))
    assert value(tmp_path, "[" * 100_000, "{json: a}") == f"{out} is not a JSON document"
    assert value(tmp_path, "rate=\n", "{regex: 'rate=([0-9]+)'}") == f"{out} has no match of rate=([0-9]+)"
    assert value(tmp_path, '{"a": 1}', "{json: a}", kept=3) == f"{out} was cut, see output among its limits"
    assert value(tmp_path, "{}", "{ndjson: a, in: stats}") == "the file stats of the connector does not exist"


def test_files_and_standard_error_and_the_other_side(tmp_path: Path) -> None:
    texts = {
        "flow-1-connector.err": "loss 3",
        "flow-1-listener.out": '{"frames": 7}',
        "flow-1-connector/deep/stats.ndjson": '{"rtt": 2}\n',
    }
    for line, expected in (
        ("{regex: 'loss (.)', in: errors}", 3),
        ("{json: frames, side: listener}", 7),
        ("{ndjson: rtt, in: '{log}/deep/stats.ndjson'}", 2),
    ):
        measured = record(tmp_path, texts, [plan(line)])
        assert measured.flows[0].metrics["reported_x"] == expected
    # Nothing outside the folder is read.
    (tmp_path / "logs" / "flow-1-connector" / "link").symlink_to("/etc/passwd")
    measured = record(tmp_path, texts, [plan("{regex: '(0)', in: link}")])
    assert "is not in its folder" in measured.absent["1"]["reported_x"]


def test_files_that_are_too_large_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "MOST_BYTES", 100)
    assert "standard output of the connector" in str(value(tmp_path, "x" * 101, "{regex: '(x)'}"))


def test_reported_values_of_flows_are_combined(tmp_path: Path) -> None:
    texts = {"flow-1-connector.out": '{"a": 1}', "flow-2-connector.out": '{"a": 3}'}
    for how, expected in (("sum", 4), ("mean", 2), ("max", 3)):
        line = plan(f"{{json: a, flows: {how}}}")
        assert record(tmp_path, texts, [line, line]).flows[2].metrics["reported_x"] == expected
    line = plan("{json: a}")
    measured = record(tmp_path, texts, [line, line])
    assert measured.absent["all"]["reported_x"] == "it is reported per flow"
    # A flow that reports nothing is not part of a sum.
    run = json.loads((tmp_path / "run.json").read_text())
    run["flows"].append({"flow": 3})
    (tmp_path / "run.json").write_text(json.dumps(run))
    measured = measured_flows(["1", "2", "3", "all"])
    reports.add([(tmp_path, measured)])
    assert measured.absent["all"]["reported_x"] == "only some of the flows report it"
    assert measured.absent["3"]["reported_x"] == "the program of this flow does not report it"
    other = plan("{json: a, unit: ms}")
    measured = record(tmp_path, texts, [line, other])
    assert measured.absent["2"]["reported_x"] == "it is in ns here, elsewhere in none"


def test_metrics_are_described(tmp_path: Path) -> None:
    metric = described(tmp_path, "{json: a, unit: Mbit/s, better: higher, what: Its own.}")
    assert (metric.name, metric.label) == ("reported_x", "x (reported)")
    assert (metric.unit, metric.show_unit, metric.show_scale) == ("bit/s", "Mbit/s", 1e-6)
    assert (metric.better, metric.definition) == ("higher", "Its own.")
    metric = described(tmp_path, "{json: a, unit: frames}")
    assert (metric.unit, metric.show_scale) == ("frames", 1.0)


def test_paths() -> None:
    assert steps("a.b[0].c[*]") == ["a", "b", 0, "c", "*"]
    for bad in (".a", "a[x]", "a..b", "a[", ""):
        with pytest.raises(ValueError, match=r"path|empty"):
            steps(bad)


def test_each_mistake_has_its_sentence() -> None:
    assert "needs one of json, ndjson or regex, and only one" in wrong("{unit: ms}")
    assert "needs one of" in wrong("{json: a, regex: '(a)'}")
    assert "is not a path such as" in wrong("{json: 'a[x]'}")
    assert "is not a regular expression" in wrong("{regex: '(a'}")
    assert "needs a group" in wrong("{regex: 'a'}")
    assert '"more" is not one of higher or lower' in wrong("{json: a, better: more}")
    assert '"avg" is not one of last' in wrong("{json: a, combine: avg}")
    assert "must be output, errors, or a file" in wrong("{json: a, in: ../x}")
    assert "must be output, errors, or a file" in wrong("{json: a, in: /etc/passwd}")
    assert 'unknown unit "mbit/s"; did you mean "Mbit/s"?' in wrong("{json: a, unit: mbit/s}")
    assert "jason: unknown key; did you mean" in wrong("{jason: a}")
    assert "one listener serves all flows" in wrong("{json: a, side: listener}", "listeners: one\n")
    assert '"all" is not one of each or one' in wrong("{json: a}", "listeners: all\n")
    many = "".join(f"  m{number}: {{json: a}}\n" for number in range(20))
    assert "21 metrics; 20 are the most" in wrong("{json: a}", many)
