"""Cards of qlogs of senders: the lines of the record of the same run, and refusals of other logs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from campaign_kit import narrows, sentence
from narrows.errors import DataError
from narrows.identify.running import read_cards

CORPUS = Path(__file__).resolve().parents[1] / "imports"
SCHEMES = ("reno", "cubic", "bbr1")
#: Lines that need the times of acknowledgements, or of all rounds.
ONLY_IN_LOGS = {"per-answer", "fall"}


def run(*words: str | Path) -> str:
    done = narrows(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A campaign on a probe, and its qlogs."""
    place = tmp_path_factory.mktemp("logs")
    schemes = f"schemes=[{', '.join(SCHEMES)}]"
    words = ("--where", "simulate", "--runs", "1", "--set", schemes, "--no-report")
    run("run", "probe-long-rtt", *words, "-o", place / "runs")
    run("export", place / "runs", "--format", "qlog", "-o", place / "logs")
    return place / "runs", place / "logs"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_qlog_has_the_lines_of_the_record_of_its_run(runs: tuple[Path, Path], scheme: str) -> None:
    folder, logs = runs
    (log,) = logs.glob(f"{scheme}-r1-*")
    (by_log,) = read_cards(log)
    (by_record,) = read_cards(folder / "cells" / f"{scheme}-r1")
    known = {line.name: line for line in by_log.lines}
    expected = [line for line in by_record.lines if line.probe == "probe-long-rtt"]
    measured = [line for line in expected if line.why is None]
    assert len(measured) > 8
    for line in expected:
        same = known[line.name]
        assert (same.why is None) == (line.why is None), (same, line)
        assert same.word == line.word
        if line.value is not None:
            assert same.value is not None and line.low is not None and line.high is not None
            near = 0.02 * line.value + (line.high - line.low) / 2 + line.resolution
            assert same.value == pytest.approx(line.value, abs=near), line.name
    assert {line.name for line in by_log.lines if line.why is None} - {line.name for line in measured} <= (
        ONLY_IN_LOGS
    )


def test_the_command_takes_a_compressed_log_and_says_what_it_lacks(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "qlog" / "aioquic-server.qlog.gz", tmp_path)
    shown = run("identify", tmp_path / "aioquic-server.qlog.gz")
    assert "slow start, growth per round      2.0" in shown
    assert "a log does not say whether the rate of the path changes" in " ".join(shown.split())
    assert "probe-" not in shown


def test_a_log_has_a_page_with_its_figures(runs: tuple[Path, Path]) -> None:
    (log,) = runs[1].glob("reno-r1-*")
    page = run("identify", log, "--html")
    assert page.count("<svg") >= 8


def test_a_log_without_the_packets_of_a_sender_is_refused(tmp_path: Path) -> None:
    shutil.copy(CORPUS / "qlog" / "aioquic-client.qlog.gz", tmp_path / "client.qlog.gz")
    done = narrows("identify", tmp_path / "client.qlog.gz")
    assert "is of the end that received" in sentence(done) and isinstance(done.exception, DataError)
