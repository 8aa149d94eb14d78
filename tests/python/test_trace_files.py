"""The shipped traces, the command line of traces, and the core's agreement about valid traces."""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from narrows import _native, traces
from narrows.cli.all_commands import app
from narrows.errors import NarrowsError
from narrows.reference.probe import Packets, play
from narrows.traces import formats
from narrows.traces.formats import read, read_rates
from narrows.traces.statistics import measure
from narrows.traces.trace import Delays, Opportunities

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ROOT / "scenarios" / "traces"
COMMANDS = [
    shlex.split(line)[1:]
    for line in (SHIPPED / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("narrows ")
]


def call(*arguments: str) -> str:
    """The output of the command."""
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return str(done.stdout)


def refused(*arguments: str) -> str:
    """The sentence with which the command refuses its input."""
    with pytest.raises(NarrowsError) as caught:
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    return str(caught.value)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[3])
def test_shipped_traces_are_made_anew(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call(*words)
    assert (tmp_path / words[3]).read_bytes() == (SHIPPED / words[3]).read_bytes()


def test_every_shipped_trace_has_its_source() -> None:
    known = {words[3] for words in COMMANDS} | {"10-every-200.trace", "delays-handover.csv"}
    assert {path.name for path in SHIPPED.iterdir()} == known | {"SOURCES.md"}
    assert (SHIPPED / "10-every-200.trace").read_text() == "200\n" * 10
    assert all(path.stat().st_size < 300_000 for path in SHIPPED.iterdir())


def test_the_guide_states_the_statistics_of_the_shipped_traces() -> None:
    guide = (ROOT / "docs" / "guide" / "traces.md").read_text(encoding="utf-8")
    for path in sorted(SHIPPED.glob("*.*")):
        if path.suffix == ".md":
            continue
        if path.name.startswith("delays-"):
            continue
        found = measure(read_rates(path)[0])
        window = found.windows["100 ms"]
        memory = found.autocorrelation_time_s
        cells = [
            f"`{path.name}`",
            f"{found.length_ns / 1e9:.4g} s",
            f"{found.mean_bps / 1e6:.4g}",
            f"{window['variation']:.2f}",
            *(f"{window[f'p{p}_bps'] / 1e6:.3g}" for p in (5, 50, 95)),
            f"{found.longest_gap_ns / 1e6:.3g} ms",
            f"{100 * found.silent_ratio:.2g} %",
            "-" if memory is None else f"{memory:.1f} s",
        ]
        assert f"| {' | '.join(cells)} |" in guide


def _core_says(content: bytes, *, delays: bool = False) -> str | None:
    sha256 = hashlib.sha256(content).hexdigest()
    file = {"name": "x", "sha256": sha256}
    element: dict[str, Any] = {
        "name": "forward.0",
        "kind": "bottleneck",
        "rate": {"kind": "trace", "file": file},
        "queue": {"kind": "unlimited"},
    }
    if delays:
        element = {"name": "forward.0", "kind": "delaytrace", "file": file}
    return _native.check_element(json.dumps(element), {sha256: content})


def _we_say(content: bytes, *, delays: bool = False) -> str | None:
    path = Path("x")
    try:
        form = formats.detect(content, path)
        if form not in ("mahimahi", "csv"):
            return "no format of scenarios"
        found = formats._READERS[form](content, path)
    except NarrowsError as error:
        return str(error)
    return None if isinstance(found, Delays) == delays else "the other kind of trace"


LINE = st.one_of(
    st.integers(0, 50).map(str),
    st.tuples(st.integers(0, 30), st.integers(0, 5)).map(lambda row: f"{row[0]},{row[1]}"),
    st.sampled_from(
        ["", "#", "# x", "5\r", " 5", "+5", "-5", "5.0", "1e3", "1e3,1e-2", "0,.5", "0, 1 ", "0,1,2"]
    ),
    st.sampled_from(["time_ns,rate_bps", "time_s,rate_mbps", "TIME_S, Rate_Mbps", "\ufefftime_ns,rate_bps"]),
    st.sampled_from(["time_ns,delay_ns", "time_s,delay_ms"]),
    st.sampled_from(
        ["9" * 19, "9" * 30, "0" * 30 + "1", "1 2", "\x1c5", "\x855", "٣", "5,", ",5", "nan,inf"]
    ),
)


@settings(deadline=None)
@given(st.lists(LINE, max_size=6), st.sampled_from(["\n", "\r\n", ""]))
@example(["time_ns,rate_bps", "0,1", "5,0"], "\n")
@example(["time_s,rate_mbps", "0,0.0000004", "5,0"], "\n")
@example(["\ufefftime_ns,rate_bps", "0,1", "5,0"], "\r\n")
@example(["\ufeff# x", "time_ns,rate_bps", "0,1", "4611686018427387905,0"], "")
@example(["4611686018427", "4611686018427"], "\n")
@example(["4611686018428"], "\n")
@example(["time_s,delay_ms", "0,3600000", "5,0"], "\n")
@example(["time_s,delay_ms", "0,3600001", "5,0"], "\n")
@example(["time_s,delay_ms", "0,3", "5,3600001"], "\n")
def test_the_core_accepts_the_same_files(lines: list[str], end: str) -> None:
    content = ("\n".join(lines) + end).encode()
    for delays in (False, True):
        ours, core = _we_say(content, delays=delays), _core_says(content, delays=delays)
        assert (ours is None) == (core is None), f"{content!r}: {ours} but the core: {core}"


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_the_core_accepts_the_same_bytes(content: bytes) -> None:
    assert (_we_say(content) is None) == (_core_says(content) is None)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.*[!d]")), ids=lambda path: path.name)
def test_the_core_reads_shipped_traces(path: Path, tmp_path: Path) -> None:
    delays = path.name.startswith("delays-")
    assert _core_says(path.read_bytes(), delays=delays) is None
    table = tmp_path / "a.parquet"
    call("trace", "convert", str(path), str(table))
    assert _core_says(table.read_bytes(), delays=delays) is None


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.trace")), ids=lambda path: path.name)
def test_links_use_every_opportunity(path: Path) -> None:
    """A link that always has full-sized packets sends one at each opportunity, in every repetition."""
    found = read_rates(path)[0]
    assert isinstance(found, Opportunities)
    laps = 3
    count = laps * len(found.times_ms)
    fates = play(f"{{rate: {{trace: {path.name}}}}}", Packets.at_once(count, 1500))
    wanted = np.concatenate([found.times_ms + lap * int(found.times_ms[-1]) for lap in range(laps)])
    assert fates.left_ns.tolist() == (wanted * 1_000_000).tolist()
    rate = count * 12_000 / (fates.left_ns[-1] / 1e9)
    assert rate == pytest.approx(found.mean_bps, rel=1e-3)


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("[cs]*.csv")), ids=lambda path: path.name)
def test_links_keep_the_rates_of_a_trace(path: Path) -> None:
    found = read_rates(path)[0]
    count = int(found.mean_bps * found.length_ns / 1e9 / 12_000)
    left = play(f"{{rate: {{trace: {path.name}}}}}", Packets.at_once(count, 1500)).left_ns
    wanted = opportunities_ns(found, count)
    assert np.abs(left - wanted).max() <= 1
    assert count * 12_000 / (left[-1] / 1e9) == pytest.approx(found.mean_bps, rel=1e-3)


