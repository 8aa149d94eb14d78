"""Imports of Pantheon's data folders and exports to them, with Pantheon's numbers beside ours.

The tests make the logs: by exporting simulated runs, or by hand in the documented format. Pantheon's numbers
are computed independently with NumPy, in whose terms they are defined.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from narrows.cli.all_commands import app
from narrows.documents.data import from_data
from narrows.documents.resolved import Flow
from narrows.documents.run import PantheonFlow, PantheonNumbers, PantheonStatistics
from narrows.errors import DataError, NarrowsError, UsageError
from narrows.pantheon.importing import import_folder
from narrows.pantheon.source import read_source
from narrows.pantheon.stats import Printed, numbers_of, read_stats
from narrows.pantheon.summary import mean, summarise
from narrows.report import style
from narrows.schemes.status import statuses_of
from report_campaigns import Spec, write_campaign

EPOCH_MS = 1_500_000_000_000


def narrows(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def events(rows: list[str], base_ms: float = EPOCH_MS) -> str:
    return "\n".join([f"# init timestamp: {base_ms:.3f}", *rows]) + "\n"


def constant(seconds: float, flow: int = 1, delay_ms: float = 20.0, size: int = 1500) -> list[str]:
    """A packet every 10 ms without losses, in order of time."""
    found = []
    for step in range(int(seconds * 100)):
        found.append((step * 10.0, f"{step * 10:.3f} + {size} {flow}"))
        found.append((step * 10.0 + delay_ms, f"{step * 10 + delay_ms:.3f} - {size} {delay_ms:.3f} {flow}"))
    return [line for _, line in sorted(found, key=lambda one: one[0])]


def metadata(folder: Path, **options: Any) -> None:
    content = {"mode": "local", "flows": 1, "runtime": 2, "run_times": 1, "start_run_id": 1, "interval": 0}
    content |= {"cc_schemes": ["cubic"], "git_summary": "branch: master @ 0123456789abcdef0123\n"}
    (folder / "pantheon_metadata.json").write_text(json.dumps(content | options))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """One run of 2 s with 1500 bytes every 10 ms: about 1.2 Mbit/s, 20 ms, and no loss."""
    folder = tmp_path / "data"
    folder.mkdir()
    metadata(folder)
    (folder / "cubic_datalink_run1.log").write_text(events(constant(2.0)))
    (folder / "cubic_acklink_run1.log").write_text(events(constant(2.0, size=88)))
    (folder / "cubic_stats_run1.log").write_text(
        "Start at: 2017-07-14 02:40:00\nEnd at: 2017-07-14 02:40:02\n"
    )
    return folder


def run_json(campaign: Path, cell: str = "cubic-r1") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((campaign / "cells" / cell / "run.json").read_text())
    return content


def by_numpy(log: str) -> dict[str, Printed]:
    """Pantheon's numbers of a merged log, unrounded."""
    rows = [line.split() for line in log.splitlines()[1:] if " # " not in line]
    found = {}
    for flow in ["all", *sorted({row[-1] for row in rows})]:
        own = [row for row in rows if flow in ("all", row[-1])]
        sent = [int(row[2]) for row in own if row[1] == "+"]
        arrived = [row for row in own if row[1] == "-"]
        bits = 8 * sum(int(row[2]) for row in arrived)
        times = [float(row[0]) for row in arrived]
        delay = np.percentile([float(row[3]) for row in arrived], 95, method="nearest")
        loss = 100 * (1 - bits / 8 / sum(sent))
        found[flow] = Printed(bits / (times[-1] - times[0]) / 1000, float(delay), loss)
    return found


def same_digits(printed: Printed, exact: Printed) -> bool:
    """True if the printed numbers are the exact ones, rounded."""
    digits = (("throughput_mbps", 2), ("delay_p95_ms", 3), ("loss_percent", 2))
    return all(f"{getattr(printed, name):.{n}f}" == f"{getattr(exact, name):.{n}f}" for name, n in digits)


