"""Tables that fit the terminal, and the words of metrics and runs in them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from narrows.analysis.metrics import find, four_digits, head_of, show_amount, show_spread
from narrows.analysis.verdicts import lateness_ns, resolution, runs_in_words
from narrows.blocks.model import Cell, Column, Note, Table, quiet
from narrows.blocks.terminal import fit_table, fold, print_table, width
from narrows.campaign.measurement import list_metrics
from narrows.console import WIDTH_OF_FILES
from narrows.errors import UsageError
from narrows.statistics.runs import summarise

METRICS = {metric.name: metric for metric in list_metrics()}


def table(names: list[str], columns: int = 5, why: str = "") -> Table:
    heads = (
        Column("scheme", "left"),
        *(Column(f"head {number}", rank=number, unit="[ms]") for number in range(columns)),
        *([Column("why", "left", folded=True)] if why else []),
    )
    rows = (
        (name, *(f"{place}{number}.12345" for number in range(columns)), *([why] if why else []))
        for place, name in enumerate(names)
    )
    return Table.new(heads, rows)


def plain(made: Table, most: int) -> tuple[list[str], list[str]]:
    lines, left_out = fit_table(made, most)
    return [line.plain for line in lines], left_out


def test_columns_that_fit_are_placed_side_by_side() -> None:
    lines, left_out = plain(table(["reno", "cubic"]), 80)
    assert lines == [
        "          head 0    head 1    head 2    head 3    head 4",
        "scheme      [ms]      [ms]      [ms]      [ms]      [ms]",
        "reno    00.12345  01.12345  02.12345  03.12345  04.12345",
        "cubic   10.12345  11.12345  12.12345  13.12345  14.12345",
    ]
    assert not left_out


def test_columns_of_the_highest_rank_go_first() -> None:
    lines, left_out = plain(table(["reno", "cubic"]), 40)
    assert left_out == ["head 3 [ms]", "head 4 [ms]"]
    assert lines[-1] == "cubic   10.12345  11.12345  12.12345"


def test_a_long_name_stands_above_its_numbers() -> None:
    long = "a name that is longer than others, and by far"
    lines, left_out = plain(table(["reno", long, "cubic"], 3), 60)
    assert not left_out
    assert lines[2].startswith("reno ")
    assert lines[3] == long
    assert lines[4].split() == ["10.12345", "11.12345", "12.12345"]
    assert lines[4].endswith("12.12345")
    assert len(lines[2]) == len(lines[4]) == len(lines[5])


def test_long_names_have_separate_lines() -> None:
    names = [f"a name of so many letters that nothing fits beside it {number}" for number in range(3)]
    lines, _ = plain(table(names, 4), 60)
    assert [line for line in lines if line.startswith("a name")] == names
    assert lines[4] == "  00.12345  01.12345  02.12345  03.12345"


def test_sentences_are_folded_between_words() -> None:
    why = "the emulator was late by more than is good for a run, and nobody knows why it was"
    lines, left_out = plain(table(["reno"], 1, why), 60)
    assert not left_out
    assert all(len(line) <= 60 for line in lines)
    assert " ".join(" ".join(lines[2:]).split()) == f"reno 00.12345 {why}"


@given(
    st.lists(st.text(st.sampled_from("abc (),=:"), min_size=1, max_size=90), min_size=1, max_size=6),
    st.integers(0, 9),
    st.integers(40, 130),
    st.booleans(),
)
def test_nothing_is_ever_cut(names: list[str], columns: int, most: int, folded: bool) -> None:
    names = [name.strip() or "x" for name in names]
    why = "so it is with every run of this campaign" if folded else ""
    made = table(names, columns, why)
    lines, left_out = plain(made, most)
    text = "\n".join(lines)
    squeezed = "".join(text.split())
    for place, name in enumerate(names):
        assert "".join(name.split()) in squeezed
        for number in range(columns):
            if f"head {number} [ms]" not in left_out:
                assert f"{place}{number}.12345" in text
    for line in lines:
        assert len(line) <= most or any(line.strip() in name for name in names)


def test_colours_do_not_move_columns() -> None:
    heads = (Column("a", "left"), Column("b"))
    lines, _ = fit_table(Table.new(heads, [quiet(["x", Cell("-5.0 %", kind="bad")])]), 80)
    assert lines[1].plain == "x  -5.0 %"
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table.new(heads, [["x"]])


def test_a_cell_that_spans_rows_is_shown_once_and_notes_follow() -> None:
    heads = (Column("scheme", "left"), Column("flow"), Column("rate", unit="Mbit/s"))
    made = Table.new(
        heads,
        [[Cell("reno", span=2), "1", Cell("4.5", small="4.4 to 4.6")], ["2", Cell("N/A", marks=("a",))]],
        [Note("a", "no packet arrived")],
    )
    lines, _ = plain(made, 80)
    assert [line.split() for line in lines[2:]] == [
        ["reno", "1", "4.5", "(4.4", "to", "4.6)"],
        ["2", "N/A", "(a)"],
    ]
    out = io.StringIO()
    print_table(Console(file=out, width=200), made)
    assert out.getvalue().endswith("\n(a) no packet arrived\n")
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        Table.new(heads, [["reno", "1"]])


def test_printing_says_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = io.StringIO()
    print_table(Console(file=out, width=200), table(["reno"]), "look elsewhere")
    assert out.getvalue().endswith("No room for head 3 [ms], head 4 [ms]:\nlook elsewhere.\n")


def test_width_follows_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "95")
    assert width(io.StringIO()) == 95
    for useless in ("", "wide", "0", "-3"):
        monkeypatch.setenv("COLUMNS", useless)
        assert width(io.StringIO()) == WIDTH_OF_FILES


def test_a_number_and_its_per_cent_stay_together() -> None:
    assert fold("at most 5 % of it", 9) == ["at most", "5 % of it"]
    assert fold("", 9) == [""]


def test_metrics_have_short_heads_and_units() -> None:
    assert head_of(METRICS["delay_p95_ns"]) == "p95 OWD"
    assert show_amount(11_432_000.0, METRICS["throughput_bps"]) == "11.43 Mbit/s"
    assert show_amount(None, METRICS["throughput_bps"]) == "N/A"
    assert [four_digits(value) for value in (0, 0.12345, 1.2345, 123.45, 123456.7, -12.345)] == [
        "0", "0.123", "1.234", "123.5", "123457", "-12.35",
    ]  # fmt: skip
    for name in ("p95 OWD", "delay_p95_ns", "95th percentile one-way delay", "P95  owd", "p95 delay"):
        assert find(METRICS.values(), name).name == "delay_p95_ns"
    with pytest.raises(UsageError, match='did you mean "throughput"'):
        find(METRICS.values(), "througput")


def test_the_spread_of_runs_is_shown_beside_the_median() -> None:
    metric = METRICS["throughput_bps"]
    assert show_spread(summarise([1e6, 2e6, 3e6]), metric) == "1.000 to 3.000"
    assert show_spread(summarise([1e6] * 3), metric) == "identical"
    assert show_spread(summarise([1e6]), metric) == ""
    assert show_spread(summarise([1e6, 2e6, 3e6, 4e6, 5e6, 6e6]), metric).startswith("[")


def test_counts_of_runs_are_shown_in_words() -> None:
    def words(started: int, finished: int, valid: int, degraded: int) -> str:
        return runs_in_words(started, finished, valid, degraded)

    assert words(2, 2, 2, 0) == "2 ok"
    assert words(2, 2, 2, 1) == "2, 1 degraded"
    assert words(2, 2, 1, 0) == "1 of 2, 1 invalid"
    assert words(3, 1, 0, 0) == "none of 3, 1 invalid, 2 failed"
    assert words(0, 0, 0, 0) == "not run"


def test_lateness_limits_the_claimed_differences() -> None:
    assert lateness_ns([]) == 0
    late: list[dict[str, Any]] = [
        {"lateness": None, "clock": {"error_ns": 0}},
        {"lateness": {"p99_ns": 120_000}},
    ]
    assert lateness_ns(late) == 120_000
    assert lateness_ns([*late, {"clock": {"error_ns": 700_000}}]) == 700_000
    assert resolution("ns", 5e6, 120_000, 1e10) == 120_000
    assert resolution("bit/s", 10e6, 1e6, 1e10) == 1000
    assert resolution("1", 0.5, 1e6, 1e10) == 0


def test_progress_cuts_no_number_and_no_name() -> None:
    import io

    from rich.console import Console

    from narrows.progress import bars

    name = "quite-long-name-of-a-cubic2008-in-here run 10"
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    progress = bars(console, live=True)
    with progress:
        progress.add_task(name, total=1.0, note="")
        progress.add_task("all cells", total=48, completed=7, note="7 of 48, about 12 min 30 s left")
        drawn = console.render_lines(progress.get_renderable(), console.options)
    lines = ["".join(part.text for part in line) for line in drawn]
    assert not any("…" in line for line in lines), lines
    assert sum("0:00:00" in line for line in lines) == 2
    # A name may be wrapped, and the note stays whole.
    assert name.replace(" ", "") in "".join(line[:45].split("━")[0] for line in lines).replace(" ", "")
    assert any("7 of 48, about 12 min 30 s left" in line for line in lines)


def test_a_bar_counts_on_a_terminal_and_is_silent_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    from rich.console import Console

    import narrows.console
    from narrows.progress import progress

    with progress("copying") as bar:
        bar.count(3, 12, "runs")
        bar.advance()
    assert capsys.readouterr().err == ""
    terminal = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(narrows.console, "stderr_console", lambda: terminal)
    with progress("copying") as bar:
        bar.count(3, 12, "runs")
    assert "copying" in terminal.file.getvalue() and "3 of 12 runs" in terminal.file.getvalue()  # type: ignore[attr-defined]
    with progress("copying", quiet=True) as bar:
        bar.update(note="hidden")
    assert "hidden" not in terminal.file.getvalue()  # type: ignore[attr-defined]
