"""Tables of results for the terminal: one row per scheme, medians over valid runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from narrows.analysis.metrics import (
    ENDS,
    NOT_AVAILABLE,
    SUMMARY,
    has_packets,
    head_of,
    of_names,
    show_number,
    show_spread,
    unit_of,
)
from narrows.analysis.terminal import Column, FittedTable, fold, width
from narrows.analysis.verdicts import runs_in_words
from narrows.campaign import own_metrics
from narrows.campaign.schema import resolved
from narrows.campaign.store import CampaignFolder
from narrows.errors import NarrowsError
from narrows.schemes.status import DEFAULTS_ONLY, UNVERIFIED, Status, legend, statuses_of, weakest
from narrows.statistics.runs import spread_of

#: Metrics of a single flow.
PER_FLOW = (
    "throughput_bps",
    "goodput_bps",
    "delay_p95_ns",
    "queueing_delay_p95_ns",
    "loss_ratio",
    "retransmitted_ratio",
)
#: Metrics of several flows together.
SHARING = ("throughput_ratio", "loss_events", "loss_synchronisation")
#: Of these the first that any run has an answer to.
CONVERGENCE = ("convergence_10s_ns", "convergence_1s_ns")
#: Metrics of flows that send frames of video, our schemes and programs alike.
OF_FRAMES = (
    "media_target_bps",
    "media_sent_bps",
    "frame_delay_p95_ns",
    "frame_loss_ratio",
    "freezes",
    "freeze_ratio",
)
#: Metrics of flows whose program is a player of video.
OF_PLAYBACK = (
    "playback_startup_ns",
    "playback_stalls",
    "playback_stalled_ratio",
    "playback_bitrate_bps",
    "playback_switches",
)
#: Metrics of a link.
PER_LINK = ("throughput_bps", "utilization_ratio", "bottleneck_drop_ratio", "cov_1s", "cov_10s")

#: Metrics that say how several flows share: without a value nobody misses them.
_OF_SEVERAL = ("jain_index",)
#: What is left out first where there is no room.
_RANKS = {"jain_index": 2, "utilization_ratio": 3, "retransmitted_ratio": 3, "goodput_bps": 4, "cov_10s": 4}
#: The spread stands beside as many of the first metrics as there is room for.
_STATUS, _STATUS_RANK = "status", 9
#: A note that holds for all of more rows than these does not name them.
FEW_ROWS = 4
#: Of more cells than these only those are listed that are not ok.
FEW_CELLS = 12
_VERDICT_STYLE = {"ok": "green", "degraded": "yellow", "invalid": "red"}

Campaign = tuple[Path, dict[str, Any]]
Metrics = Sequence[Mapping[str, Any]]


def column_of(metric: Mapping[str, Any]) -> Column:
    """The column of a metric: its short head with the unit below."""
    unit = unit_of(metric)
    head = f"{head_of(metric)}\n{unit}" if unit else head_of(metric)
    return Column(head, rank=_RANKS.get(str(metric["name"]), 1 if metric["name"] != "throughput_bps" else 0))


def _spread(summary: Mapping[str, Any] | None, metric: Mapping[str, Any]) -> str:
    """`[11.2, 11.6]` is the interval of the median, `(11.2 to 11.6)` the extremes of a few runs."""
    if summary is None or spread_of(summary).kind not in ("interval", "range"):
        return ""
    text = show_spread(summary, metric)
    return text if text.startswith("[") else f"({text})"


def _beside(
    lines: Sequence[Mapping[str, Any] | None], metric: Mapping[str, Any], *, spread: bool
) -> list[str]:
    """The cells of one column: medians below each other, with their spread on the right."""
    found = [line and line["metrics"].get(metric["name"]) for line in lines]
    spreads = [_spread(one, metric) if spread else "" for one in found]
    room = max(map(len, spreads), default=0)
    values = [
        "-" if line is None else NOT_AVAILABLE if one is None else show_number(one["median"], metric)
        for line, one in zip(lines, found, strict=True)
    ]
    if not room:
        return values
    most = max(map(len, values))
    return [f"{value:>{most}} {text:{room}}" for value, text in zip(values, spreads, strict=True)]


def _schemes(campaigns: Sequence[Campaign]) -> list[str]:
    names: dict[str, None] = {}
    for _, results in campaigns:
        names |= dict.fromkeys(line["scheme"] for line in results["summary"])
        names |= dict.fromkeys(one["scheme"] for one in results["skipped"])
    return list(names)


def _flows(campaigns: Sequence[Campaign]) -> dict[str, list[dict[str, Any]]]:
    """The flows under test of each row, as far as the campaigns tell them."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, _ in campaigns:
        try:
            rows = resolved(CampaignFolder.read(path).document)["schemes"]
        except (NarrowsError, KeyError):
            continue
        for row in rows:
            tested = [flow for flow in row["flows"] if not flow.get("background")]
            found.setdefault(row["label"], []).extend(tested)
    return found