def test_a_campaign_goes_out_and_comes_back(tmp_path: Path) -> None:
    specs = [Spec("cubic"), Spec("cubic", run=2), Spec("bbr1", runs_as=("bbr1", "bbr1"))]
    ours = write_campaign(tmp_path / "ours", specs, duration_s=3.0, simulated=True)
    data, back = tmp_path / "data", tmp_path / "back"
    done = narrows("export", ours, "--format", "pantheon", "-o", data)
    assert done.exit_code == 0, done.output
    names = {path.name for path in data.iterdir()}
    assert {"pantheon_metadata.json", "pantheon_perf.json", "cubic_acklink_run2.log"} <= names
    performance = json.loads((data / "pantheon_perf.json").read_text())
    assert sorted(performance) == ["bbr1", "cubic"]
    for scheme, number in (("cubic", 1), ("cubic", 2), ("bbr1", 1)):
        exact = by_numpy((data / f"{scheme}_datalink_run{number}.log").read_text())
        printed = numbers_of((data / f"{scheme}_stats_run{number}.log").read_text())
        assert printed.keys() == exact.keys() == {"all", "1", "2"}
        assert all(same_digits(printed[flow], exact[flow]) for flow in exact)
        kept = performance[scheme][str(number)]["2"]
        assert kept["tput"] == pytest.approx(exact["2"].throughput_mbps, rel=1e-12)
        assert kept["loss"] * 100 == pytest.approx(exact["2"].loss_percent, rel=1e-12)

    # A run that the metadata promise and that does not exist is reported, and the exit code shows it.
    done = narrows("import", "pantheon", data, "-o", back)
    assert done.exit_code == 6, done.output
    campaign = json.loads((back / "campaign.json").read_text())
    states = {cell["id"]: cell["state"] for cell in campaign["cells"]}
    assert states == {
        "bbr1-r1": "finished",
        "bbr1-r2": "failed",
        "cubic-r1": "finished",
        "cubic-r2": "finished",
    }
    assert run_json(back)["pantheon"]["agrees"] is True
    before = json.loads((ours / "results.json").read_text())["rows"]
    after = json.loads((back / "results.json").read_text())["rows"]
    for old in before:
        new = next(row for row in after if (row["cell"], row["flow"]) == (old["cell"], old["flow"]))
        # Logs have microseconds: delays of 20 ms and more may be off by one, and so may spans of two seconds
        # and more.
        for name, tolerance in (
            ("throughput_bps", 1e-6),
            ("delay_p95_ns", 1e-4),
            ("loss_pantheon_ratio", 1e-9),
        ):
            assert new["metrics"][name] == pytest.approx(old["metrics"][name], rel=tolerance, abs=1e-12), name
        # Capacities are opportunities in bins of 100 ms, so the first and the last bin may be wrong: by less
        # than a tenth of each, of 30.
        if old["flow"] is None:
            old_use, new_use = (row["metrics"]["utilization_ratio"] for row in (old, new))
            assert new_use == pytest.approx(old_use, rel=2 * 0.1 / 30)

    assert narrows("check", back).exit_code == 0
    shown = narrows("show", back)
    assert shown.exit_code == 0 and "pantheon:cubic" in shown.output
    text = html.unescape(re.sub(r"<[^>]+>", " ", (back / "report.html").read_text()))
    for words in ("As Pantheon counts", "1 of 2", "made and logged by Pantheon, and imported"):
        assert words in text, words
    assert "Simulated runs depend on no machine" not in text
    assert (back / "report.pdf").stat().st_size > 10_000


def test_an_import_tells_where_and_when_and_how(data: Path, tmp_path: Path) -> None:
    done = narrows("import", "pantheon", data, "-o", tmp_path / "out", "--no-report")
    assert done.exit_code == 0, done.output
    # 200 packets over the 1.99 s between the first and the last of them.
    assert re.search(r"pantheon:cubic +1 +1 +1\.21 +20\.00 +0\.00", done.output), done.output
    record = run_json(tmp_path / "out")
    assert record["plane"] == "import" and record["verdict"] == "ok"
    assert record["started_at"] == "2017-07-14T02:40:00.000Z"
    assert record["flows"][0]["fingerprint"]["git"] == "0123456789ab"
    assert record["pantheon"]["logs"] == ["cubic_datalink_run1.log", "cubic_acklink_run1.log"]
    again = narrows("import", "pantheon", data, "-o", tmp_path / "out")
    assert isinstance(again.exception, UsageError) and not list(tmp_path.glob(".*.partial"))


