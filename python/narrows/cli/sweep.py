"""`narrows sweep ...`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from narrows.cli import quick
from narrows.cli.app import group, subcommand
from narrows.cli.common import Json, positive
from narrows.cli.completion import scenario_names
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.sweep.loading import LoadedSweep
    from narrows.sweep.store import SweepFolder

sweep_app = group(
    "sweep",
    "narrows sweep run space.yaml -o space",
    "Simulate a scenario at many points of a space of parameters.",
)
_Scenario = Annotated[
    str,
    argument(help="A scenario with the key sweep (see narrows schema).", complete=scenario_names),
]
_On = Annotated[
    str | None,
    option(
        "--on",
        metavar="ENGINE",
        help="local:8 for so many processes, dask:tcp://HOST:8786 for a Dask scheduler. [default: all"
        " processors, in this process]",
    ),
]
_Memory = Annotated[
    str | None,
    option("--memory", metavar="SIZE", help='Memory that one cell may use. [default: "2 GB"]'),
]
_Output = Annotated[
    Path | None,
    option(
        "-o",
        "--output",
        help="Folder of the sweep; if it contains this sweep already, missing points are run."
        " [default: results/NAME-HASH]",
    ),
]
_Folder = Annotated[Path, argument(metavar="DIR", help="Folder of a sweep.")]


@subcommand(sweep_app, "run", example="narrows sweep run space.yaml -o space --on local:8")
def run(
    scenario: _Scenario,
    output: _Output = None,
    on: _On = None,
    share: Annotated[
        str | None,
        option("--share", metavar="K/N", help="Only the K-th of N shares of the points, for job arrays."),
    ] = None,
    schemes: quick.Schemes = None,
    runs: quick.Runs = None,
    seed: quick.Seed = None,
    time: quick.Time = None,
    changes: quick.Changes = None,
    memory: _Memory = None,
    dry_run: Annotated[bool, option("--dry-run", help="Print the plan and run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Run a sweep, or its missing cells.

    Cells are simulated in memory; only their metrics are kept, in one Parquet data set (DIR/data) that can be
    read while it grows: narrows query "select ..." DIR. The same command completes an interrupted or killed
    sweep. A cell is identified by the hash of its content and the version, and never runs twice.

    The scenario's expectations are judged at every point.

    Exit codes: 0 done, 2 usage, 3 a bad scenario, 4 not possible on this machine, 5 an expectation fails at
    some point, 6 some cells failed, 130/143 interrupted with all finished cells kept.
    """
    run_sweep(
        scenario,
        quick.Changed(None, schemes, None, runs, seed, time, changes or []),
        output,
        on=on,
        share=share,
        memory=memory,
        dry_run=dry_run,
        as_json=as_json,
    )


def run_sweep(
    scenario: str,
    changed: quick.Changed,
    output: Path | None,
    *,
    on: str | None = None,
    share: str | None = None,
    memory: str | None = None,
    dry_run: bool = False,
    as_json: bool = False,
) -> None:
    """Runs a sweep for `narrows sweep run`."""
    from msgspec.structs import replace

    from narrows.campaign.run import RESULTS
    from narrows.cli.common import print_json
    from narrows.console import say
    from narrows.errors import EXIT_EXPECTATION, EXIT_SOME_INVALID, Interrupted
    from narrows.progress import progress
    from narrows.sweep import expecting
    from narrows.sweep.engines import engine
    from narrows.sweep.execute import SweepRun, interruption_sentence
    from narrows.sweep.loading import load_sweep
    from narrows.sweep.store import SweepFolder
    from narrows.sweep.work import DEFAULT_MEMORY

    part = _share(share)
    most = positive(memory, "bytes", "--memory") if memory else DEFAULT_MEMORY
    loaded = load_sweep(scenario, changed.overrides())
    expecting.check(loaded.first.expect)
    if dry_run:
        _print_plan(loaded, as_json)
        return
    if not as_json:
        for remark in loaded.remarks:
            say(remark)
    made = engine(on)
    path = output or RESULTS / f"{loaded.first.name}-{loaded.hash[:6]}"
    folder = SweepFolder.open(path, loaded)
    try:
        with progress(quiet=as_json, after_s=2.0) as bar:

            def watch(done: int, known: int, failed: int) -> None:
                note = f"{done} cells" + (f", {failed} failed" if failed else "")
                bar.show("cells", done, max(known, 1), note)

            work = SweepRun(loaded, folder, made, most, part, watch)
            try:
                work.run()
            except Interrupted as error:
                raise interruption_sentence(folder, error.number) from None
        expected = expecting.judge_all(folder, loaded.first.expect)
        folder.document = replace(folder.document, expect=expected)
        folder.save()
        if as_json:
            print_json(_summary(folder, work.known))
        else:
            for line in expecting.lines(expected):
                print(line)
            say(f"{len(folder.done)} cells in {path}; narrows sweep show {path} says what matters")
            for entry in work.failed[:5]:
                say(f"failed at point {entry.point} ({entry.scheme}, run {entry.run}): {entry.message}")
        if work.failed:
            say(f"{len(work.failed)} cells failed; sweep.json lists them")
            raise Exit(EXIT_SOME_INVALID)
        if not all(item.holds_everywhere for item in expected):
            raise Exit(EXIT_EXPECTATION)
    finally:
        folder.close()


