"""`narrows show`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import (
    Json,
    Metrics,
    Only,
    PaperForm,
    Schemes,
    choose_labels,
    names_in,
    read_metrics,
    write_table,
)
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.documents.results import Measured, Results
    from narrows.documents.run import Clock


@command(example="narrows show results/20261121T101500Z-first-look-3fa9c1")
def show(
    folders: Annotated[
        list[Path],
        argument(
            metavar="DIR...",
            help="Folders of campaigns (several: below each other, with the difference), or the folder of one"
            " cell.",
        ),
    ],
    interval: Annotated[
        str | None,
        option(
            "--interval",
            metavar="TIME",
            help='For a cell: the data that arrived in each interval of 1 (seconds) or "100 ms", in the words'
            " of iperf -i, in bytes of IP packets.",
        ),
    ] = None,
    schemes: Schemes = None,
    only: Only = None,
    metrics: Metrics = None,
    form: PaperForm = None,
    columns: Annotated[
        str | None,
        option(
            metavar="M,N",
            help='With --format: the metrics of its columns, by name or head: "thr,p95 OWD,loss".',
        ),
    ] = None,
    output: Annotated[
        Path | None, option("-o", "--output", metavar="FILE", help="Write the table to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the tables of campaigns, or the facts of a cell.

    For a paper, --format latex or -o table.tex writes the table of schemes with intervals, the verdicts of
    the runs in a note; narrows show results/x -o table.csv the same as plain numbers.

    For a sweep, the throughput as narrows sweep show prints it.

    Of several campaigns, one that can't be read is reported in one sentence; the others are shown.

    Exit codes: 0 done, 3 a campaign could not be read.
    """
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.errors import UsageError
    from narrows.paper.forms import form_of

    paper = form.value if form is not None else form_of(output)
    _check_form(folders, paper, columns, output, as_json, interval)
    chosen = schemes is not None or bool(only)
    if chosen and (
        interval or any((path / name).exists() for path in folders for name in ("run.json", "sweep.json"))
    ):
        raise UsageError("--schemes and --only choose rows of campaigns; a cell or a sweep has none")
    if len(folders) == 1 and (folders[0] / "sweep.json").exists():
        from narrows.cli.sweep import show as show_sweep

        show_sweep(folders[0], "throughput_bps", None, False, as_json)
        return
    console = stdout_console()
    read_metrics(metrics)
    if interval is not None:
        _show_intervals(folders, interval, as_json)
        return
    if len(folders) == 1 and (folders[0] / "run.json").exists():
        show_cell(console, folders[0], as_json)
        return
    from narrows.campaign.gathering import readable
    from narrows.console import say
    from narrows.errors import EXIT_BAD_INPUT

    several = readable(folders, say)
    opened = [folder for folder, _ in several]
    labels = choose_labels(opened, schemes, only)
    pairs = [(folder.path, _rows_of(result, labels)) for folder, result in several]
    cells = [[cell for cell in folder.cells if labels is None or cell.scheme in labels] for folder in opened]
    if paper is not None:
        from narrows.paper.summary import summary_table

        table = summary_table(opened, [result for _, result in pairs], names_in(columns))
        write_table(table, paper, output)
        if len(several) < len(folders):
            raise Exit(EXIT_BAD_INPUT)
        return
    if as_json:
        from narrows.analysis.attempts import to_document

        documents = [to_document(result, own) for (_, result), own in zip(pairs, cells, strict=True)]
        print_json(documents[0] if len(folders) == 1 else documents)
        if len(several) < len(folders):
            raise Exit(EXIT_BAD_INPUT)
        return
    from narrows.analysis.attempts import print_attempts
    from narrows.analysis.flow_tables import (
        print_flows,
        print_frames,
        print_links,
        print_playback,
        print_sharing,
    )
    from narrows.analysis.tables import print_cells, print_summary
    from narrows.blocks.terminal import print_text
    from narrows.cli.common import print_expectations
    from narrows.scenario.measure import measure_in_words

    asked: dict[str, list[str]] = {}
    scenarios = [folder.resolved for folder in opened]
    for folder, scenario in zip(opened, scenarios, strict=True):
        asked.setdefault(f"{folder.header.name}: {scenario.question}", []).append(folder.header.where)
    for line, places in asked.items():
        print_text(console, f"{line} ({', '.join(dict.fromkeys(places))})", indent="")
    about = [measure_in_words(scenario.measure) for scenario in scenarios]
    about += [folder.header.versions.extensions_in_words for folder in opened if folder.header.versions]
    for words in dict.fromkeys(about):
        if words:
            console.print(words, soft_wrap=True)
    console.print()
    print_summary(console, pairs, [folder.header.where for folder in opened])
    print_attempts(console, [(*pair, own) for pair, own in zip(pairs, cells, strict=True)])
    if len(folders) == 1:
        for part in (print_flows, print_sharing, print_frames, print_playback, print_links):
            part(console, pairs[0][1], scenarios[:1])
        print_expectations(console, pairs[0][1])
        console.print()
        print_cells(console, cells[0])
    if len(several) < len(folders):
        raise Exit(EXIT_BAD_INPUT)