def test_a_flaw_is_reported_with_its_line_and_read_up_to_on_request(data: Path, tmp_path: Path) -> None:
    log = data / "cubic_datalink_run1.log"
    log.write_text(log.read_text()[:-9])
    lines = log.read_text().count("\n") + 1
    with pytest.raises(DataError) as raised:
        import_folder(read_source(data), tmp_path / "out")
    assert (
        str(raised.value)
        == f"{log}:{lines}: the log ends in the middle of this line; --lenient reads up to there"
    )
    assert raised.value.exit_code == 3
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*.partial"))
    done = import_folder(read_source(data), tmp_path / "out", lenient=True)
    assert done.exit_code == 0
    record = run_json(tmp_path / "out")
    assert record["verdict"] == "degraded"
    assert f"log:{lines}: " in record["reasons"][0]["text"]
    # A log without its first line is unreadable: no remedy is offered, and the run is lost.
    log.write_text("1.000 + 1500 1\n")
    with pytest.raises(DataError, match=r'log:1: a merged log begins with .* not with "1.000 \+ 1500 1"$'):
        import_folder(read_source(data), tmp_path / "none")
    (data / "cubic_datalink_run2.log").write_text(events(constant(2.0)))
    done = import_folder(read_source(data), tmp_path / "rest", lenient=True)
    assert [cell.state for cell in done.folder.cells] == ["failed", "finished"]


def test_runs_that_do_not_count_are_shown_as_such(data: Path, tmp_path: Path) -> None:
    metadata(data, cc_schemes=["cubic", "sprout", "vegas"], runtime=30)
    (data / "sprout_datalink_run1.log").write_text(events([]))
    done = import_folder(read_source(data), tmp_path / "out")
    assert done.exit_code == 6
    states = {cell.id: (cell.state, cell.verdict) for cell in done.folder.cells}
    assert states == {
        "cubic-r1": ("finished", "invalid"),
        "sprout-r1": ("failed", None),
        "vegas-r1": ("failed", None),
    }
    why = {cell.id: cell.error_message for cell in done.folder.cells}
    assert why["sprout-r1"] == "no packet was logged, so the run is void"
    assert "there is no vegas_datalink_run1.log" in str(why["vegas-r1"])
    kept = from_data(run_json(tmp_path / "out")["pantheon"], PantheonNumbers)
    assert summarise("cubic", [kept])[0].throughput_mbps == "N/A"
    only = import_folder(read_source(data, wanted=["cubic"]), tmp_path / "only")
    assert [cell.id for cell in only.folder.cells] == ["cubic-r1"]
    with pytest.raises(NarrowsError, match="has no scheme reno; it has cubic, sprout, vegas"):
        read_source(data, wanted=["reno"])


def test_a_folder_without_metadata_or_logs(data: Path, tmp_path: Path) -> None:
    (data / "pantheon_metadata.json").unlink()
    (data / "cubic_mm_datalink_run1.log").write_text("nothing that is read\n")
    source = read_source(data)
    assert (source.schemes, source.runtime_ns, len(source.runs)) == (["cubic"], None, 1)
    assert import_folder(source, tmp_path / "out").exit_code == 0
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no logs of Pantheon's tunnel"):
        read_source(tmp_path / "empty")
    with pytest.raises(DataError, match="does not exist"):
        read_source(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"cubic_stats_run1\.log: is not a folder"):
        read_source(data / "cubic_stats_run1.log")
    (data / "pantheon_metadata.json").write_text("{")
    with pytest.raises(DataError, match=r"pantheon_metadata\.json: is damaged"):
        read_source(data)