def _names(campaigns: Sequence[Campaign], wheres: Sequence[str]) -> list[str]:
    """The name of each campaign: its plane if that tells them apart, else its folder."""
    return list(wheres) if len(set(wheres)) == len(campaigns) else [path.name for path, _ in campaigns]


def print_summary(
    console: Console, campaigns: Sequence[Campaign], wheres: Sequence[str] | None = None
) -> None:
    """The table per scheme; of several campaigns their rows below each other, with the difference from the
    first in percent."""
    names = _names(campaigns, wheres or [""] * len(campaigns))
    seen = any(has_packets(results) for _, results in campaigns)
    usual = SUMMARY if seen else ENDS
    metrics = of_names(campaigns[0][1], (*usual, *own_metrics.names(campaigns[0][1])))
    schemes = _schemes(campaigns)
    metrics = [
        one for one in metrics if _has_value(one, campaigns, schemes) or one["name"] not in _OF_SEVERAL
    ]
    statuses = _statuses(campaigns, schemes)
    made, spreads = _fitted(
        console, len(metrics), lambda spreads: _table(campaigns, names, schemes, statuses, metrics, spreads)
    )
    marked = _STATUS not in made.print(console)
    notes = [
        (scheme, note)
        for scheme in schemes
        if any(one.reason == DEFAULTS_ONLY for one in statuses[scheme])
        for note in (f": {DEFAULTS_ONLY}",)
    ]
    for scheme in schemes:
        found = [_notes(results, scheme, metrics) for _, results in campaigns]
        for name, mine in zip(names, found, strict=True):
            # What holds in all campaigns is said once.
            notes += [
                (scheme, note if all(note in other for other in found) else f" ({name}){note}")
                for note in mine
            ]
    room = width(console.file)
    for line in [
        *_reading(campaigns, metrics, spreads),
        *_grouped(notes, len(schemes)),
        *(_marks(statuses) if marked else []),
    ]:
        for number, text in enumerate(fold(line, room - 2)):
            console.print("  " * bool(number) + text, soft_wrap=True)


def _fitted(console: Console, most: int, make: Callable[[int], FittedTable]) -> tuple[FittedTable, int]:
    """The table with the spread beside as many metrics as there is room for without leaving out a column, and
    their number."""
    room = width(console.file)
    for spreads in range(most, 0, -1):
        made = make(spreads)
        if not made.lines(room)[1]:
            return made, spreads
    return make(0), 0


