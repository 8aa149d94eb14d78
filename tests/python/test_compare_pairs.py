"""`narrows compare --pair`: the two schemes that a text names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from compare_kit import campaign, compare, flow, run_command, runs
from narrows.cli.all_commands import app
from narrows.comparison.document import Request
from narrows.errors import UsageError


def test_labels_of_a_pair_may_contain_the_sign_that_parts_them(tmp_path: Path) -> None:
    labels = ["cubic (beta=0.5)", "cubic (beta=0.7)"]
    rows = [{"label": label, "flows": [flow("cubic")]} for label in labels]
    folder = campaign(
        tmp_path / "a", {label: [{"throughput_bps": 1e6}] for label in labels}, changes={"schemes": rows}
    )
    result = CliRunner().invoke(app, ["compare", str(folder), "--pair", "=".join(labels), "--json"])
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["base"]["scheme"], row["other"]["scheme"]) == tuple(labels)
    for pair, words in (
        ("cubic", "is not a pair"),
        ("=cubic", "is not a pair"),
        ("reno=cubic (beta=0.5)", 'no scheme "reno"'),
    ):
        with pytest.raises(UsageError, match=words):
            compare(Request([folder], pairs=[pair]))


def test_a_pair_that_may_be_parted_in_two_ways_is_refused(tmp_path: Path) -> None:
    labels = ["a", "a=a", "a=a=a"]
    rows = [{"label": label, "flows": [flow("cubic")]} for label in labels]
    folder = campaign(
        tmp_path / "a", {label: [{"throughput_bps": 1e6}] for label in labels}, changes={"schemes": rows}
    )
    with pytest.raises(UsageError, match='may mean "a" with "a=a" or "a=a" with "a"'):
        compare(Request([folder], pairs=["a=a=a"]))


def without_seeds(folder: Path) -> Path:
    """A campaign of two schemes whose runs have no seeds, like those of other tools."""
    made = campaign(folder, {"a": runs(1), "b": runs(2, factor=1.2)}, where="import")
    content = json.loads((made / "campaign.json").read_text())
    for cell in content["cells"]:
        cell["seed"] = None
    (made / "campaign.json").write_text(json.dumps(content))
    return made


def test_runs_without_seeds_are_not_paired(tmp_path: Path) -> None:
    folder = without_seeds(tmp_path / "a")
    (row,) = compare(Request([folder], metrics=["thr"], traces=False))["rows"]
    assert (row["paired"], row["seeds"], row["runs"]) == (False, "none", None)
    finding = row["metrics"]["throughput_bps"]
    base, other = (
        [float(run["throughput_bps"] or 0) for run in made] for made in (runs(1), runs(2, factor=1.2))
    )
    # The estimate of Hodges and Lehmann for two samples: the median of all differences.
    apart = sorted(theirs - ours for ours in base for theirs in other)
    assert finding["absolute"]["estimate"] == pytest.approx((apart[49] + apart[50]) / 2)
    text = " ".join(run_command(folder, "--no-traces").stdout.split())
    assert "runs without a seed, which are not paired" in text
    assert "same seed" not in text


def matrix(folder: Path) -> Path:
    """Three schemes under three combinations of a matrix."""
    rows, values = [], {}
    for place, scheme in enumerate(("cubic", "reno", "bbr1")):
        for number, queue in enumerate(("1 bdp", "2 bdp", "4 bdp")):
            label = f"{scheme} (droptail {queue}, delay 10 ms)"
            rows.append(
                {"label": label, "flows": [flow(scheme)], "values": {"droptail": queue, "delay": "10 ms"}}
            )
            values[label] = runs(10 * place + number, factor=1 + 0.2 * place)
    return campaign(folder, values, changes={"schemes": rows})


def test_the_row_that_others_are_compared_with_is_the_one_that_was_named(tmp_path: Path) -> None:
    folder = matrix(tmp_path / "a")
    row = "cubic (droptail 2 bdp, delay 10 ms)"
    document = compare(Request([folder], against=row, traces=False))
    assert {one["base"]["scheme"] for one in document["rows"]} == {row}
    assert {one["other"]["values"]["droptail"] for one in document["rows"]} == {"2 bdp"}
    assert len(document["uncompared"]) == 6
    text = " ".join(run_command(folder, "--against", row, "--no-traces").stdout.split())
    assert "6 rows are not compared" in text
    everything = compare(Request([folder], against=row, across=["all"], traces=False))
    assert len(everything["rows"]) == 8
    assert {one["base"]["scheme"] for one in everything["rows"]} == {row}


def test_a_scheme_of_a_matrix_is_the_base_of_the_rows_of_its_own_conditions(tmp_path: Path) -> None:
    document = compare(Request([matrix(tmp_path / "a")], against="cubic", traces=False))
    assert len(document["rows"]) == 6
    for one in document["rows"]:
        assert one["base"]["name"] == "cubic"
        assert one["base"]["values"] == one["other"]["values"]


def test_rows_of_one_campaign_that_met_other_conditions_are_named(tmp_path: Path) -> None:
    small = flow("quic", transport={"packet_size": 1430})
    rows = [
        {"label": "reno", "flows": [flow("reno")], "values": {}},
        {"label": "quic", "flows": [small], "values": {}},
    ]
    folder = campaign(tmp_path / "a", {"reno": runs(1), "quic": runs(2)}, changes={"schemes": rows})
    refused = str(run_command(folder, "--against", "reno", "--no-traces").exception)
    assert refused.startswith(f"{folder}: the rows are not comparable, since they met different conditions: ")
    assert "flows.0.transport is none for reno and packet_size 1430 for quic" in refused
    allowed = " ".join(
        run_command(folder, "--against", "reno", "--across", "flows", "--no-traces").stdout.split()
    )
    assert "none for reno, packet_size 1430 for quic" in allowed


def test_values_of_a_matrix_stand_in_columns_and_shared_ones_once(tmp_path: Path) -> None:
    folder = matrix(tmp_path / "a")
    for options in ((), ("--markdown",)):
        text = run_command(folder, "--against", "cubic", "--no-traces", *options).stdout
        assert "(droptail" not in text
        assert text.count("10 ms") == 1, "what all rows share is said once"
        assert "droptail" in text