def opportunities_ns(found: Any, count: int) -> Any:
    """The delivery times of consecutive packets, by the definition of a trace of rates (ns)."""
    sums = np.append(0, np.cumsum(found.rate_bps * found.spans_ns)).astype(float)
    edges = np.append(found.time_ns, found.end_ns).astype(float)
    return np.ceil(np.interp(np.arange(1, count + 1) * 12_000e9, sums, edges) - 1e-3)


def test_the_core_refuses_a_damaged_table(tmp_path: Path) -> None:
    table = tmp_path / "a.parquet"
    call("trace", "convert", "square-10-2", str(table))
    assert "damaged" in (_core_says(table.read_bytes()[:-20]) or "")


def test_show_prints_and_draws(tmp_path: Path) -> None:
    shown = call("trace", "show", "square-10-2", "10-every-200")
    assert "square-10-2.csv: csv, 10 s, 2 rates" in shown
    assert "|" + "█" * 30 + "▂" * 30 + "|" in shown
    assert "deviation / mean: 0.667" in shown
    document = json.loads(call("trace", "show", "square-10-2", "--json"))
    assert document["traces"][0]["mean_bps"] == 6e6
    for form in ("png", "svg", "pdf"):
        picture = tmp_path / f"a.{form}"
        call("trace", "show", "cellular-drive", "--picture", str(picture))
        first = picture.read_bytes()
        call("trace", "show", "cellular-drive", "--picture", str(picture))
        assert picture.read_bytes() == first
    assert refused("trace", "show", "square-10-2", "--picture", "a.gif").endswith(".png, .svg or .pdf")