def raw_logs(folder: Path, link: str, sender_off_ms: float, receiver_off_ms: float) -> None:
    """100 packets with a delay of 15 ms, by clocks with these offsets."""
    name = f"cubic_{link}_run1_flow1_uid7.log"
    sent = [f"{step * 10:.3f} - {step} - 1500" for step in range(100)]
    came = [f"{step * 10 + 15:.3f} - {step} - 1500" for step in range(100)]
    for side, rows, off in (("egress", sent, sender_off_ms), ("ingress", came, receiver_off_ms)):
        head = f"# 'mm-tunnelclient' '192.0.2.1' {side}: {EPOCH_MS + off:.3f}"
        (folder / f"{name}.{side}").write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize("sender", ["local", "remote"])
def test_raw_logs_are_merged_with_the_clocks_of_both_hosts(tmp_path: Path, sender: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    # NTP states the correction; the clocks are off by the opposite.
    offsets = {"local": 4.0, "remote": -250.5}
    receiver = "remote" if sender == "local" else "local"
    metadata(folder, mode="remote", sender_side=sender, runtime=1, local_desc="A", remote_desc="B")
    raw_logs(folder, "datalink", -offsets[sender], -offsets[receiver])
    raw_logs(folder, "acklink", -offsets[receiver], -offsets[sender])
    stats = folder / "cubic_stats_run1.log"
    stats.write_text("".join(f"{side.title()} clock offset: {ms:.3f} ms\n" for side, ms in offsets.items()))
    done = import_folder(read_source(folder), tmp_path / "out")
    assert done.exit_code == 0
    record = run_json(tmp_path / "out")
    assert record["verdict"] == "ok"
    assert record["pantheon"]["statistics"]["total"]["delay_p95_ms"] == 15.0
    ahead = -offsets[receiver] + offsets[sender]
    assert record["clock"]["offset_ns"] == round(ahead * 1e6)
    assert "one NTP reading per side" in record["reasons"][0]["text"]
    back = next(element for element in record["elements"] if element["direction"] == "backward")
    assert (back["in_packets"], back["out_packets"]) == (100, 100)
    question = done.folder.document["scenario"]["resolved"]["question"]
    assert ("from A to B" if sender == "local" else "from B to A") in question

    # Without the offset of one side Pantheon uses neither, and delays are those of the clocks.
    stats.write_text("Local clock offset: 4.000 ms\n")
    import_folder(read_source(folder), tmp_path / "uncorrected")
    record = run_json(tmp_path / "uncorrected")
    assert record["verdict"] == "degraded"
    assert record["reasons"][0]["code"] == "clock"
    measured = record["pantheon"]["statistics"]["total"]["delay_p95_ms"]
    assert measured == pytest.approx(15.0 + ahead, abs=1e-9)


def test_raw_logs_may_lie_elsewhere_and_need_both_ends(data: Path, tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.mkdir()
    raw_logs(raw, "datalink", 0.0, 0.0)
    metadata(data, runtime=1)
    done = narrows("import", "pantheon", data, "--raw", raw, "-o", tmp_path / "out", "--no-report")
    assert done.exit_code == 0, done.output
    assert run_json(tmp_path / "out")["pantheon"]["statistics"]["total"]["delay_p95_ms"] == 15.0
    next(raw.glob("*.ingress")).unlink()
    (data / "cubic_datalink_run1.log").unlink()
    with pytest.raises(DataError, match="there is no ingress log beside cubic_datalink_run1_flow1"):
        import_folder(read_source(data, raw), tmp_path / "none")


def test_statistics_that_were_printed_are_compared(data: Path, tmp_path: Path) -> None:
    good = import_folder(read_source(data), tmp_path / "first")
    text = run_json(good.folder.path)["pantheon"]["text"]
    stats = data / "cubic_stats_run1.log"
    head = stats.read_text() + "\n# Below is generated by plot.py at 2018-01-25 10:00:00\n"
    stats.write_text(head + text)
    import_folder(read_source(data), tmp_path / "same")
    assert run_json(tmp_path / "same")["pantheon"]["agrees"] is True
    stats.write_text(head + text.replace("1.21 Mbit/s", "1.22 Mbit/s"))
    import_folder(read_source(data), tmp_path / "other")
    record = run_json(tmp_path / "other")
    assert record["pantheon"]["agrees"] is False and record["verdict"] == "degraded"


def test_stats_files_are_parsed(tmp_path: Path) -> None:
    file = tmp_path / "cubic_stats_run1.log"
    file.write_text(
        "Start at: 2018-01-25 10:11:12\nRemote clock offset: -16.25 ms\n\n# Datalink statistics\n"
        "-- Total of 1 flow:\nAverage throughput: 0.99 Mbit/s (98.9% utilization)\n"
        "95th percentile per-packet one-way delay: 268.110 ms\nLoss rate: -0.20%\n"
        "-- Flow 1:\nAverage throughput: 0.00 Mbit/s\n# Acklink statistics\nLoss rate: 7.00%\n"
    )
    stats = read_stats(file)
    assert stats.started_at == "2018-01-25T10:11:12.000Z" and stats.ended_at is None
    assert stats.offsets is None and stats.offsets_ns == (("remote", -16_250_000),)
    assert stats.printed is not None
    assert numbers_of(stats.printed) == {"all": Printed(0.99, 268.11, -0.2), "1": Printed(0.0)}
    file.write_text("ok\nStart at: noon\n")
    with pytest.raises(DataError, match=r'run1.log:2: "noon" is not a time'):
        read_stats(file)
    file.write_text("Local clock offset: 99999999999 ms\n")
    with pytest.raises(DataError, match="is not a plausible clock offset"):
        read_stats(file)


def test_the_summary_is_a_mean_of_printed_numbers() -> None:
    """Numbers of the project's report of January 2018."""
    assert mean([0.95, 0.65, 1.19]) == "0.93"
    assert mean([784.513, 763.221]) == "773.87"
    assert mean([]) == "N/A"

    def record(block: str, refused: str | None = None) -> PantheonNumbers:
        statistics = PantheonStatistics(flows={"1": PantheonFlow(), "2": PantheonFlow()})
        return PantheonNumbers(text=block, refused=refused, statistics=statistics)

    def block(second: str) -> str:
        return f"Average throughput: 1.00 Mbit/s\n-- Flow 1:\nLoss rate: 0.25%\n-- Flow 2:\n{second}"

    silent = block("Average throughput: 0.00 Mbit/s\n")
    heard = block("Average throughput: 1.01 Mbit/s\n95th percentile per-packet one-way delay: 7.125 ms\n")
    lines = summarise("pcc", [record(silent), record(heard), record(heard, "too short")])
    # The silent run counts in the throughput, but not in the delay.
    second = next(line for line in lines if line.flow == "2")
    assert (second.runs, second.throughput_mbps, second.delay_p95_ms) == (2, "0.51", "7.12")
    assert second.loss_percent == "N/A"


def test_imported_schemes_are_not_taken_for_ours() -> None:
    flows = map(Flow.from_scheme, ("pantheon:cubic", "cubic"))
    assert list(statuses_of(flows)) == ["cubic"]
    assert replace(style.of("pantheon:cubic"), label="cubic") == style.of("cubic")
    assert style.of("pantheon:fillp_sheep").color == style.of("fillp-sheep").color


def test_export_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    ours = write_campaign(tmp_path / "ours", [Spec("reno", record="bins")], duration_s=2.0, simulated=True)
    done = narrows("export", ours, "--format", "pcap", "-o", tmp_path / "out")
    assert done.exit_code != 0
    done = narrows("export", ours, "--format", "pantheon", "-o", tmp_path / "out")
    assert isinstance(done.exception, DataError)
    assert "run it again with 'record: packets'" in str(done.exception)
    assert not (tmp_path / "out").exists() and not list(tmp_path.glob(".*.partial"))