def _table(
    campaigns: Sequence[Campaign],
    names: Sequence[str],
    schemes: Sequence[str],
    statuses: Mapping[str, Sequence[Status]],
    metrics: Metrics,
    spreads: int,
) -> FittedTable:
    several = len(campaigns) > 1
    made = FittedTable(
        Column("scheme", "left"),
        *([Column("campaign", "left")] if several else []),
        Column("runs", "left"),
        *(column_of(metric) for metric in metrics),
        Column(_STATUS, "left", rank=_STATUS_RANK),
    )
    # What is skipped everywhere has no row: a note says why.
    shown = [scheme for scheme in schemes if any(_line(results, scheme) for _, results in campaigns)]
    lines = [_line(results, scheme) for scheme in shown for _, results in campaigns]
    columns = [_beside(lines, metric, spread=place < spreads) for place, metric in enumerate(metrics)]
    values = iter(zip(*columns, strict=True) if columns else ((),) * len(lines))
    for scheme in shown:
        base = _line(campaigns[0][1], scheme)
        status = weakest(statuses[scheme])
        for number, (name, (_, results)) in enumerate(zip(names, campaigns, strict=True)):
            line = _line(results, scheme)
            made.add(
                "" if number else scheme,
                *([name] if several else []),
                _runs(results, scheme, line),
                *next(values),
                status.mark if status and not number else "",
                style="" if line else "dim",
            )
            if number and line and base:
                changes = [_change(base, line, metric) for metric in metrics]
                made.add("", "  difference", "", *changes, "", style="dim")
    return made


def _change(base: Mapping[str, Any], line: Mapping[str, Any], metric: Mapping[str, Any]) -> str:
    """The difference of the medians in percent of the first campaign's."""
    before, after = (one["metrics"].get(metric["name"]) for one in (base, line))
    if not before or not after or not before["median"] or after["median"] is None:
        return ""
    percent = 100 * (after["median"] / before["median"] - 1)
    digits = 1 if abs(percent) < 100 else 0
    return f"{percent:+.{digits}f} %"


def _statuses(campaigns: Sequence[Campaign], schemes: Iterable[str]) -> dict[str, list[Status]]:
    flows = _flows(campaigns)
    return {
        scheme: list(
            statuses_of(flows.get(scheme) or [{"scheme": scheme.split(" ", maxsplit=1)[0]}]).values()
        )
        for scheme in schemes
    }


def _has_value(metric: Mapping[str, Any], campaigns: Sequence[Campaign], schemes: Iterable[str]) -> bool:
    lines = [_line(results, scheme) for scheme in schemes for _, results in campaigns]
    return any(line is not None and line["metrics"].get(metric["name"]) for line in lines)


def _reading(campaigns: Sequence[Campaign], metrics: Metrics, spreads: int) -> list[str]:
    """How the numbers are to be read, where one run does not say it all. So many of the metrics have their
    spread beside them."""
    found = [
        line["metrics"][metric["name"]]
        for _, results in campaigns
        for line in results["summary"]
        if line["flow"] == "all"
        for metric in metrics
        if line["metrics"].get(metric["name"])
    ]
    if not any(one.get("n", 0) > 1 for one in found):
        return []
    kinds = {spread_of(one).kind for one in found if one.get("n", 0) > 1}
    medians = "Medians over the valid runs, of all flows together"
    if kinds == {"identical"}:
        return [f"{medians}; all runs gave identical numbers."]
    if not spreads:
        return [
            f"{medians}.",
            "No room for the spread of the runs: a wider terminal (COLUMNS=160) or --json shows it.",
        ]
    shown = {"interval": " [95 % interval of the median]", "range": " (smallest to largest run)"}
    return [medians + "".join(text for kind, text in shown.items() if kind in kinds) + "."]


def _marks(statuses: Mapping[str, Sequence[Status]]) -> list[str]:
    """The meaning of marks that call a scheme in question."""
    marks = legend(one for found in statuses.values() for one in found if one.word == UNVERIFIED)
    return [f"{mark} {word}: {meaning}" for mark, word, meaning in marks]


def _grouped(notes: Iterable[tuple[str, str]], rows: int) -> list[str]:
    """One line per note, with all schemes that it holds for."""
    schemes: dict[str, dict[str, None]] = {}
    for scheme, note in notes:
        schemes.setdefault(note, {})[scheme] = None
    return [
        ("all rows" if len(names) == rows > FEW_ROWS else ", ".join(names)) + note
        for note, names in schemes.items()
    ]