def test_traces_of_delays_are_shown_and_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    shown = call("trace", "show", "delays-handover")
    assert "delays-handover.csv: csv, 1 s, 9 delays" in shown
    assert "highest  60 ms" in shown
    document = json.loads(call("trace", "show", "delays-handover", "--json"))["traces"][0]
    assert document["lowest_delay_ns"] == 15_000_000
    table, back = tmp_path / "a.parquet", tmp_path / "a.csv"
    call("trace", "convert", "delays-handover", str(table))
    call("trace", "convert", str(table), str(back))
    one, other = read(SHIPPED / "delays-handover.csv")[0], read(back)[0]
    assert isinstance(one, Delays)
    assert isinstance(other, Delays)
    assert one.delay_ns.tolist() == other.delay_ns.tolist()
    assert (one.time_ns.tolist(), one.end_ns) == (other.time_ns.tolist(), other.end_ns)
    assert "can't be written as mahimahi" in refused("trace", "convert", str(back), str(tmp_path / "a.trace"))
    assert "--picture draws traces of rates" in refused("trace", "show", str(back), "--picture", "a.png")
    assert "{delaytrace: a.csv}" in call("trace", "import", str(back))
    with pytest.raises(NarrowsError, match="is a trace of delays, not of rates"):
        read_rates(back)


def test_convert_reports_a_changed_length(tmp_path: Path) -> None:
    source, target = tmp_path / "a.csv", tmp_path / "a.trace"
    source.write_text("time_s,rate_mbps\n0,12\n0.0105,0\n")
    done = CliRunner().invoke(app, ["trace", "convert", str(source), str(target)])
    assert "mahimahi, 0.011 s, mean 12 Mbit/s (the length was 0.0105 s" in done.stderr
    assert target.read_text() == "".join(f"{ms}\n" for ms in range(1, 12))
    assert "exists already" in refused("trace", "convert", str(source), str(target))
    call("trace", "convert", str(target), str(source), "--force", "--bin", "1 ms", "--to", "pensieve")
    assert source.read_text().splitlines()[:2] == ["0 12", "0.001 12"]


def test_import_makes_a_trace_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    log = tmp_path / "up.log"
    log.write_text("# base timestamp: 0\n3 # 1504\n5 # 1504\n")
    assert "{rate: {trace: my-link.trace}}" in call("trace", "import", str(log), "--name", "my-link")
    assert traces.find("my-link", tmp_path).read_text() == "3\n5\n"
    table = tmp_path / "b.txt"
    table.write_text("0 1\n2 3\n")
    assert "imported as b.csv" in call("trace", "import", str(table))
    assert "exists already" in refused("trace", "import", str(table))
    listed = json.loads(call("trace", "list", "--json"))["traces"]
    assert [one["name"] for one in listed if one["from"] == "imported"] == ["b.csv", "my-link.trace"]
    assert {"10-every-200.trace", "cellular-walk.csv"} <= {one["name"] for one in listed}
    (tmp_path / "narrows" / "traces" / "bad.csv").write_text("x,y\n")
    assert "the heading must be" in call("trace", "list")


def test_a_trace_of_centuries_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("4611686018427\n")
    assert "too long for statistics" in refused("trace", "show", str(tmp_path / "a"))
    out = str(tmp_path / "a.csv")
    assert "choose longer ones" in refused("trace", "convert", str(tmp_path / "a"), out)


def test_bad_options_have_their_sentence(tmp_path: Path) -> None:
    out = str(tmp_path / "a.trace")
    make = ("trace", "make")
    assert "--rate: 12 has no unit" in refused(*make, "constant", out, "--rate", "12")
    assert "is not a speed such as" in refused(*make, "cellular", out, "--speed", "30 mph")
    assert "must be more than 0" in refused(*make, "constant", out, "--rate", "0 bit/s")
    assert 'no shipped trace is named "none.trace"' in refused("trace", "show", "none.trace")