def _summary(folder: SweepFolder, known: int) -> dict[str, object]:
    from narrows.documents.data import to_data

    return {
        "format": "narrows/sweep-run/1",
        "path": str(folder.path),
        "hash": folder.document.hash,
        "cells": len(folder.done),
        "known": known,
        "failed": to_data(folder.document.failed),
        "expect": to_data(folder.document.expect),
    }


def _share(text: str | None) -> tuple[int, int]:
    from narrows.errors import UsageError

    if text is None:
        return 1, 1
    first, _, of = text.partition("/")
    if not (first.isdecimal() and of.isdecimal() and 1 <= int(first) <= int(of)):
        raise UsageError(f"--share {text}: write K/N with K from 1 to N, such as 3/100")
    return int(first), int(of)


def _print_plan(loaded: LoadedSweep, as_json: bool) -> None:
    from narrows.blocks.model import Column, Table
    from narrows.blocks.terminal import print_table
    from narrows.cli.common import print_json
    from narrows.console import stdout_console

    sweep, first = loaded.sweep, loaded.first
    points = list(sweep.points())
    cells = len(points) * len(first.schemes) * first.runs
    if as_json:
        print_json(
            {
                "format": "narrows/sweep-plan/1",
                "hash": loaded.hash,
                "design": sweep.design,
                "parameters": [
                    {"label": parameter.name, "key": parameter.key, "law": parameter.law.text}
                    for parameter in sweep.parameters
                ],
                "schemes": [row.label for row in first.schemes],
                "remarks": loaded.remarks,
                "runs": first.runs,
                "cells": cells,
                "points": [point.words for point in points],
            }
        )
        return
    console = stdout_console()
    up = f" at least, at most {sweep.until.most} runs of each" if sweep.until else ""
    console.print(
        f"{first.name}: {len(points)} points ({sweep.design}) x {len(first.schemes)} schemes"
        f" x {first.runs} runs = {cells} cells{up}",
        soft_wrap=True,
    )
    heads = (Column("point"), *(Column(parameter.name, "left") for parameter in sweep.parameters))
    rows = ((str(point.number), *point.words.values()) for point in points[:20])
    print_table(console, Table.new(heads, rows))
    if len(points) > 20:
        console.print(f"and {len(points) - 20} more")
    for remark in loaded.remarks:
        console.print(remark, soft_wrap=True)


