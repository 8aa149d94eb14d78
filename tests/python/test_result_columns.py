"""Results as tables: keys of the matrix and parameters of schemes have separate columns."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import processes
from campaign_kit import SCENARIO, narrows, simulate
from narrows._native import encode_table
from narrows.campaign import results
from narrows.campaign.columns import Columns, infer_types
from narrows.campaign.results_file import table
from narrows.campaign.store import CampaignFolder
from narrows.documents.data import to_data
from narrows.documents.resolved import read_resolved
from narrows.documents.results import read_results

MATRIX = """\
schema: narrows/scenario/1
name: swept
question: Does it work?
where: simulate
path: {forward: [{rate: 4 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 10 ms}, {loss: 0 %}]}
schemes:
  - reno
  - cubic
  - {scheme: cubic, beta: 0.8, name: gentle}
  - {scheme: cubic, transport: {initial_window: 4 packets}}
duration: 500 ms
matrix:
  path.forward.0.rate: {label: capacity, values: [2 Mbit/s, 4 Mbit/s]}
  path.forward.1.delay: [10 ms, 20 ms]
  path.forward.2.loss: [0 %, 0.1 %]
  path.forward.0.queue: [{droptail: 1 bdp}, {codel: {}}]
  rtt: 2 x delay
  paired: [capacity, delay]
  without: [{capacity: 4000 kbit/s, loss: 0.1 %}]
measure: {links: [forward.0]}
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(tmp_path_factory.mktemp("swept") / "out", MATRIX)


def parquet_rows(folder: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(folder / "results.parquet").to_pylist())


def test_every_key_and_parameter_is_a_column_with_its_unit(swept: Path) -> None:
    rows = parquet_rows(swept)
    first = next(
        row for row in rows if row["scheme"] == "gentle" and row["flow"] is None and row["link"] is None
    )
    assert {
        name: first[name] for name in ("scenario", "plane", "run", "duration_ns", "capacity_bps", "delay_ns")
    } == {
        "scenario": "swept",
        "plane": "simulate",
        "run": 1,
        "duration_ns": 500_000_000,
        "capacity_bps": 2_000_000,
        "delay_ns": 10_000_000,
    }
    assert first["row"] == "gentle (capacity 2 Mbit/s, delay 10 ms, loss 0 %, queue droptail 1 bdp)"
    assert first["queue"] == "droptail 1 bdp"
    assert first["rtt_ns"] == 20_000_000
    # loss_ratio is a metric, so the key's column is named by its address.
    assert first["path_forward_2_loss_ratio"] == 0 and first["loss_ratio"] is not None
    assert first["beta"] == 0.8 and first["initial_window_packets"] == 10
    assert isinstance(first["seed"], int) and first["seed"] > 0
    values = {(row["capacity_bps"], row["delay_ns"], row["path_forward_2_loss_ratio"]) for row in rows}
    # Paired, and one combination excluded, in whatever unit it is named.
    assert values == {
        (2_000_000, 10_000_000, 0.0),
        (2_000_000, 10_000_000, 0.001),
        (4_000_000, 20_000_000, 0.0),
    }
    betas = {row["scheme"]: row["beta"] for row in rows}
    assert betas == {"reno": 0.5, "cubic": 0.7, "gentle": 0.8, "cubic initial_window=4packets": 0.7}