def _check_form(
    folders: list[Path],
    form: str | None,
    columns: str | None,
    output: Path | None,
    as_json: bool,
    interval: str | None,
) -> None:
    """Refuses options of paper tables for documents that have no such table."""
    from narrows.errors import UsageError

    if form is None:
        if output is not None:
            raise UsageError(f"-o {output}: the name must end in .tex, .csv or .md, or --format say the form")
        if columns is not None:
            raise UsageError(
                "--columns chooses the columns of a table for a paper; add --format latex or csv"
            )
        return
    if as_json or interval:
        raise UsageError("--format, --json and --interval print different things; use one of them")
    if output is not None and output.is_dir():
        raise UsageError(f"-o {output} is a folder; name a file")
    if any((path / name).exists() for path in folders for name in ("run.json", "sweep.json")):
        raise UsageError("--format writes the table of campaigns; a cell or a sweep has none")


def _rows_of(results: Results, labels: list[str] | None) -> Results:
    """The results of these rows only."""
    if labels is None:
        return results
    from msgspec.structs import replace

    return replace(
        results,
        rows=[row for row in results.rows if row.scheme in labels],
        summary=[line for line in results.summary if line.scheme in labels],
        skipped=[skipped for skipped in results.skipped if skipped.scheme in labels],
        links=[row for row in results.links if row.scheme in labels],
        link_summary=[line for line in results.link_summary if line.scheme in labels],
        expect=[outcome for outcome in results.expect if outcome.scheme in labels],
    )


def _show_intervals(folders: list[Path], interval: str, as_json: bool) -> None:
    from narrows.analysis.intervals import in_iperfs_words, intervals
    from narrows.cli.common import positive, print_json
    from narrows.errors import DataError

    # Seconds, as with iperf.
    text = f"{interval} s" if interval.strip().replace(".", "", 1).isdecimal() else interval
    length = positive(text, "span", "--interval")
    pairs = []
    for folder in folders:
        if not (folder / "run.json").exists():
            raise DataError(
                f"{folder}: --interval shows single runs; name a folder below cells/ of a campaign"
            )
        _check_cell(folder)
        pairs.append((folder, intervals(folder, length)))
    if as_json:
        runs = [
            {"cell": str(folder), "intervals": [line.to_json() for line in lines]} for folder, lines in pairs
        ]
        print_json({"format": "narrows/intervals/1", "interval_ns": length, "runs": runs})
        return
    for folder, lines in pairs:
        if len(pairs) > 1:
            print(f"{folder}:")
        print("\n".join(in_iperfs_words(lines)))


