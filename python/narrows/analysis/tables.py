"""Tables of results for the terminal: one row per scheme, medians over valid runs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from narrows.campaign import own_metrics
from narrows.campaign.schema import resolved
from narrows.campaign.store import CampaignFolder
from narrows.console import table
from narrows.errors import NarrowsError
from narrows.schemes.status import DEFAULTS_ONLY, Status, legend, statuses_of, weakest

#: The metrics of the summary, in the order of the columns; those that the core does not know are left out.
SUMMARY = (
    "throughput_bps",
    "delay_p95_ns",
    "queueing_delay_p95_ns",
    "loss_ratio",
    "utilization_ratio",
    "jain_index",
)
#: The metrics of both tables where nobody saw packets, as between hosts without a tunnel.
ENDS = ("goodput_bps", "rtt_p95_ns", "retransmitted_ratio")
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
#: Metrics of a link.
PER_LINK = ("throughput_bps", "utilization_ratio", "bottleneck_drop_ratio", "cov_1s", "cov_10s")

NOT_AVAILABLE = "N/A"
#: A note that holds for all of more rows than these does not name them.
FEW_ROWS = 4
#: Titles of columns are folded to this width.
WIDTH_OF_TITLES = 14
_VERDICT_STYLE = {"ok": "green", "degraded": "yellow", "invalid": "red"}

Campaign = tuple[Path, dict[str, Any]]


def show_number(value: float | None, metric: dict[str, Any]) -> str:
    """A value in the unit for people, with four significant digits."""
    if value is None:
        return NOT_AVAILABLE
    scaled = value * metric.get("show_scale", 1)
    if scaled == 0:
        return "0"
    digits = 3
    size = abs(scaled)
    while size >= 10 and digits > 0:
        size /= 10
        digits -= 1
    return f"{scaled:.{digits}f}"


def _with_interval(summary: dict[str, Any] | None, metric: dict[str, Any]) -> str:
    if summary is None:
        return NOT_AVAILABLE
    text = show_number(summary["median"], metric)
    if summary.get("ci95"):
        low, high = (show_number(value, metric) for value in summary["ci95"])
        text += f" [{low}, {high}]"
    return text


def _has_packets(results: dict[str, Any]) -> bool:
    """True if packets were seen in any run, or nothing tells that they were not."""
    found = [row["metrics"] for row in results["rows"]]
    return not found or any(
        row.get("throughput_bps") is not None or row.get("goodput_bps") is None for row in found
    )


def _metrics(results: dict[str, Any], wanted: tuple[str, ...]) -> list[dict[str, Any]]:
    known = {metric["name"]: metric for metric in results["metrics"]}
    return [known[name] for name in wanted if name in known]


def _title(metric: dict[str, Any]) -> str:
    """The label folded into short lines, with the unit below."""
    lines = textwrap.wrap(str(metric["label"]), WIDTH_OF_TITLES, break_long_words=False)
    unit = metric.get("show_unit")
    if unit and unit != "1":
        lines.append(f"[{unit}]")
    return "\n".join(lines)


def _schemes(campaigns: list[Campaign]) -> list[str]:
    names: dict[str, None] = {}
    for _, results in campaigns:
        names |= dict.fromkeys(line["scheme"] for line in results["summary"])
        names |= dict.fromkeys(one["scheme"] for one in results["skipped"])
    return list(names)


def _flows(campaigns: list[Campaign]) -> dict[str, list[dict[str, Any]]]:
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


def _names(campaigns: list[Campaign], wheres: list[str]) -> list[str]:
    """The name of each campaign: its plane if that tells them apart, else its folder."""
    return wheres if len(set(wheres)) == len(campaigns) else [path.name for path, _ in campaigns]


def print_summary(console: Console, campaigns: list[Campaign], wheres: list[str] | None = None) -> None:
    """The table per scheme; of several campaigns side by side, column by column."""
    several = len(campaigns) > 1
    names = _names(campaigns, wheres or [""] * len(campaigns)) if several else [""]
    made = table("scheme", whole=("scheme",))
    seen = any(_has_packets(results) for _, results in campaigns)
    metrics = _metrics(campaigns[0][1], (*(SUMMARY if seen else ENDS), *own_metrics.names(campaigns[0][1])))
    for title in ("runs", *(_title(metric) for metric in metrics)):
        for name in names:
            made.add_column(
                f"{title}\n{name}" if several else title, justify="right", no_wrap=True, vertical="bottom"
            )
    made.add_column("status", vertical="bottom")
    notes: list[tuple[str, str]] = []
    flows = _flows(campaigns)
    statuses_shown: list[Status] = []
    for scheme in _schemes(campaigns):
        found = [_line(results, scheme) for _, results in campaigns]
        cells = [
            scheme,
            *(_runs(results, scheme, line) for (_, results), line in zip(campaigns, found, strict=True)),
        ]
        for metric in metrics:
            cells += [_value(line, metric) for line in found]
        statuses = list(
            statuses_of(flows.get(scheme) or [{"scheme": scheme.split(" ", maxsplit=1)[0]}]).values()
        )
        status = weakest(statuses)
        statuses_shown += statuses
        cells.append(status.mark if status else "")
        if status and status.reason == DEFAULTS_ONLY:
            notes.append((scheme, f": {DEFAULTS_ONLY}"))
        made.add_row(*cells, style="dim" if not any(found) else None)
        for name, (_, results), line in zip(names, campaigns, found, strict=True):
            where = f" ({name})" if several else ""
            notes += [(scheme, where + note) for note in _notes(results, scheme, line, metrics)]
    console.print(made)
    if any(
        line["metrics"].get(metric["name"], {}).get("n", 0) > 1
        for _, results in campaigns
        for line in results["summary"]
        if line["flow"] == "all"
        for metric in metrics
    ):
        console.print("Values are medians over the valid runs, of all flows together.")
    for note in _grouped(notes, len(_schemes(campaigns))):
        console.print(note, soft_wrap=True)
    marks = legend(statuses_shown)
    if marks:
        shown = "; ".join(f"{mark} {word}: {meaning}" for mark, word, meaning in marks)
        console.print(shown, soft_wrap=True)


def _grouped(notes: Iterable[tuple[str, str]], rows: int) -> list[str]:
    """One line per note, with all schemes that it holds for."""
    schemes: dict[str, dict[str, None]] = {}
    for scheme, note in notes:
        schemes.setdefault(note, {})[scheme] = None
    return [
        ("all rows" if len(names) == rows > FEW_ROWS else ", ".join(names)) + note
        for note, names in schemes.items()
    ]


def _line(results: dict[str, Any], scheme: str) -> dict[str, Any] | None:
    return next(
        (line for line in results["summary"] if line["scheme"] == scheme and line["flow"] == "all"), None
    )


def _runs(results: dict[str, Any], scheme: str, line: dict[str, Any] | None) -> str:
    if line is None:
        # A scheme that nobody asked for in this campaign was not skipped.
        return "skipped" if any(one["scheme"] == scheme for one in results["skipped"]) else "-"
    return str(line["valid"]) if line["valid"] == line["started"] else f"{line['valid']} of {line['started']}"


def _value(line: dict[str, Any] | None, metric: dict[str, Any]) -> str:
    if line is None:
        return "-"
    return _with_interval(line["metrics"].get(metric["name"]), metric)


def _notes(
    results: dict[str, Any], scheme: str, line: dict[str, Any] | None, metrics: list[dict[str, Any]]
) -> list[str]:
    """Remarks on a row besides its numbers."""
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
            if reason:
                notes.append(f": {metric['label']} is {NOT_AVAILABLE}: {reason}")
    return notes


def _reason(results: dict[str, Any], scheme: str, name: str) -> str | None:
    for row in results["rows"]:
        if row["scheme"] == scheme and row["flow"] == "all" and name in row["absent"]:
            return str(row["absent"][name])
    return None


def _metric_table(titles: Iterable[str], metrics: Iterable[dict[str, Any]]) -> Table:
    """A table with columns for metrics behind those with these titles."""
    made = table(*titles, whole=("scheme", "link"), right=("flow",))
    for metric in metrics:
        made.add_column(_title(metric), justify="right", no_wrap=True)
    return made


def print_flows(console: Console, results: dict[str, Any]) -> None:
    """The table per scheme and flow."""
    lines = [line for line in results["summary"] if line["flow"] != "all"]
    if not lines or all(line["flow"] == 1 for line in lines):
        return
    metrics = _metrics(results, PER_FLOW if _has_packets(results) else ENDS)
    metrics += [
        metric
        for metric in _metrics(results, own_metrics.names(results))
        if any(metric["name"] in line["metrics"] for line in lines)
    ]
    made = _metric_table(("scheme", "flow"), metrics)
    for line in lines:
        flow = f"{line['flow']} ({line['label']})" if line.get("label") else str(line["flow"])
        made.add_row(line["scheme"], flow, *(_value(line, metric) for metric in metrics))
    console.print(made)


def print_sharing(console: Console, results: dict[str, Any]) -> None:
    """The table of several flows under test together; nothing where there is one."""
    lines = [line for line in results["summary"] if line["flow"] == "all"]
    lines = [line for line in lines if line["metrics"].get(SHARING[0])]
    if not lines:
        return
    console.print()
    metrics = _metrics(results, SHARING)
    times = [one for one in _metrics(results, CONVERGENCE) if any(one["name"] in x["metrics"] for x in lines)]
    made = _metric_table(("scheme",), [*metrics, *times[:1]])
    if times:
        made.add_column("runs\nconverged", justify="right", no_wrap=True)
    for line in lines:
        cells = [_value(line, metric) for metric in metrics]
        if times:
            found = line["metrics"].get(times[0]["name"])
            converged = f"{found['happened']} of {found['of']}" if found else ""
            cells += [_with_interval(found, times[0]), converged]
        made.add_row(line["scheme"], *cells)
    console.print(made)


def print_links(console: Console, results: dict[str, Any]) -> None:
    """The table per scheme and link, where the scenario asks for links."""
    lines = results.get("link_summary", [])
    if not lines:
        return
    console.print()
    metrics = _metrics(results, PER_LINK)
    made = _metric_table(("scheme", "link"), metrics)
    for line in lines:
        made.add_row(line["scheme"], line["link"], *(_value(line, metric) for metric in metrics))
    console.print(made)


def print_cells(console: Console, cells: list[dict[str, Any]]) -> None:
    """The verdict of each cell, with its reasons."""
    made = table("cell", "verdict", "why", overflow="fold")
    for cell in cells:
        if cell["state"] == "finished":
            verdict = str(cell["verdict"])
            why = "; ".join(str(reason.get("text", "")) for reason in cell["reasons"])
        else:
            verdict = cell["state"]
            why = (cell.get("error") or {}).get("message", "")
        made.add_row(cell["id"], Text(verdict, style=_VERDICT_STYLE.get(verdict, "red")), why)
    console.print(made)
