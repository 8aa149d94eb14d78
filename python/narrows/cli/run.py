"""`narrows run`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
from click.core import ParameterSource
from click.exceptions import Exit

from narrows.cli import quick
from narrows.cli.app import command
from narrows.cli.common import REMOTE_FOLDER, SSH, Metrics, Parts, positive, read_metrics, remote_options
from narrows.cli.completion import scenario_names
from narrows.cli.live import NOT_LIVE, LiveOptions
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.campaign.plan import Plan
    from narrows.campaign.run import Finished
    from narrows.hosts.remote_host import RemoteOptions
    from narrows.scenario import Loaded, Override

#: Initial memory of an agent, with a margin.
_LEAST_MEMORY = 20_000_000
#: Campaigns with more runs get a report only on request, by `narrows report`.
MOST_REPORTED = 2_000


@command(example="narrows run first-look --where simulate -o look")
def run(
    scenario: Annotated[
        str | None,
        argument(
            help="A scenario file, the name of a shipped one (narrows scenarios), - for standard input, or a"
            " single cell as JSON. Without it, --rate and the like describe the path.",
            complete=scenario_names,
        ),
    ] = None,
    rate: quick.Rate = None,
    delay: quick.Delay = None,
    queue: quick.Queue = None,
    loss: quick.Loss = None,
    trace: quick.Trace = None,
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            help="Folder for the results; if it contains this campaign already, missing runs are completed."
            " [default: results/TIME-NAME-HASH]",
        ),
    ] = None,
    where: quick.Where = None,
    host: Annotated[
        str | None,
        option(
            metavar="USER@HOST",
            help="Run against this host over a real path (as ssh takes it); implies --where hosts.",
        ),
    ] = None,
    schemes: quick.Schemes = None,
    flows: quick.Flows = None,
    bpf: Annotated[
        list[str] | None,
        option(
            "--bpf",
            metavar="FILE",
            help="Test the congestion control in this BPF object file too. Repeatable.",
        ),
    ] = None,
    runs: quick.Runs = None,
    seed: quick.Seed = None,
    time: quick.Time = None,
    changes: quick.Changes = None,
    prepare: Annotated[
        bool,
        option(
            "--prepare",
            help="Raise the limits of socket buffers at both ends of a real path during the runs.",
        ),
    ] = False,
    agent: Annotated[
        Path | None,
        option(metavar="FILE", help="A narrows-agent built for the other host's architecture."),
    ] = None,
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    resume: Annotated[
        bool, option("--resume", help="Complete the newest campaign of this scenario.")
    ] = False,
    memory: Annotated[
        str | None,
        option(
            metavar="SIZE",
            help='Memory that one simulated run may use, such as "2 GB"; a run that needs more fails.'
            " [default: three quarters of the machine's, shared by the runs that are simulated at once]",
        ),
    ] = None,
    emulator_threads: Annotated[
        int | None,
        option(
            metavar="N",
            min=1,
            max=64,
            help="Most threads of the emulator: a direction of a path, and any part of a network that shares"
            " no link with others, can have its own. [default: half of the processors]",
        ),
    ] = None,
    dry_run: Annotated[bool, option("--dry-run", help="Print the plan and run nothing.")] = False,
    report: Annotated[Parts, option("--report", help="The report: a page, a PDF, both or none.")] = Parts.ALL,
    no_report: Annotated[bool, option("--no-report", help="Short for --report none.")] = False,
    metrics: Metrics = None,
    as_json: Annotated[
        bool, option("--json", help="Print results.json (or the plan) on standard output.")
    ] = False,
    events: Annotated[
        bool,
        option("--events", help="Print what happens as lines of JSON, for other programs."),
    ] = False,
    live: LiveOptions = NOT_LIVE,
) -> None:
    """Run a scenario and report on it.

    A path in a few words needs no file; the scenario that the options describe is printed, and narrows init
    writes it into a file:

    \b
    narrows run --rate "12 Mbit/s" --delay "20 ms" --schemes cubic,bbr1

    Exit codes: 0 done, 1 failure, 2 usage, 3 bad scenario or data, 4 not possible on this machine (narrows
    doctor explains), 5 an expectation fails, 6 some cells failed or are invalid, 130/143 interrupted with all
    finished cells kept.
    """
    from narrows.campaign import lone_cell
    from narrows.campaign.planes import Means
    from narrows.errors import IsSweep, UsageError
    from narrows.scenario.overrides import Override
    from narrows.scenario.quick import QuickPath

    if events and (as_json or dry_run):
        raise UsageError("--events follows a running campaign; leave out --json and --dry-run")
    live.check(as_json=as_json, dry_run=dry_run)
    if scenario is not None and lone_cell.is_cell(scenario):
        _run_lone_cell(Path(scenario), output)
        return
    read_metrics(metrics)
    if (
        host is not None
        and where is None
        and not any(change.startswith("where=") for change in changes or [])
    ):
        where = "hosts"  # Otherwise a run against a server would be simulated without a word.
    changed = quick.Changed(where, schemes, flows, runs, seed, time, changes or [])
    more = [*(Override.from_object(file) for file in bpf or []), *_real_path(host, prepare)]
    try:
        loaded = quick.load_scenario(scenario, QuickPath(rate, delay, queue, loss, trace), changed, more)
    except IsSweep:
        from narrows.cli.sweep import run_sweep

        if scenario is None or more or events or live != NOT_LIVE:
            raise UsageError(
                "a sweep is run by narrows sweep run, without --bpf, --host, --events and --live"
            ) from None
        run_sweep(scenario, changed, output, memory=memory, dry_run=dry_run, as_json=as_json)
        return
    quiet = as_json or events
    if scenario is None and not quiet:
        print(loaded.text)
    reach = remote_options(ssh, remote_folder, agent)
    if dry_run:
        _print_plan(loaded, as_json, reach)
        return
    if no_report:
        report = Parts.NONE
    elif report is Parts.ALL and not loaded.scenario.report.pdf:
        report = Parts.HTML
    means = Means(_memory(memory), emulator_threads)
    start = partial(_run, loaded, output, resume=resume, quiet=quiet, reach=reach, means=means)
    with live.showing(loaded) as showing:
        start = partial(start, showing=showing)
        finished = _with_events(start, report) if events else start()
    if not events:
        _print_results(finished, as_json)
        if report is not Parts.NONE and _is_reported(finished):
            _report(finished.folder.path, report, quiet=as_json)
        _print_failures(finished)
    if finished.exit_code:
        raise Exit(finished.exit_code)


def _run_lone_cell(path: Path, output: Path | None) -> None:
    """Simulates a cell and prints its facts; options of scenarios have no meaning for it."""
    from narrows.campaign.lone_cell import run_cell
    from narrows.cli.show import show_cell
    from narrows.console import stdout_console
    from narrows.errors import UsageError

    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is ParameterSource.COMMANDLINE and parameter.name not in ("scenario", "output"):
            raise UsageError(
                f"{path} is a single cell, so that {parameter.opts[0]} has no meaning; use -o alone"
            )
    folder = run_cell(path, output)
    show_cell(stdout_console(), folder, False)
    print(f"record: {folder}")


def _run(loaded: Loaded, output: Path | None, **options: Any) -> Finished:
    from narrows.campaign.run import run_campaign
    from narrows.console import stderr_console

    return run_campaign(loaded, output, argv=["narrows", *sys.argv[1:]], console=stderr_console(), **options)


def _with_events(start: Callable[..., Finished], report: Parts) -> Finished:
    """Runs and reports, with only events on standard output."""
    from collections import Counter

    from narrows.campaign.events import teller
    from narrows.cli.report import build_report
    from narrows.errors import NarrowsError

    tell = teller(sys.stdout)
    try:
        finished = start(tell=tell)
        if report is not Parts.NONE and _is_reported(finished):
            tell("report", files=list(map(str, build_report(finished.folder.path, report))))
    except NarrowsError as error:
        tell("error", message=str(error), exit_code=error.exit_code)
        raise
    words = Counter(cell.verdict or cell.state for cell in finished.folder.cells)
    tell(
        "done",
        path=str(finished.folder.path),
        exit_code=finished.exit_code,
        verdicts=dict(words),
        expectations_failed=len(finished.failed),
    )
    return finished


def _print_results(finished: Finished, as_json: bool) -> None:
    from narrows.analysis.attempts import print_attempts, to_document
    from narrows.analysis.tables import print_summary
    from narrows.cli.common import print_expectations, print_json
    from narrows.console import stdout_console

    cells = finished.folder.cells
    if as_json:
        print_json(to_document(finished.results, cells))
        return
    pair = (finished.folder.path, finished.results)
    print_summary(stdout_console(), [pair])
    print_attempts(stdout_console(), [(*pair, cells)])
    print_expectations(stdout_console(), finished.results)


def _print_failures(finished: Finished) -> None:
    """Prints unusable cells and failed expectations on standard error."""
    from narrows.console import say

    cells = finished.folder.cells
    bad = sum(not cell.is_usable for cell in cells)
    if bad:
        path = finished.folder.path
        say(f"{bad} of {len(cells)} cells failed or are invalid; narrows show {path} tells why")
    if finished.failed:
        say(f"{len(finished.failed)} of {len(finished.results.expect)} expectations fail")


def _real_path(host: str | None, prepare: bool) -> list[Override]:
    from narrows.scenario.overrides import Override
    from narrows.scenario.real_path import KEY, quote_host

    overrides = [Override("--host", f"{KEY}.other", quote_host(host))] if host is not None else []
    return overrides + ([Override("--prepare", f"{KEY}.prepare", "true")] if prepare else [])


def _memory(text: str | None) -> int | None:
    """The option --memory in bytes."""
    from narrows.errors import UsageError

    if text is None:
        return None
    most = positive(text, "bytes", "--memory")
    if most < _LEAST_MEMORY:
        raise UsageError("--memory: no run takes less than 20 MB; give more, or leave it out")
    return most


def _is_reported(finished: Finished) -> bool:
    """False, with a sentence, for a campaign with too many runs for a default report."""
    from narrows.console import say

    runs = len(finished.folder.cells)
    if runs <= MOST_REPORTED:
        return True
    say(
        f"no report is written of {runs} runs, which would take long and make a very large page;"
        f" narrows report {finished.folder.path} writes it all the same"
    )
    return False


def _report(path: Path, parts: Parts, *, quiet: bool) -> None:
    from narrows.cli.report import build_report
    from narrows.console import stderr_console

    console = stderr_console()
    if not quiet:
        console.print("writing the report")
    for file in build_report(path, parts):
        if not quiet:
            print(f"report: {file}")


def _print_plan(loaded: Loaded, as_json: bool, reach: RemoteOptions) -> None:
    from narrows.agent.location import this_machine
    from narrows.campaign import signals
    from narrows.campaign.run import plan_campaign
    from narrows.cli.common import print_json
    from narrows.console import say, stdout_console

    interrupted = signals.interruptible("interrupted; nothing was run")
    with interrupted, plan_campaign(loaded, this_machine(), reach, say) as result:
        plan = result.plan
        joined = result.remote.describe(result.rendezvous) if result.remote is not None else None
        way = result.remote.document()["way"] if result.remote is not None else None
    if as_json:
        print_json(
            {
                "format": "narrows/plan/1",
                "scenario": loaded.scenario.to_json(),
                "hash": loaded.scenario.hash,
                "cells": [
                    {"id": cell.id, "scheme": cell.scheme, "run": cell.run, "seed": cell.seed}
                    for cell in plan.cells
                ],
                "skipped": [{"scheme": item.scheme, "reason": item.reason} for item in plan.skipped],
                "bounds": [
                    {"scheme": scheme, "flow": flow, "by": by}
                    for scheme, flows in plan.bounds.items()
                    for flow, by in flows
                ],
                "notes": plan.notes,
                "warnings": [*map(str, loaded.scenario.warnings), *plan.memory],
                **({"way": way} if way is not None else {}),
            }
        )
        return
    console = stdout_console()
    for line in _plan_lines(plan, joined):
        console.print(line, soft_wrap=True)


def _plan_lines(plan: Plan, joined: str | None) -> list[str]:
    from narrows.analysis.prose import network_in_words
    from narrows.campaign.plan import bounds_in_words
    from narrows.campaign.run import OVERHEAD_S
    from narrows.progress import show_time

    scenario = plan.scenario
    asked = f": {scenario.question}" if scenario.question else ""
    lines = [f"{scenario.name}{asked}", *network_in_words(scenario)]
    if joined is not None:
        lines += [f"  {joined}", "  what the scenario says of a path is for other planes, and not applied"]
    lines += [f"  {words}" for words in bounds_in_words(plan)]
    lines.append("")
    width = max(len(cell.scheme) for cell in plan.cells)
    for number, cell in enumerate(plan.cells, 1):
        lines.append(
            f"  {number:3}. {cell.scheme:{width}}  run {cell.run}  seed {cell.seed}  -> cells/{cell.id}"
        )
        if cell.drawn:
            lines.append(f"       {', '.join(f'{name} {value}' for name, value in cell.drawn.items())}")
    for item in plan.skipped:
        lines.append(f"  skipped {item.scheme}: {item.reason}")
    overhead = OVERHEAD_S.get(scenario.where)
    if overhead is not None:
        seconds = len(plan.cells) * (scenario.duration_ns / 1e9 + overhead)
        lines += [
            "",
            f"{len(plan.cells)} cells in real time, one after the other: about {show_time(seconds)}",
        ]
    else:
        lines += ["", f"{len(plan.cells)} cells, simulated"]
    lines += [f"note: {note}" for note in plan.notes]
    return lines + [f"warning: {warning}" for warning in [*scenario.warnings, *plan.memory]]


__all__: list[Any] = []
