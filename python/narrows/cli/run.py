"""`narrows run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrows.cli.app import command
from narrows.cli.common import REMOTE_FOLDER, SSH, Metrics, positive, read_metrics
from narrows.cli.report import Parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from narrows.campaign.plan import Plan
    from narrows.hosts.remote_host import RemoteOptions
    from narrows.scenario import Loaded, Override

#: Memory of an agent before it does anything, and some more.
_LEAST_MEMORY = 20_000_000


@command(example="narrows run first-look --where simulate -o look")
def run(
    scenario: Annotated[
        str, typer.Argument(help="A scenario file, or the name of a shipped one (narrows scenarios).")
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="Folder for the results; if it holds this campaign already, what is missing is run."
            " [default: results/TIME-NAME-HASH]",
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(help="simulate, emulate or hosts, instead of what the scenario says.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(metavar="USER@HOST", help="The other host of runs over a real path, as ssh takes it."),
    ] = None,
    schemes: Annotated[
        str | None, typer.Option(help="Schemes, separated by commas, instead of the scenario's.")
    ] = None,
    bpf: Annotated[
        list[str] | None,
        typer.Option(
            "--bpf",
            metavar="FILE",
            help="Test the congestion control in this BPF object file too. Repeatable.",
        ),
    ] = None,
    runs: Annotated[str | None, typer.Option(help="Number of runs of each scheme.", metavar="N")] = None,
    seed: Annotated[str | None, typer.Option(help="Seed of everything random.", metavar="N")] = None,
    time: Annotated[
        str | None, typer.Option(help='Duration of a run, such as "10 s".', metavar="TIME")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help='Change any key: --set path.forward.0.rate="5 Mbit/s". Repeatable.',
        ),
    ] = None,
    prepare: Annotated[
        bool,
        typer.Option(
            "--prepare",
            help="Raise the limits of socket buffers at both ends of a real path during the runs.",
        ),
    ] = False,
    agent: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A narrows-agent built for the other host's architecture."),
    ] = None,
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    resume: Annotated[
        bool, typer.Option("--resume", help="Complete the newest campaign of this scenario.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help='Memory that one simulated run may use, such as "2 GB"; a run that needs more fails.'
            " [default: three quarters of the machine's, shared by the runs that are simulated at once]",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    report: Annotated[
        Parts, typer.Option("--report", help="The report: a page, a PDF, both or none.")
    ] = Parts.ALL,
    no_report: Annotated[bool, typer.Option("--no-report", help="Short for --report none.")] = False,
    metrics: Metrics = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print results.json (or the plan) on standard output.")
    ] = False,
) -> None:
    """Run a scenario and report on it.

    Exit codes: 0 done, 1 failure, 2 usage, 3 bad scenario or data, 4 this machine can't (narrows doctor
    explains), 5 an expectation fails, 6 some cells failed or are invalid, 130/143 interrupted with
    everything finished kept.
    """
    from narrows.scenario import load

    read_metrics(metrics)
    several = _overrides(where, schemes, runs, seed, time, changes or [], bpf or [])
    loaded = load(scenario, several + _real_path(host, prepare))
    reach = _reach(ssh, remote_folder, agent)
    if dry_run:
        _print_plan(loaded, as_json, reach)
        return
    from narrows.campaign.run import run_campaign
    from narrows.cli.common import print_json
    from narrows.console import stderr_console, stdout_console

    console = stderr_console()
    finished = run_campaign(
        loaded,
        output,
        resume=resume,
        argv=["narrows", *sys.argv[1:]],
        console=console,
        quiet=as_json,
        reach=reach,
        memory=_memory(memory),
    )
    cells = finished.folder.cells
    if as_json:
        from narrows.analysis.attempts import with_failed

        print_json(with_failed(finished.results, cells))
    else:
        from narrows.analysis.attempts import print_attempts
        from narrows.analysis.tables import print_summary
        from narrows.cli.common import print_expectations

        found = (finished.folder.path, finished.results)
        print_summary(stdout_console(), [found])
        print_attempts(stdout_console(), [(*found, cells)])
        print_expectations(stdout_console(), finished.results)
    if report is Parts.ALL and not loaded.scenario.report.get("pdf", True):
        report = Parts.HTML
    if report is not Parts.NONE and not no_report:
        _report(finished.folder.path, report, quiet=as_json)
    bad = sum(cell["state"] != "finished" or cell["verdict"] == "invalid" for cell in cells)
    if bad:
        console.print(
            f"{bad} of {len(cells)} cells failed or are invalid; narrows show"
            f" {finished.folder.path} tells why",
            soft_wrap=True,
        )
    if finished.failed:
        all_of = len(finished.results["expect"])
        console.print(f"{len(finished.failed)} of {all_of} expectations fail", soft_wrap=True)
    if finished.exit_code:
        raise typer.Exit(finished.exit_code)


def _overrides(
    where: str | None,
    schemes: str | None,
    runs: str | None,
    seed: str | None,
    time: str | None,
    changes: list[str],
    objects: Sequence[str] = (),
) -> list[Override]:
    from narrows.scenario.overrides import Override, split_list

    overrides = [Override.from_set(change) for change in changes]
    for option, path, value in (
        ("--where", "where", where),
        ("--runs", "runs", runs),
        ("--seed", "seed", seed),
        ("--time", "duration", time),
    ):
        if value is not None:
            overrides.append(Override(option, path, value))
    if schemes is not None:
        overrides.append(Override("--schemes", "schemes", split_list(schemes)))
    return overrides + [Override.from_object(file) for file in objects]


def _real_path(host: str | None, prepare: bool) -> list[Override]:
    from narrows.scenario.overrides import Override
    from narrows.scenario.real_path import KEY, named_host

    overrides = [Override("--host", f"{KEY}.other", named_host(host))] if host is not None else []
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


def _reach(ssh: str, folder: str | None, agent: Path | None) -> RemoteOptions:
    import shlex

    from narrows.hosts.deploy import named_folder
    from narrows.hosts.remote_host import RemoteOptions

    return RemoteOptions(tuple(shlex.split(ssh)), named_folder(folder), agent)


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
    from narrows.campaign.run import planned
    from narrows.cli.common import print_json
    from narrows.console import say, stdout_console

    interrupted = signals.interruptible("interrupted; nothing was run")
    with interrupted, planned(loaded, this_machine(), reach, say) as found:
        plan = found.plan
        joined = found.remote.describe(found.rendezvous) if found.remote is not None else None
        way = found.remote.document()["way"] if found.remote is not None else None
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
                "skipped": [{"scheme": one.scheme, "reason": one.reason} for one in plan.skipped],
                "bounds": [
                    {"scheme": scheme, "flow": flow, "by": by}
                    for scheme, flows in plan.bounds.items()
                    for flow, by in flows
                ],
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
    from narrows.campaign.progress import show_time
    from narrows.campaign.run import OVERHEAD_S

    scenario = plan.scenario
    lines = [f"{scenario.name}: {scenario.question}", *network_in_words(scenario)]
    if joined is not None:
        lines += [f"  {joined}", "  what the scenario says of a path is for other planes, and not applied"]
    lines += [f"  {words}" for words in bounds_in_words(plan)]
    lines.append("")
    width = max(len(cell.scheme) for cell in plan.cells)
    for number, cell in enumerate(plan.cells, 1):
        lines.append(
            f"  {number:3}. {cell.scheme:{width}}  run {cell.run}  seed {cell.seed}  -> cells/{cell.id}"
        )
        if drawn := cell.content.get("drawn"):
            lines.append(f"       {', '.join(f'{name} {value}' for name, value in drawn.items())}")
    for one in plan.skipped:
        lines.append(f"  skipped {one.scheme}: {one.reason}")
    overhead = OVERHEAD_S.get(scenario.where)
    if overhead is not None:
        seconds = len(plan.cells) * (scenario.duration_ns / 1e9 + overhead)
        lines += [
            "",
            f"{len(plan.cells)} cells in real time, one after the other: about {show_time(seconds)}",
        ]
    else:
        lines += ["", f"{len(plan.cells)} cells, simulated"]
    return lines


__all__: list[Any] = []