def _line(results: Mapping[str, Any], scheme: str) -> dict[str, Any] | None:
    return next(
        (line for line in results["summary"] if line["scheme"] == scheme and line["flow"] == "all"), None
    )


def _runs(results: Mapping[str, Any], scheme: str, line: Mapping[str, Any] | None) -> Text:
    """`2 ok`, `2, 1 degraded`, `1 of 2, 1 invalid`."""
    if line is None:
        # A scheme that nobody asked for in this campaign was not skipped.
        skipped = any(one["scheme"] == scheme for one in results["skipped"])
        return Text("skipped" if skipped else "-")
    degraded = {
        row["run"] for row in results["rows"] if row["scheme"] == scheme and row.get("verdict") == "degraded"
    }
    words = runs_in_words({**line, "degraded": len(degraded)})
    if line["valid"] < line["started"]:
        return Text(words, style="red")
    return Text(words, style="yellow" if degraded else "")


def _notes(results: Mapping[str, Any], scheme: str, metrics: Metrics) -> list[str]:
    """Remarks on a row besides its numbers."""
    line = _line(results, scheme)
    if line is None:
        reasons = [one["reason"] for one in results["skipped"] if one["scheme"] == scheme]
        return [f" skipped: {reasons[0]}" if reasons else " is not part of it"]
    notes = []
    if line["valid"] < line["finished"]:
        notes.append(
            f": {line['finished'] - line['valid']} of {line['started']} runs are invalid and enter no"
            " statistic"
        )
    if line["finished"] < line["started"]:
        notes.append(f": {line['started'] - line['finished']} of {line['started']} runs failed")
    for metric in metrics:
        if line["metrics"].get(metric["name"]) is None:
            reason = _reason(results, scheme, metric["name"])
            if reason and reason != own_metrics.NOT_REPORTED:
                notes.append(f": {metric['label']} is {NOT_AVAILABLE}: {reason}")
    return notes


def _reason(results: Mapping[str, Any], scheme: str, name: str) -> str | None:
    for row in results["rows"]:
        if row["scheme"] == scheme and row["flow"] == "all" and name in row["absent"]:
            return str(row["absent"][name])
    return None


def _print_lines(
    console: Console,
    heads: Sequence[Column],
    rows: Sequence[tuple[Sequence[str], Mapping[str, Any]]],
    metrics: Metrics,
    more: Sequence[Column] = (),
) -> None:
    """A table with the first cells of each row, its metrics with their spread where there is room, and more
    cells that the row has as `more`."""

    def make(spreads: int) -> FittedTable:
        made = FittedTable(*heads, *(column_of(metric) for metric in metrics), *more)
        lines = [line for _, line in rows]
        columns = [_beside(lines, metric, spread=place < spreads) for place, metric in enumerate(metrics)]
        for (first, line), *values in zip(rows, *columns, strict=True):
            made.add(*first, *values, *line.get("more", ()))
        return made

    _fitted(console, len(metrics), make)[0].print(console)


def print_flows(console: Console, results: dict[str, Any]) -> None:
    """The table per scheme and flow."""
    lines = [line for line in results["summary"] if line["flow"] != "all"]
    if not lines or all(line["flow"] == 1 for line in lines):
        return
    console.print()
    metrics = of_names(results, PER_FLOW if has_packets(results) else ENDS)
    metrics += [
        metric
        for metric in of_names(results, own_metrics.names(results))
        if any(metric["name"] in line["metrics"] for line in lines)
    ]
    rows: list[tuple[Sequence[str], Mapping[str, Any]]] = []
    before = None
    for line in lines:
        flow = f"{line['flow']} ({line['label']})" if line.get("label") else str(line["flow"])
        rows.append((("" if line["scheme"] == before else line["scheme"], flow), line))
        before = line["scheme"]
    _print_lines(console, (Column("scheme", "left"), Column("flow", "left")), rows, metrics)


