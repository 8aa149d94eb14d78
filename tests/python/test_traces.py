"""Traces: formats, conversions, statistics, simple models."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrows.errors import DataError, UsageError
from narrows.traces import formats, models
from narrows.traces.convert import as_kind, format_for, save
from narrows.traces.formats import FORMATS, detect, read, text_of
from narrows.traces.numbers import Source
from narrows.traces.statistics import autocorrelation, measure, window_rates
from narrows.traces.trace import (
    NS_PER_MS,
    NS_PER_S,
    OPPORTUNITY_BITS,
    Opportunities,
    Rates,
    bin_rates,
    opportunities,
)


def _opportunities(*times: int) -> Opportunities:
    return Opportunities(np.array(times, dtype=np.int64))


def _rates(end: int, *rows: tuple[int, int]) -> Rates:
    times, rates = zip(*rows, strict=True)
    return Rates(np.array(times, dtype=np.int64), np.array(rates, dtype=np.int64), end)


def _parse(text: str, form: str | None = None) -> Any:
    content = text.encode()
    path = Path("some.trace")
    return formats._READERS[form or detect(content, path)](content, path)


@st.composite
def opportunity_traces(draw: st.DrawFn) -> Opportunities:
    gaps = draw(st.lists(st.integers(0, 300), min_size=1, max_size=200))
    times = np.cumsum(gaps)
    times[-1] += times[-1] == 0
    return Opportunities(times.astype(np.int64))


@st.composite
def rate_traces(draw: st.DrawFn) -> Rates:
    spans = draw(st.lists(st.integers(1, NS_PER_S // 5), min_size=1, max_size=20))
    rates = draw(st.lists(st.integers(0, 10**8), min_size=len(spans), max_size=len(spans)))
    rates[0] += not any(rates)
    edges = [0, *np.cumsum(spans).tolist()]
    return _rates(edges[-1], *zip(edges[:-1], rates, strict=True))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Opportunities):
        return bool(np.array_equal(one.times_ms, other.times_ms))
    same = np.array_equal(one.time_ns, other.time_ns) and np.array_equal(one.rate_bps, other.rate_bps)
    return bool(same) and one.end_ns == other.end_ns


@settings(deadline=None)
@given(opportunity_traces())
def test_mahimahi_files_come_back_as_they_were(trace: Opportunities) -> None:
    assert _same(_parse(text_of(trace, "mahimahi")), trace)


@settings(deadline=None)
@given(rate_traces())
def test_files_of_rates_come_back_as_they_were(trace: Rates) -> None:
    assert _same(_parse(text_of(trace, "csv")), trace)
    assert _same(_parse(text_of(trace, "pensieve")), trace)


@settings(deadline=None)
@given(rate_traces())
def test_parquet_files_come_back_as_they_were(trace: Rates) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        formats.write(trace, path, "parquet")
        assert detect(path.read_bytes(), path) == "parquet"
        assert _same(read(path)[0], trace)
        first = path.read_bytes()
        formats.write(trace, path, "parquet")
        assert path.read_bytes() == first


@settings(deadline=None)
@given(opportunity_traces(), st.integers(1, 400))
def test_binning_keeps_every_byte(trace: Opportunities, bin_ms: int) -> None:
    bin_ns = bin_ms * NS_PER_MS
    rates = bin_rates(trace, bin_ns)
    assert rates.end_ns == trace.length_ns
    done = 0
    times = trace.times_ms * NS_PER_MS
    for start, rate, span in zip(rates.time_ns, rates.rate_bps, rates.spans_ns, strict=True):
        done += int(rate) * int(span)
        by_then = int(np.count_nonzero(times <= start + span)) * OPPORTUNITY_BITS
        # Half a bit per second of the longest bin.
        assert abs(done - by_then * NS_PER_S) <= bin_ns / 2
    assert abs(rates.bit_ns - trace.bits * NS_PER_S) <= bin_ns / 2


@settings(deadline=None)
@given(rate_traces())
def test_rates_become_opportunities_once_1500_bytes_have_passed(trace: Rates) -> None:
    found = opportunities(trace)
    assert found.times_ms[-1] == -(-trace.end_ns // NS_PER_MS)
    total = Fraction(trace.bit_ns, NS_PER_S * OPPORTUNITY_BITS)
    assert abs(len(found.times_ms) - total) <= 1
    edges = [*trace.time_ns.tolist(), trace.end_ns]
    sums = [0]
    for rate, span in zip(trace.rate_bps.tolist(), trace.spans_ns.tolist(), strict=True):
        sums.append(sums[-1] + rate * span)

    def passed(at_ns: int) -> Fraction:
        """Bits that the rates had delivered by a time."""
        row = max(index for index, edge in enumerate(edges) if edge <= at_ns)
        rate = int(trace.rate_bps[row]) if row < len(trace.rate_bps) else 0
        return Fraction(sums[row] + rate * (at_ns - edges[row]), NS_PER_S)

    for number, time in enumerate(found.times_ms.tolist()[:-1], 1):
        assert passed(min(time * NS_PER_MS, trace.end_ns)) >= number * OPPORTUNITY_BITS
        assert passed(max(0, (time - 1) * NS_PER_MS)) < number * OPPORTUNITY_BITS


@settings(deadline=None)
@given(opportunity_traces())
def test_a_round_trip_through_milliseconds_loses_nothing(trace: Opportunities) -> None:
    back = opportunities(bin_rates(trace, NS_PER_MS))
    # Deliveries at 0 ms reappear only at the end of the first millisecond; half a bit that is missing at the
    # end of one appears in the next.
    assert len(back.times_ms) == len(trace.times_ms)
    assert np.all(np.abs(back.times_ms - np.maximum(trace.times_ms, 1)) <= 300)
    assert back.times_ms[-1] == trace.times_ms[-1]


def test_opportunities_are_binned_into_mean_rates() -> None:
    rates = bin_rates(_opportunities(0, 50, 100, 101, 250), 100 * NS_PER_MS)
    assert rates.time_ns.tolist() == [0, 100 * NS_PER_MS, 200 * NS_PER_MS]
    assert rates.rate_bps.tolist() == [360_000, 120_000, 240_000]  # 3, 1 and 1 in 100, 100 and 50 ms
    assert rates.end_ns == 250 * NS_PER_MS


def test_formats_are_distinguished_by_content() -> None:
    cases = {
        "1\n2\n": "mahimahi",
        "# a\n\ntime_ns,rate_bps\n0,1\n1,0\n": "csv",
        "0.1 3\n0.4 2\n": "pensieve",
        "# mahimahi mm-link (Uplink) [x]\n# base timestamp: 0\n4 + 1504\n": "mahimahi-log",
    }
    for text, form in cases.items():
        assert detect(text.encode(), Path("x")) == form
    assert detect(b"PAR1....", Path("x")) == "parquet"


def test_pensieve_rows_hold_backwards() -> None:
    trace = _parse("10 1\n10.5 2.5\n12 0.5\n")
    assert _same(trace, _rates(2 * NS_PER_S, (0, 2_500_000), (NS_PER_S // 2, 500_000)))


def test_a_mahimahi_log_gives_its_opportunities() -> None:
    log = "# base timestamp: 100\n101 + 1504\n102 # 1504\n103 - 1504 2\n105 # 1504\n106 d 1 1504\n"
    assert _same(_parse(log), _opportunities(2, 5))
    with pytest.raises(DataError, match=r"^some\.trace: the log has no delivery opportunity"):
        _parse("1 + 1504\n")
    with pytest.raises(DataError, match=r'^some\.trace:2: "2 \? 1504" is not an event'):
        _parse("1 # 1504\n2 ? 1504\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"^some\.trace: is empty"),
        ("\n\n", r"^some\.trace: is empty"),
        ("# only\n", r"^some\.trace: holds nothing but comments"),
        ("1\n\n2\n", r"^some\.trace:2: an empty line is not a time"),
        ("1\n2x\n", r'^some\.trace:2: "2x" is not a time'),
        ("3\n2\n", r"^some\.trace:2: the time 2 ms comes before 3 ms of the line above"),
        ("0\n0\n", r"^some\.trace: the last time is 0 ms"),
        ("1\n" + "9" * 5000, r"^some\.trace:2: the time 9+… ms is too large"),
        ("one two three\n", r'^some\.trace:1: "one two three" begins no known kind of trace'),
        (
            "time,rate\n0,1\n",
            r"^some\.trace:1: the heading must be time_ns,rate_bps or time_s,rate_mbps \(delays",
        ),
        ("time_ns,rate_bps\n0,1\n", r"^some\.trace: has 1 row; a trace needs two at least"),
        ("time_ns,rate_bps\n5,1\n6,1\n", r"^some\.trace:2: the first time is 5 ns; it must be 0"),
        ("time_ns,rate_bps\n0,1\n7,2\n7,1\n", r"^some\.trace:4: the time 7 ns does not come after 7 ns"),
        ("time_ns,rate_bps\n0,-1\n", r'^some\.trace:2: the rate "-1" is not a whole number of 0 or more'),
        ("time_ns,rate_bps\n0,1.5\n", r'^some\.trace:2: the rate "1\.5" is not a whole number'),
        ("time_s,rate_mbps\n0,x\n", r'^some\.trace:2: the rate "x" is not a number of 0 or more'),
        ("time_ns,rate_bps\n0,1,2\n", r'^some\.trace:2: "0,1,2" is not a time and a rate'),
        ("time_ns,rate_bps\n0,0\n9,5\n", r"^some\.trace: every rate is 0"),
        (
            "time_ns,rate_bps\n0,9999999999999999999\n",
            r'^some\.trace:2: the rate "9999999999999999999" is too',
        ),
        ("1 2\n3\n", r'^some\.trace:2: "3" is not a time and a rate, separated by space'),
    ],
)
def test_each_mistake_has_its_sentence(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        _parse(text)


def test_files_that_are_no_traces(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't be read: no such file"):
        read(tmp_path / "none")
    with pytest.raises(DataError, match="is a folder; name a file"):
        read(tmp_path)
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="is neither text nor Parquet"):
        read(path)
    path.write_bytes(b"PAR1 and nothing")
    with pytest.raises(DataError, match=r"x: the file is damaged or not complete"):
        read(path)
    with pytest.raises(UsageError, match='unknown format "tsv"; known: mahimahi, csv'):
        read(path, "tsv")


def test_the_file_name_or_an_option_selects_the_format(tmp_path: Path) -> None:
    assert format_for(Path("a.csv"), None) == "csv"
    assert format_for(Path("a.csv"), "pensieve") == "pensieve"
    with pytest.raises(UsageError, match=r"a\.txt: the name does not say which format"):
        format_for(Path("a.txt"), None)
    with pytest.raises(UsageError, match="can't be written; formats: mahimahi, csv, parquet or pensieve"):
        format_for(Path("a.csv"), "mahimahi-log")
    path = tmp_path / "a.csv"
    save(_opportunities(1), path, "csv", force=False)
    with pytest.raises(DataError, match="exists already"):
        save(_opportunities(1), path, "csv", force=False)
    assert list(tmp_path.iterdir()) == [path]
    for form in FORMATS.values():
        if form.writes:
            wanted = Opportunities if form.writes == "opportunities" else Rates
            assert isinstance(as_kind(_rates(NS_PER_S, (0, 10**6)), form.name), wanted)


@pytest.mark.parametrize("rate", [120_000, 570_000, 12_000_000, 77_720_000, 100_420_000])
def test_constant_traces_are_even(rate: int) -> None:
    trace = models.constant(rate, 60 * NS_PER_S)
    count = round(rate * 60 / OPPORTUNITY_BITS)
    assert len(trace.times_ms) == count
    assert trace.times_ms[-1] == 60_000
    wanted = np.arange(1, count + 1) * (60_000 / count)
    assert np.abs(trace.times_ms - wanted).max() <= 0.5 + 1e-9
    assert abs(trace.mean_bps - rate) <= OPPORTUNITY_BITS / 2 / 60


def test_poisson_traces_have_exponential_gaps() -> None:
    count = 12_000
    trace = models.poisson(2_400_000, 60 * NS_PER_S, seed=7)
    assert len(trace.times_ms) == count
    # The count per second is a Poisson number: mean and variance are equal.
    per_second = window_rates(trace, NS_PER_S)[:59] / OPPORTUNITY_BITS
    assert abs(per_second.mean() - 200) < 4 * np.sqrt(200 / 59)
    assert 0.5 < per_second.var() / per_second.mean() < 1.6
    gaps = np.sort(Source(7, "poisson").exponential(count))
    law = 1 - np.exp(-gaps)
    assert np.abs(law - np.arange(count) / count).max() < 1.63 / np.sqrt(count)  # Kolmogorov, 1 %
    means = [models.poisson(2_400_000, 60 * NS_PER_S, seed).mean_bps for seed in range(30)]
    assert abs(np.mean(means) / 2.4e6 - 1) < 3 / np.sqrt(30 * count)
    assert _same(models.poisson(10**6, NS_PER_S, 1), models.poisson(10**6, NS_PER_S, 1))
    assert not _same(models.poisson(10**6, NS_PER_S, 1), models.poisson(10**6, NS_PER_S, 2))


def test_the_stream_of_numbers_is_pinned() -> None:
    assert Source(1, "a").uniform(2).tolist() == [0.43532347467388355, 0.8167896889286991]
    normal = Source(1, "normal").normal(20_000)
    assert abs(normal.mean()) < 0.03
    assert abs(normal.std() - 1) < 0.02
    assert abs((np.abs(normal) < 1).mean() - 0.6827) < 0.01


def test_square_traces_alternate_between_two_rates() -> None:
    trace = models.square(2, 10, 10 * NS_PER_S, 0.3, 25 * NS_PER_S)
    assert (trace.time_ns // NS_PER_S).tolist() == [0, 3, 10, 13, 20, 23]
    assert trace.rate_bps.tolist() == [10, 2] * 3
    assert trace.end_ns == 25 * NS_PER_S
    for duty in (0.0, 1.0):
        with pytest.raises(UsageError, match="must leave time for both rates"):
            models.square(2, 10, 10, duty, 100)


def test_trace_models_refuse_impossible_parameters() -> None:
    with pytest.raises(UsageError, match="not one packet of 1500 bytes passes"):
        models.constant(1000, NS_PER_S)
    with pytest.raises(UsageError, match="make the trace shorter or slower"):
        models.constant(10**12, 3600 * NS_PER_S)
    with pytest.raises(UsageError, match="shorter than a millisecond"):
        models.constant(10**11, NS_PER_MS // 10)


def test_statistics_of_traces_match_hand_computed_ones() -> None:
    # 10 opportunities at once every 200 ms.
    found = measure(_opportunities(*[200] * 10))
    assert found.mean_bps == 600_000
    assert found.longest_gap_ns == 200 * NS_PER_MS
    assert found.silent_ratio == 0.5
    assert found.windows["100 ms"]["highest_bps"] == 1_200_000
    assert found.windows["1 s"]["lowest_bps"] == found.windows["1 s"]["highest_bps"] == 600_000
    assert found.seam is None
    assert "1 opportunity is at 0 ms" in (measure(_opportunities(0, 5)).seam or "")
    # Silence across the seam: the last 3 s and the first 2 s.
    gaps = _rates(10 * NS_PER_S, (0, 0), (2 * NS_PER_S, 10**6), (7 * NS_PER_S, 0))
    assert measure(gaps).longest_gap_ns == 5 * NS_PER_S
    assert measure(gaps).mean_bps == 500_000
    assert measure(gaps).windows["1 s"]["variation"] == pytest.approx(1.0)


def test_autocorrelation_of_a_wave() -> None:
    wave = np.sin(2 * np.pi * np.arange(1000) / 100)
    assert autocorrelation(wave)[[0, 25, 50]] == pytest.approx([1, 0, -1], abs=1e-9)
    assert len(autocorrelation(np.ones(100))) == 0
