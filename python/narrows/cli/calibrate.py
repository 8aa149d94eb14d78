"""`narrows calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.calibration import Calibration


@command(example="narrows calibrate table.csv --map names.yaml --time '30 s' -o path")
def calibrate(
    source: Annotated[
        Path,
        argument(
            metavar="INPUT",
            help="A table (CSV: scheme, run, flow, throughput, p95 delay, loss, with units in the headings),"
            " or the folder of a campaign, imported or your own.",
        ),
    ],
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the calibration, to be completed by the same command. [default:"
            " results/calibrate-NAME]",
        ),
    ] = None,
    map_file: Annotated[
        Path | None,
        option(
            "--map",
            metavar="FILE",
            help="Definitions of the table's names: YAML with schemes, flows, interval, duration, loss,"
            " columns; or the lab.yaml of a laboratory.",
        ),
    ] = None,
    scheme: Annotated[
        list[str] | None,
        option(
            "--scheme",
            metavar="NAME=SCHEME",
            help='One name: --scheme "TCP Cubic=cubic-linux"; null leaves it out. Repeatable.',
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        option(
            "--where",
            metavar="HEADING=VALUE",
            help='Only lines with this value: --where "place=India". Repeatable.',
        ),
    ] = None,
    flows: Annotated[
        str | None, option("--flows", metavar="N", help="Flows of a run. [default: as in the table]")
    ] = None,
    interval: Annotated[
        str | None, option("--interval", metavar="TIME", help='Between starts of flows: "10 s".')
    ] = None,
    time: Annotated[
        str | None, option("-t", "--time", metavar="TIME", help='Duration of a run: 30 or "2 min".')
    ] = None,
    loss: Annotated[
        str | None,
        option(
            "--loss",
            metavar="METRIC",
            help="The metric of the table's losses: loss_ratio, or loss_pantheon_ratio, in which packets on"
            " their way at the end are lost. [default: as the heading says, else loss_pantheon_ratio]",
        ),
    ] = None,
    trace: Annotated[
        str | None,
        option(
            "--trace",
            metavar="FILE",
            help="The rate follows this trace (narrows trace record), and is scaled; no other kind of link is"
            " tried.",
        ),
    ] = None,
    budget: Annotated[
        str,
        option(
            "--budget",
            metavar="AMOUNT",
            help='Budget of the search: evaluations (all schemes once on a path), or time: 500, "20 min".',
        ),
    ] = "300",
    seed: Annotated[int, option("--seed", min=0, max=1_000_000, help="Seed of everything random.")] = 1,
    processors: Annotated[
        int | None, option("--processors", min=1, max=1024, help="Threads. [default: all processors]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find the emulated path that reproduces measurements.

    Rate, delay, queue, loss and kind of link (constant, Poisson) are searched with Gaussian processes;
    further features are admitted only if they reduce the error of schemes that were left out. DIR receives
    scenario.yaml for narrows run, errors.csv, points.svg and .png, and results.json: errors of the fit, on
    fresh seeds, of each scheme left out and refitted, the noise floor of the table, and the schemes
    that are off the path on which the others agree. The same command resumes after an interruption or a
    kill. Needs pip install 'narrows[calibrate]'.

    Exit codes: 0 done, 2 usage, 3 a wrong table or map, 4 not possible on this machine, 130/143 interrupted.
    """
    import os

    # The matrices are small: threads of the linear algebra would wait for each other, and change the order of
    # summation.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from narrows.calibrate.mapping import Map, read_option
    from narrows.calibrate.run import Asked, merge_map
    from narrows.calibrate.run import calibrate as run
    from narrows.calibrate.search import Budget
    from narrows.calibrate.table import LOSS
    from narrows.cli.common import budget_of, print_json
    from narrows.documents.data import to_data
    from narrows.errors import DataError, UsageError
    from narrows.progress import ProgressLines, progress
    from narrows.sweep.engines import usable_processors
    from narrows.traces import find

    try:
        others = Map(
            {},
            read_option("--flows", "flows", flows),
            read_option("--interval", "interval", interval),
            read_option("--time", "duration", time),
            {LOSS: metric} if (metric := read_option("--loss", "loss", loss)) else {},
            where=_selection(where or []),
        )
    except DataError as error:
        raise UsageError(str(error)) from None
    written: dict[str, str | None] = {}
    for text in scheme or []:
        name, equals, entry = text.rpartition("=") if "{" not in text else text.partition("=")
        if not equals or not name.strip() or not entry.strip():
            raise UsageError(f'--scheme takes NAME=SCHEME such as "TCP Cubic=cubic-linux", not "{text}"')
        written[name.strip()] = None if entry.strip() in ("null", "~") else entry.strip()
    folder = output or Path("results") / f"calibrate-{source.resolve().stem}"
    asked = Asked(
        source,
        merge_map(map_file, written, others),
        seed,
        Budget(*budget_of(budget, 50, 100_000)),
        processors or usable_processors(),
        find(trace, Path()) if trace is not None else None,
    )
    lines = ProgressLines("calibrate", quiet=as_json)
    with progress(quiet=as_json, after_s=2.0) as bar:

        def watch(stage: str, share: float) -> None:
            left = bar.time_left(share)
            bar.show("calibrate", share, 1.0, stage + left)
            lines.show(stage, f"{share:.0%} of the budget{left}")

        result = run(asked, folder, watch)
    if as_json:
        print_json({"folder": str(folder), **to_data(result)})
    else:
        _print(result, folder)


def _selection(texts: list[str]) -> dict[str, str]:
    """The values by heading of `--where`."""
    from narrows.errors import UsageError

    result: dict[str, str] = {}
    for text in texts:
        heading, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not heading:
            raise UsageError(f'--where takes HEADING=VALUE such as "place=India", not "{text}"')
        if heading in result:
            raise UsageError(f'--where has the heading "{heading}" twice')
        result[heading] = value
    return result


def _print(result: Calibration, folder: Path) -> None:
    from narrows.blocks.terminal import print_blocks
    from narrows.calibrate.output import blocks
    from narrows.console import say, stdout_console

    print_blocks(stdout_console(), blocks(result))
    say(f"narrows run {folder}/scenario.yaml runs the schemes on the path; {folder}/points.svg shows both")
