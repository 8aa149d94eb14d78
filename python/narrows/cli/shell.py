"""`narrows shell`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from narrows.cli import quick
from narrows.cli.app import command
from narrows.cli.completion import scenario_names
from narrows.cli.parameters import argument, option


@command(
    example='narrows shell --rate "12 Mbit/s" --delay "20 ms" --queue "droptail 60 kB" -- iperf3 -c HOST',
    # Arguments after the program's name belong to the program.
    context_settings={"allow_interspersed_args": False},
)
def shell(
    program: Annotated[
        list[str] | None,
        argument(metavar="[-- COMMAND...]", help="The command to run. [default: your shell]"),
    ] = None,
    rate: quick.Rate = None,
    delay: quick.Delay = None,
    queue: Annotated[
        str | None,
        option(
            metavar="QUEUE",
            help='Queue before the rate, such as "droptail 60 kB", "60 kB" or codel. [default: unlimited]',
        ),
    ] = None,
    loss: quick.Loss = None,
    up: Annotated[
        str | None,
        option(
            metavar="ELEMENTS",
            help='Differences of the way from inside to outside, such as "rate: 1 Mbit/s, loss: 2 %"; or all'
            " of it, as a list of elements as in scenarios.",
        ),
    ] = None,
    down: Annotated[str | None, option(metavar="ELEMENTS", help="The same from outside to inside.")] = None,
    trace_up: Annotated[
        str | None,
        option(metavar="FILE", help="The rate upwards follows this trace (mahimahi's format or ours)."),
    ] = None,
    trace_down: Annotated[str | None, option(metavar="FILE", help="The same downwards.")] = None,
    scenario: Annotated[
        str | None,
        option(
            metavar="SCENARIO",
            help="Take the path (and its timeline) from a scenario; up is forward.",
            complete=scenario_names,
        ),
    ] = None,
    congestion: Annotated[
        str | None,
        option(
            metavar="NAME",
            help="Congestion control of the kernel for what comes from outside. [default: the kernel's]",
        ),
    ] = None,
    seed: Annotated[int, option(metavar="N", min=0, help="Seed of everything random.")] = 1,
    log: Annotated[
        Path | None, option(metavar="DIR", help="Write a record of every packet to this new folder.")
    ] = None,
    summary: Annotated[
        Path | None,
        option("--json", metavar="FILE", help="Write the summary as JSON; - is standard error."),
    ] = None,
    live: Annotated[
        bool, option("--live", help="Show rate, queue and drops while it runs (on a terminal).")
    ] = False,
    live_lines: Annotated[
        bool, option("--live-lines", help="The same as lines of text, wherever standard error goes.")
    ] = False,
    quiet: Annotated[bool, option("--quiet", "-q", help="Print no summary at the end.")] = False,
) -> None:
    """Run any program behind an emulated path.

    It needs no set-up and no root. The program sees one network interface, and all its packets pass the path.
    It reaches the machine outside as outside.narrows ($NARROWS_OUTSIDE), services on its loopback included,
    and other machines by their addresses. Shells nest: their paths follow one another.

    \b
    narrows shell --delay "50 ms"                                a shell with 100 ms more round-trip time
    narrows shell --rate "12 Mbit/s" --queue "droptail 1 bdp" --delay "20 ms" -- curl http://outside.narrows:8000/
    narrows shell --rate "50 Mbit/s" --up "rate: 5 Mbit/s" --delay "15 ms" -- chromium --headless URL
    narrows shell --trace-down lte.trace --queue "codel" --delay "20 ms" --live
    narrows shell --up "[{rate: 2 Mbit/s, queue: {red: 100 kB}}, {jitter: 5 ms}]" --down "[{delay: 10 ms}]"

    Exit codes: those of the program, 128 plus the number of its signal; before it runs 2 usage, 3 bad
    quantities or data, 4 not possible on this machine.
    """
    # All words are options; there is no program.
    options = {name: value for name, value in locals().items() if name != "program"}
    from narrows.agent.location import find_agent
    from narrows.shell import ShellOptions, run

    run(find_agent(), ShellOptions(**options), program or [])