def print_sharing(console: Console, results: dict[str, Any]) -> None:
    """The table of several flows under test together; nothing where there is one."""
    lines = [line for line in results["summary"] if line["flow"] == "all"]
    lines = [line for line in lines if line["metrics"].get(SHARING[0])]
    if not lines:
        return
    console.print()
    metrics = of_names(results, SHARING)
    times = [one for one in of_names(results, CONVERGENCE) if any(one["name"] in x["metrics"] for x in lines)]
    metrics += times[:1]
    rows: list[tuple[Sequence[str], Mapping[str, Any]]] = []
    for line in lines:
        found = line["metrics"].get(times[0]["name"]) if times else None
        converged = [f"{found['happened']} of {found['of']}" if found else ""] if times else []
        rows.append(((line["scheme"],), {**line, "more": converged}))
    more = [Column("runs\nconverged", rank=1)] if times else []
    _print_lines(console, (Column("scheme", "left"),), rows, metrics, more)


def print_frames(console: Console, results: dict[str, Any]) -> None:
    """The table of frames of video by scheme, and by flow where several are tested; nothing where none was
    sent."""
    _print_some(console, results, OF_FRAMES, "freezes")


def print_playback(console: Console, results: dict[str, Any]) -> None:
    """The same of films in players."""
    _print_some(console, results, OF_PLAYBACK, OF_PLAYBACK[0])


def _print_some(console: Console, results: dict[str, Any], names: Sequence[str], of: str) -> None:
    """A table of flows that have the metric `of`."""
    lines = [line for line in results["summary"] if of in line["metrics"]]
    flows = [line for line in lines if line["flow"] != "all"]
    schemes = {line["scheme"] for line in lines}
    if not lines:
        return
    console.print()
    metrics = of_names(results, names)
    if len(flows) <= len(schemes):
        rows = [((line["scheme"],), line) for line in lines if line["flow"] == "all"]
        _print_lines(console, (Column("scheme", "left"),), rows, metrics)
        return
    named = [((line["scheme"], line.get("label") or str(line["flow"])), line) for line in flows]
    _print_lines(console, (Column("scheme", "left"), Column("flow", "left")), named, metrics)


def print_links(console: Console, results: dict[str, Any]) -> None:
    """The table per scheme and link, where the scenario asks for links."""
    lines = results.get("link_summary", [])
    if not lines:
        return
    console.print()
    rows = [((line["scheme"], line["link"]), line) for line in lines]
    heads = (Column("scheme", "left"), Column("link", "left"))
    _print_lines(console, heads, rows, of_names(results, PER_LINK))


def print_cells(console: Console, cells: Sequence[Mapping[str, Any]], few: int = FEW_CELLS) -> None:
    """The verdict of each cell, with its reasons; of more than `few` those that are not ok, and how
    many are."""
    told = [(cell, *_told(cell)) for cell in cells]
    if len(told) > few:
        bad = [one for one in told if one[1] != "ok"]
        if not bad:
            console.print(f"All {len(told)} runs are ok.", soft_wrap=True)
            return
        good = len(told) - len(bad)
        head = (
            f"{good} of {len(told)} runs are ok; the others:" if good else f"None of {len(told)} runs is ok:"
        )
        console.print(head, soft_wrap=True)
        told = bad
    made = FittedTable(Column("cell", "left"), Column("verdict", "left"), Column("why", "left", folded=True))
    for cell, verdict, why in told:
        made.add(str(cell["id"]), Text(verdict, style=_VERDICT_STYLE.get(verdict, "red")), why)
    made.print(console)


def _told(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Verdict of a cell, or its state, and why."""
    if cell["state"] == "finished":
        return str(cell["verdict"]), " ".join(str(reason.get("text", "")) for reason in cell["reasons"])
    return str(cell["state"]), str((cell.get("error") or {}).get("message", ""))
