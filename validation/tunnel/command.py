"""`python -m validation tunnel`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from narrows.agent.location import this_machine
from narrows.cli.app import Group, subcommand
from narrows.cli.common import Json, print_json
from narrows.cli.parameters import option
from narrows.console import stderr_console, stdout_console
from narrows.errors import EXIT_FAILURE
from validation.tunnel.compare import DIFFERENT, is_main
from validation.tunnel.output import document, print_outcome, write
from validation.tunnel.start import enter
from validation.tunnel.testbed import EmulatedPath
from validation.tunnel.work import Options, chosen, work

_DEFAULT = "linux:cubic,linux:reno,linux:bbr"


def run(
    schemes: Annotated[
        str, option("--schemes", metavar="A,B", help="Congestion controls of the kernel.")
    ] = _DEFAULT,
    runs: Annotated[int, option("--runs", min=1, help="Runs of each scheme, inside and outside.")] = 20,
    seconds: Annotated[float, option("--seconds", min=0.5, max=600, help="Length of each flow.")] = 8.0,
    rate: Annotated[str, option(metavar="RATE", help="Rate of the path.")] = "50 Mbit/s",
    delay: Annotated[
        str, option(metavar="TIME", help="One-way delay; the round-trip time is twice that.")
    ] = "10 ms",
    queue: Annotated[str, option(metavar="QUEUE", help="Queue in front of the rate.")] = "droptail 1 bdp",
    loss: Annotated[
        str | None, option(metavar="SHARE", help="Share of the data packets lost at random.")
    ] = None,
    longer: Annotated[
        float,
        option(
            "--longer",
            metavar="US",
            min=0,
            help="Also compare with runs outside whose return path is longer by so many microseconds.",
        ),
    ] = 0.0,
    seed: Annotated[
        int,
        option("--seed", min=0, help="Seed of the order of runs and of everything random on the path."),
    ] = 1,
    again: Annotated[bool, option("--again", help="Start over, whatever the folder holds already.")] = False,
    output: Annotated[
        Path,
        option(
            "-o", "--output", help="Folder of all results, which are kept for the next time.", metavar="DIR"
        ),
    ] = Path("results/verify-tunnel"),
    as_json: Json = False,
    within: Annotated[bool, option("--within", hidden=True)] = False,
) -> None:
    """Check that the tunnel changes nothing it measures.

    Inside is compared with outside, over an emulated path. The path sees packets of the same size from both
    and records each of them. Throughput and 95th percentile of the delay of all runs are compared by the
    two-sample Kolmogorov-Smirnov test, and with what the tunnel's own logs say. Runs that the machine spoils
    are repeated. Finished work is kept in the folder and not repeated, so that the command can be
    interrupted. 20 runs take about 22 minutes; leave the machine alone meanwhile.

    Exit codes: 0 nothing differs, 1 something differs by more than 2 %, 4 nothing could be run here.
    """
    options = Options(
        emulated_path=EmulatedPath(rate, delay, queue, loss, round(seconds * 1000) * 1_000_000),
        schemes=chosen(schemes),
        runs=runs,
        seed=seed,
        longer_ns=round(longer * 1000),
        again=again,
    )
    # Errors of the path are reported before anything is started.
    options.emulated_path.network()
    agent = this_machine()
    if not within:
        enter(Path(agent.prefix[-1]), sys.argv[2:])
    outcome = work(options, agent, output, stderr_console())
    paths = write(outcome, output)
    if as_json:
        print_json(document(outcome))
    else:
        print_outcome(stdout_console(), outcome, paths)
    if any(row.outcome == DIFFERENT and is_main(row) for row in outcome.rows):
        raise Exit(EXIT_FAILURE)


def register(program: Group) -> None:
    """Adds the command to the program."""
    subcommand(program, "tunnel", example="python -m validation tunnel --runs 6 --seconds 5")(run)