@subcommand(sweep_app, "show", example="narrows sweep show results/space --metric delay_p95_ns")
def show(
    folder: _Folder,
    metric: Annotated[
        str, option("--metric", metavar="NAME", help="The metric; --list names them.")
    ] = "throughput_bps",
    flow: Annotated[int | None, option("--flow", help="One flow, by its number, instead of all.")] = None,
    listing: Annotated[bool, option("--list", help="Name the metrics and end.")] = False,
    as_json: Json = False,
) -> None:
    """Show which keys of a sweep matter for a metric, and which matter together.

    A main effect is the share of the metric's variance over the points that a key alone explains, an
    interaction the share that two keys explain together beyond that; the share that chance would explain is
    subtracted. Beside it are the means of the metric from the lowest to the highest values of the key; each
    point enters with the median over its valid runs. For each scheme the command counts the cells and points
    that are invalid or failed.

    Exit codes: 0 done, 3 no sweep, or no valid cell.
    """
    from narrows.analysis.metrics import head_of
    from narrows.blocks.model import Paragraph, Section
    from narrows.blocks.terminal import print_blocks
    from narrows.campaign.measurement import list_metrics
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.data import to_data
    from narrows.documents.results import Quantity
    from narrows.sweep.effects import effects, effects_table, points_of
    from narrows.sweep.outcomes import count_outcomes
    from narrows.sweep.store import SweepFolder

    opened = SweepFolder.read(folder)
    if listing:
        print("\n".join(opened.document.metrics))
        return
    outcomes = count_outcomes(opened)
    result = [effects(points) for points in points_of(opened, metric, flow)]
    if as_json:
        print_json(
            [{**to_data(outcomes[item.scheme].counts), **_effects_json(item, metric)} for item in result]
        )
        return
    described = next((known for known in list_metrics() if known.name == metric), Quantity.unknown(metric))
    labels = {key.name: key.label for key in opened.document.parameters}
    print_blocks(
        stdout_console(),
        (
            Section(
                f"{item.scheme}: {head_of(described)} over {item.points} points",
                (Paragraph(outcomes[item.scheme].words), effects_table([item], described, labels)),
            )
            for item in result
        ),
    )


def _effects_json(result: Any, metric: str) -> dict[str, object]:
    from narrows.statistics.runs import STATISTIC

    return {
        "scheme": result.scheme,
        "metric": metric,
        "points": result.points,
        "statistic": STATISTIC,
        "main": result.main,
        "means": {name: [list(pair) for pair in means] for name, means in result.means.items()},
        "pairs": [{"keys": list(pair), "share": share} for pair, share in result.pairs.items()],
    }


@subcommand(sweep_app, "export", example="narrows sweep export space.yaml --slurm --tasks 100 -o space")
def export(
    scenario: _Scenario,
    output: Annotated[Path, option("-o", "--output", help="Folder that the script and the results go to.")],
    slurm: Annotated[bool, option("--slurm", help="A job array for SLURM (sbatch).")] = False,
    tasks: Annotated[int, option("--tasks", min=1, max=100_000, help="Number of tasks.")] = 10,
    processors: Annotated[int, option("--processors", min=1, max=1024, help="Per task.")] = 1,
    schemes: quick.Schemes = None,
    runs: quick.Runs = None,
    seed: quick.Seed = None,
    time: quick.Time = None,
    changes: quick.Changes = None,
    as_json: Json = False,
) -> None:
    """Write a script for sites with a batch system and without Dask.

    Task K of N runs the K-th share of the points into its own folder. A task that is run again completes its
    folder. When all have ended, narrows merge makes one sweep of them; the head of the script explains how.

    Exit codes: 0 done, 1 the script can't be written, 2 usage, 3 a bad scenario.
    """
    from narrows.cli.common import print_json
    from narrows.errors import UsageError
    from narrows.sweep.export import write_slurm
    from narrows.sweep.loading import load_sweep

    if not slurm:
        raise UsageError("name the batch system: --slurm")
    changed = quick.Changed(None, schemes, None, runs, seed, time, changes or [])
    loaded = load_sweep(scenario, changed.overrides())
    script = write_slurm(loaded, output, tasks, processors)
    if as_json:
        print_json({"script": str(script), "tasks": tasks, "hash": loaded.hash})
    else:
        print(f"sbatch {script}")
        print(f"narrows merge {output}/task-* -o {output}/merged    # when all tasks have ended")


def merge_sweeps(folders: list[Path], output: Path, as_json: bool) -> None:
    """Merges folders of a sweep for `narrows merge`."""
    from narrows.cli.common import print_json
    from narrows.errors import EXIT_SOME_INVALID
    from narrows.sweep.merge import merge

    result = merge(output, folders)
    if as_json:
        print_json({"path": str(output), **vars(result)})
    else:
        failed = f"; {result.failed} cells failed there" if result.failed else ""
        print(f"{output}: {result.added} cells adopted, {result.known} were there already{failed}")
    if result.failed:
        raise Exit(EXIT_SOME_INVALID)