def test_the_three_files_say_the_same(swept: Path) -> None:
    document = json.loads((swept / "results.json").read_text())
    rows = parquet_rows(swept)
    listed = [*document["rows"], *document["links"]]
    assert len(rows) == len(listed)
    with (swept / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    described = [column["name"] for column in document["columns"]]
    assert described == [
        "capacity_bps",
        "delay_ns",
        "path_forward_2_loss_ratio",
        "queue",
        "rtt_ns",
        "beta",
        "initial_window_packets",
    ]
    for row, one, line in zip(rows, listed, lines, strict=True):
        assert list(line) == list(row)
        flat = {
            **{name: one.get(name) for name in row if name not in one["metrics"]},
            **one["values"],
            **one["metrics"],
        }
        for name, value in row.items():
            expected = bool(flat[name]) if name == "background" else flat[name]
            assert value == expected, name
            written = {"true": True, "false": False, "": None}.get(line[name], line[name])
            same = type(value)(written) if value is not None and not isinstance(value, bool) else written
            assert same == value, name
    assert {line["flow"] for line in lines} == {"", "1"}
    assert {row["link"] for row in rows} == {None, "forward.0"}


def test_columns_are_described(swept: Path) -> None:
    columns = {one["name"]: one for one in json.loads((swept / "results.json").read_text())["columns"]}
    assert columns["capacity_bps"] == {
        "name": "capacity_bps",
        "label": "capacity",
        "of": "matrix",
        "key": "path.forward.0.rate",
        "unit": "bit/s",
    }
    assert (columns["rtt_ns"]["of"], columns["beta"]["of"]) == ("derived", "scheme")
    assert columns["initial_window_packets"]["of"] == "transport"


def test_in_memory_rows_are_joined_by_their_label_as_before(swept: Path) -> None:
    read = results.read(swept)
    labels = {line.scheme for line in read.summary}
    assert {row.scheme for row in read.rows} == labels
    assert "reno (capacity 2 Mbit/s, delay 10 ms, loss 0 %, queue droptail 1 bdp)" in labels
    assert {row.flow for row in read.rows} == {1, "all"}
    assert read_results(to_data(read)) == read
    summary = json.loads((swept / "results.json").read_text())["summary"][0]
    assert (summary["scheme"], summary["row"]) == ("reno", read.summary[0].scheme)
    assert summary["values"]["capacity_bps"] == 2_000_000


def test_a_campaign_without_variants_has_no_such_columns(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    document = json.loads((folder / "results.json").read_text())
    assert "columns" not in document and "values" not in document["rows"][0]
    names = pq.read_schema(folder / "results.parquet").names
    assert names[:11] == [
        "scenario", "plane", "scheme", "row", "run", "seed", "duration_ns", "flow", "flow_scheme",
        "background", "verdict",
    ]  # fmt: skip
    schema = pq.read_schema(folder / "results.parquet")
    assert schema.field("flow").type == pa.int64() and schema.field("jain_index").type == pa.float64()


def test_parquet_is_the_same_bytes_for_the_same_records(tmp_path: Path) -> None:
    one, two = simulate(tmp_path / "one"), simulate(tmp_path / "two")
    for name in ("results.json", "results.csv", "results.parquet"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_results_of_the_version_before_are_made_again(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    file = folder / "results.json"
    old = json.loads(file.read_text())
    before = results.read(folder)
    old["format"] = "narrows/results/1"
    for row in old["rows"]:
        row["flow"] = row["flow"] or "all"
        row["metrics"]["throughput_bps"] = 1.0
        del row["row"]
    file.write_text(json.dumps(old))
    assert results.read(folder) == before
    assert narrows("show", folder).exit_code == 0
    old["format"] = "narrows/results/3"
    file.write_text(json.dumps(old))
    refused = narrows("show", folder)
    assert "narrows/results/3, this version of narrows reads narrows/results/2; update narrows" in str(
        refused.exception
    )


def test_flows_with_other_parameters_have_their_own_values(tmp_path: Path) -> None:
    text = SCENARIO.replace("schemes: [reno, cubic]\n", "").replace(
        "flows: {count: 2, interval: 200 ms}",
        "flows: [{scheme: {scheme: cubic, beta: 0.8}}, {scheme: cubic}, {scheme: bbr1}]",
    )
    text = text.replace("droptail: 1 bdp", "droptail: 60 kB").replace(
        "duration: 1 s",
        "duration: 3 s",
    )
    folder = simulate(tmp_path / "out", text, "--runs", "1")
    assert {row["flow"]: row["beta"] for row in parquet_rows(folder)} == {1: 0.8, 2: 0.7, 3: None, None: None}


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1 Mbit/s", "500 kbit/s"], "rate", [1_000_000, 500_000]),
        (["1", "2.5"], "number", [1, 2.5]),
        (["1", "4"], "number", [1, 4]),
        (["0.5 bdp", "1 bdp"], "bdp", [0.5, 1.0]),
        (["1 bdp", "60 kB"], "text", ["1 bdp", "60 kB"]),
        (["0.1 %", "1 %"], "ratio", [0.001, 0.01]),
        (["true", "false"], "flag", [True, False]),
        (["droptail 1 bdp", "codel"], "text", ["droptail 1 bdp", "codel"]),
        ([], "text", []),
    ],
)
def test_values_have_the_kind_that_all_of_them_have(texts: list[str], kind: str, values: list[Any]) -> None:
    found, by_text = infer_types(texts)
    assert (found, [by_text[text] for text in texts]) == (kind, values)


def test_names_of_columns_never_meet() -> None:
    row = {"label": "cubic (run 1, flow 2)", "values": {"run": "1", "flow": "2"}, "flows": []}
    keys = {"run": "hosts.all.run", "flow": "path.flow"}
    document = {"scenario": {"resolved": {"schemes": [row], "matrix": keys}}}
    columns = Columns(read_resolved(document["scenario"]["resolved"]), ["path_flow"])
    names = [column.name for column in columns.listed]
    assert names == ["hosts_all_run", "path_flow_3"]
    assert columns.base("cubic (run 1, flow 2)") == "cubic"


def test_an_empty_campaign_has_an_empty_table(tmp_path: Path) -> None:
    folder = simulate(tmp_path / "out")
    opened = CampaignFolder.read(folder)
    for cell in opened.cells:
        opened.change(cell.id, state="pending", verdict=None)
    assert table(results.compute(opened)).num_rows == 0


@pytest.mark.parametrize(
    ("kind", "values", "arrow"),
    [
        ("text", [], pa.string()),
        ("text", [None, None], pa.string()),
        ("text", ["", None, "Größe", "a\0b", "x" * 300], pa.string()),
        ("text", ["plain"] * 9, pa.string()),
        ("number", [None, None], pa.float64()),
        ("number", [1.5, None, -0.0, float("inf"), 1e-300], pa.float64()),
        ("number", [1, None, 2.5], pa.float64()),
        ("integer", [None, *range(-4, 5), 2**63 - 1, -(2**63)], pa.int64()),
        ("flag", [True, None, False] * 5, pa.bool_()),
    ],
)
def test_pyarrow_reads_columns_as_they_were_written(kind: str, values: list[Any], arrow: pa.DataType) -> None:
    content = encode_table(
        [("a column", kind, values), ("n", "integer", [*range(len(values))])], [("k", "v")]
    )
    read = pq.read_table(pa.BufferReader(content))
    read.validate(full=True)
    assert read.column("a column").combine_chunks().equals(pa.array(values, type=arrow))
    assert read.column("n").to_pylist() == [*range(len(values))]
    assert read.schema.metadata[b"k"] == b"v"


@pytest.mark.parametrize(
    ("kind", "values", "error"),
    [
        ("integer", [2**63], OverflowError),
        ("integer", ["1"], TypeError),
        ("text", [1], TypeError),
        ("date", [], ValueError),
        ("flag", [True], ValueError),
    ],
)
def test_columns_of_other_types_and_lengths_are_refused(
    kind: str, values: list[Any], error: type[Exception]
) -> None:
    rows = len(values) + 1 if kind == "flag" else len(values)
    with pytest.raises(error):
        encode_table([("first", "text", ["x"] * rows), ("second", kind, values)], [])


@given(
    columns=st.lists(st.tuples(st.text(max_size=9), st.lists(st.none() | st.text(), min_size=3, max_size=3)))
)
def test_any_texts_survive(columns: list[tuple[str, list[str | None]]]) -> None:
    named = {f"{place}{name}": values for place, (name, values) in enumerate(columns)}
    content = encode_table([(name, "text", [*values]) for name, values in named.items()], [])
    assert pq.read_table(pa.BufferReader(content)).to_pydict() == named


def test_a_short_campaign_imports_no_library_of_tables(tmp_path: Path) -> None:
    (tmp_path / "small.yaml").write_text(SCENARIO)
    words = ["run", "small.yaml", "--no-report", "-o", "out"]
    code = (
        "import sys\nfrom narrows.cli.all_commands import app\n"
        f"app({words!r}, standalone_mode=False)\n"
        "sys.exit(bool({'pandas', 'pyarrow', 'numpy', 'ssl'} & set(sys.modules)))"
    )
    done = processes.run([sys.executable, "-c", code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