def show_cell(console: Console, path: Path, as_json: bool) -> None:
    """Prints the facts of the cell in `path`."""
    from narrows.analysis.checks import count_in_words
    from narrows.campaign.json_files import read_json, read_run
    from narrows.cli.common import print_json
    from narrows.documents.data import to_data
    from narrows.documents.run import FORMAT

    _check_cell(path)
    run = read_run(path)
    measured = _read_metrics(path)
    if as_json:
        print_json({"run": read_json(path / "run.json", FORMAT), "measured": to_data(measured)})
        return
    console.print(f"{run.title}, {run.plane}, verdict {run.verdict}")
    for reason in run.reasons:
        console.print(f"  {reason.severity}: {reason.text}", soft_wrap=True)
    console.print()
    _print_metrics(console, measured)
    if run.pantheon and run.pantheon.text:
        console.print()
        console.print("Pantheon's numbers:")
        console.print(run.pantheon.text.rstrip())
    console.print()
    for element in run.elements:
        console.print(
            f"{element.name} ({element.kind}): {element.in_packets} packets in, {element.out_packets} out,"
            f" {element.dropped_packets} dropped, {element.held_packets} still inside at the end",
        )
    if late := run.lateness:
        console.print(
            f"lateness of the emulator: p50 {late.p50_ns / 1e3:.1f} us, p99 {late.p99_ns / 1e3:.1f} us,"
            f" most {late.max_ns / 1e3:.1f} us"
        )
    if run.plane == "hosts":
        _print_clock(console, run.clock)
    for check in run.checks:
        console.print(f"{check.outcome:7} {check.title}: {check.detail}", soft_wrap=True)
    if run.checks:
        console.print(f"checks: {count_in_words(run.checks)}")


def _check_cell(path: Path) -> None:
    """Refuses the record of a campaign's cell that differs from the one that the run left."""
    from narrows.campaign import integrity
    from narrows.campaign.gathering import entry_of
    from narrows.errors import DataError

    if problem := integrity.describe_change(path, entry_of(path)):
        raise DataError(problem)


def _read_metrics(path: Path) -> Measured:
    """The metrics of a record, including user-defined ones."""
    from msgspec.structs import replace

    from narrows.campaign import own_metrics
    from narrows.campaign.measurement import measure_cell
    from narrows.campaign.record import Run

    measured = measure_cell(path)
    if not own_metrics.list_registered():
        return measured
    rows = [replace(row, absent={}) for row in measured.flows]
    for own_metric in own_metrics.list_registered():
        own_metrics.add_values(own_metric, Run(path, rows=rows), rows)
    return replace(measured, flows=rows)


def _print_clock(console: Console, clock: Clock) -> None:
    from narrows.hosts import clocks

    text = f"clocks of the hosts: known to {clock.error_ns / 1e6:.3f} ms"
    if clock.drift_ppb is not None:
        text += f", drift {clock.drift_ppb / 1e3:.1f} ppm"
    ways = [way for way, resolved in (clock.resolved or {}).items() if not resolved]
    if ways:
        text += f"; one-way delays {' and '.join(ways)} vary by less than that"
    console.print(text, soft_wrap=True)
    if ntp := clocks.against(clock):
        console.print(f"the same by NTP: {ntp}")


def _print_metrics(console: Console, measured: Measured) -> None:
    from narrows.analysis.metrics import show_number
    from narrows.blocks.model import Column, Table
    from narrows.blocks.terminal import fit_table, print_table, width
    from narrows.campaign.measurement import list_metrics
    from narrows.campaign.own_metrics import list_registered

    columns = [
        ("all flows" if flow.flow == "all" else f"flow {flow.flow}", flow.metrics) for flow in measured.flows
    ]
    columns += [(link.link, link.metrics) for link in measured.links]
    metrics = [
        metric
        for metric in [*list_metrics(), *(own_metric.description for own_metric in list_registered())]
        if any(values.get(metric.name) is not None for _, values in columns)
    ]

    def build(some: list[tuple[str, dict[str, float | None]]]) -> Table:
        heads = (Column("metric", "left"), *(Column(head) for head, _ in some), Column("unit", "left"))
        rows = (
            (
                metric.label,
                *(show_number(values.get(metric.name), metric) for _, values in some),
                metric.show_unit,
            )
            for metric in metrics
        )
        return Table.new(heads, rows)

    # As many flows and links as fit side by side, the others below.
    room = width(console.file)
    while columns:
        count = len(columns)
        while (
            count > 1 and max(len(line.plain) for line in fit_table(build(columns[:count]), room)[0]) > room
        ):
            count -= 1
        print_table(console, build(columns[:count]))
        columns = columns[count:]
        if columns:
            console.print()
