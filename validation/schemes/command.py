"""`python -m validation schemes`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from click.exceptions import Exit

from narrows.cli.app import Group, subcommand
from narrows.cli.common import Json, print_json
from narrows.cli.parameters import argument, option
from narrows.console import stderr_console, stdout_console
from narrows.errors import EXIT_FAILURE, UsageError
from validation.schemes.check import HOLDS
from validation.schemes.output import print_outcome, write
from validation.schemes.verdict import document
from validation.schemes.work import Options, work


def run(
    names: Annotated[list[str] | None, argument(help="Only these; all if none is named.")] = None,
    simulate_only: Annotated[
        bool, option("--simulate-only", help="Only the checks against theory; needs no rights.")
    ] = False,
    emulate_only: Annotated[
        bool, option("--emulate-only", help="Only the comparison with the kernel and our BPF programs.")
    ] = False,
    quick: Annotated[
        bool,
        option("--quick", help="A smoke test: fewer checks, shorter runs on slower paths."),
    ] = False,
    runs: Annotated[int, option("--runs", min=1, help="Runs of each scheme on the emulator.")] = 1,
    programs: Annotated[
        bool,
        option(
            "--programs",
            help="Compare with programs of others too: quinn, quic-go, libtorrent, pion, Chromium, iperf3.",
        ),
    ] = False,
    update: Annotated[
        bool,
        option(
            "--update",
            help="Write docs/verification/schemes.md and the status that ships.",
        ),
    ] = False,
    again: Annotated[bool, option("--again", help="Start over, whatever the folder holds already.")] = False,
    output: Annotated[
        Path,
        option(
            "-o", "--output", help="Folder of all results, which are kept for the next time.", metavar="DIR"
        ),
    ] = Path("results/verify-schemes"),
    as_json: Json = False,
) -> None:
    """Check the schemes against theory and the kernel.

    The kernel's schemes run on the same emulated paths. Simulation takes about 5 minutes for all schemes on
    two processors, the comparison about 70 seconds for each implementation: three quarters of an hour for
    everything. Finished work is kept in the folder and not repeated, so that the command can be interrupted.
    Leave the machine otherwise idle meanwhile.

    With --programs external programs with the same rules run too, on separate paths: a quarter of an hour for
    all. They do not affect the status of a scheme. A program that is not built (narrows programs build) is
    left out with a sentence.

    Exit codes: 0 every check that was made holds, 1 a check does not hold, 4 nothing could be run here.
    """

    if simulate_only and emulate_only:
        raise UsageError("--simulate-only and --emulate-only leave nothing to do; use one of them")
    if update and quick:
        raise UsageError("--quick proves nothing that could be shipped; leave it out to --update")
    options = Options(
        names=tuple(names or ()),
        simulate=not emulate_only,
        emulate=not simulate_only,
        quick=quick,
        again=again,
        runs=runs,
        programs=programs,
    )
    outcome = work(options, output, stderr_console())
    paths = write(outcome, output, update=update)
    if as_json:
        print_json(document(outcome.entries))
    else:
        print_outcome(stdout_console(), outcome, paths)
    made = [one for entry in outcome.entries.values() for one in entry["checks"]]
    if any(one["outcome"] != HOLDS for one in made):
        raise Exit(EXIT_FAILURE)


def register(program: Group) -> None:
    """Adds the command to the program."""
    subcommand(program, "schemes", example="python -m validation schemes reno --quick --simulate-only")(run)
