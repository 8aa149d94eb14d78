"""`narrows hunt`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json, budget_of, positive
from narrows.cli.completion import scheme_names
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.hunt.hunting import Hunt, Watch
    from narrows.hunt.minimise import Minimal
    from narrows.hunt.objectives import Objective
    from narrows.hunt.search import Budget, Search
    from narrows.progress import Bar


@command(example="narrows hunt bbr1 --worst loss")
def hunt(
    scheme: Annotated[
        str | None,
        argument(help="The native scheme to hunt for.", complete=scheme_names),
    ] = None,
    worst: Annotated[
        str,
        option(
            "--worst",
            metavar="WHAT",
            help="utilization, loss, delay; beside a competitor: share (the scheme starves), rival (the"
            " competitor does). --list says more.",
        ),
    ] = "utilization",
    against: Annotated[
        str | None,
        option(
            metavar="SCHEME",
            help="The competitor on the same path (share, rival); else a scheme that is alone on the same"
            " path, and the difference counts.",
            complete=scheme_names,
        ),
    ] = None,
    goal: Annotated[
        str | None,
        option(metavar="VALUE", help='Stop when it is reached: "20 %", "200 ms"; exit code 5 if not.'),
    ] = None,
    budget: Annotated[
        str,
        option(metavar="N|TIME", help="Evaluations (the same result every time) or a time such as '5 min'."),
    ] = "2000",
    bounds: Annotated[
        list[str] | None,
        option(
            "--bound",
            metavar="NAME=LOW..HIGH",
            help="Search other values: rate='1..10 Mbit/s', queue='1 bdp', outage=none. Repeatable; --list"
            " names them.",
        ),
    ] = None,
    time: Annotated[str, option("-t", "--time", metavar="TIME", help="Duration of a run.")] = "20 s",
    seed: Annotated[int, option(min=1, help="Seed of the search.")] = 1,
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the hunt; if it contains this hunt already, it resumes."
            " [default: results/hunt-SCHEME-WHAT-HASH]",
        ),
    ] = None,
    replay: Annotated[bool, option("--replay", help="Run the minimal scenario on the emulator too.")] = False,
    replays: Annotated[int, option("--replays", min=1, max=100, help="Runs of the replay.")] = 3,
    on: Annotated[
        str | None,
        option("--on", metavar="ENGINE", help="local:8 or dask:tcp://HOST:8786, as for sweeps."),
    ] = None,
    memory: Annotated[
        str | None,
        option("--memory", metavar="SIZE", help='Memory that one run may use. [default: "2 GB"]'),
    ] = None,
    no_report: Annotated[bool, option("--no-report", help="Write no report.html.")] = False,
    listing: Annotated[
        bool, option("--list", help="Print what can be hunted, and the bounds of the search.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Search for the path on which a scheme performs worst.

    \b
    narrows hunt cubic --worst utilization --goal "10 %"
    narrows hunt vegas --against cubic --worst share --replay
    narrows hunt bbr3 --against bbr1 --worst delay --bound outage=none

    Paths are simulated in memory on all processors, within bounds that exclude conditions that would stop any
    scheme: a little loss, not half of it. The path is then made minimal: elements are left out and values
    rounded while it still holds in several runs. DIR/minimal.yaml runs with narrows run; DIR/hunt.md
    describes the finding, with runs of fresh seeds and of other schemes on the same path. Ctrl-C keeps the
    worst path so far, and the same command resumes.

    Exit codes: 0 done, 2 usage, 3 nothing could be measured, 4 not possible on this machine, 5 the goal was
    not reached, or the finding does not hold in fresh runs or in the replay, 130/143 interrupted.
    """
    from narrows.errors import EXIT_EXPECTATION, UsageError
    from narrows.hunt.objectives import OBJECTIVES
    from narrows.progress import progress
    from narrows.text import any_of, did_you_mean

    if listing:
        _print_list(as_json)
        return
    if scheme is None:
        raise UsageError("name the scheme that is hunted: narrows hunt bbr1 --worst loss")
    if worst not in OBJECTIVES:
        raise UsageError(
            f"--worst {worst}: {did_you_mean(worst, OBJECTIVES)[2:] or 'there is ' + any_of(OBJECTIVES)}"
        )
    made = _hunt(
        scheme, OBJECTIVES[worst], against, goal, budget, bounds or [], time, seed, output, on, memory
    )
    with progress(quiet=as_json, after_s=2.0) as bar:
        made.watch = _watch(bar, made.budget, made.question.objective)
        made.run()
    made.simulate(quiet=True, report=not no_report)
    if not as_json:
        from narrows.blocks.terminal import print_blocks
        from narrows.console import stdout_console
        from narrows.hunt.prose import finding

        print_blocks(stdout_console(), finding(made.document, made.question.objective))
    held = True
    if replay:
        held = made.replay(replays, quiet=as_json)
    if as_json:
        from narrows.cli.common import print_json
        from narrows.documents.data import to_data

        print_json(to_data(made.document) | {"path": str(made.path)})
    else:
        _print_planes(made)
    simulated = made.document.simulated
    if not held or simulated is None or not simulated.holds or made.document.reached is False:
        raise Exit(EXIT_EXPECTATION)


def _hunt(
    scheme: str,
    objective: Objective,
    against: str | None,
    goal: str | None,
    budget: str,
    bounds: list[str],
    time: str,
    seed: int,
    output: Path | None,
    on: str | None,
    memory: str | None,
) -> Hunt:
    from narrows.campaign.run import RESULTS
    from narrows.errors import UsageError
    from narrows.hunt.evaluate import Question
    from narrows.hunt.hunting import Hunt
    from narrows.hunt.search import Budget
    from narrows.hunt.space import make
    from narrows.scenario.quantity import QuantityError
    from narrows.sweep.engines import engine
    from narrows.sweep.work import DEFAULT_MEMORY

    given = dict(_split(text) for text in bounds)
    duration = positive(f"{time} s" if time.strip().isdecimal() else time, "span", "--time")
    if not 10**9 <= duration <= 600 * 10**9:
        raise UsageError(f"--time {time}: runs of a hunt last from 1 s to 10 min")
    wanted = None
    if goal is not None:
        try:
            wanted = objective.read(goal)
        except QuantityError as error:
            raise UsageError(f"--goal: {error}") from None
    question = Question(scheme, objective, against, make(objective.genes, given, duration), seed, wanted)
    question.check()
    spent = Budget(*budget_of(budget, 1, 10_000_000))
    most = positive(memory, "bytes", "--memory") if memory else DEFAULT_MEMORY
    path = output or RESULTS / f"hunt-{scheme}-{objective.name}-{question.hash[:6]}"
    return Hunt(question, path, spent, engine(on), most)


def _split(text: str) -> tuple[str, str]:
    from narrows.errors import UsageError

    name, equals, value = text.partition("=")
    if not (equals and name.strip() and value.strip()):
        raise UsageError(f"--bound {text}: write NAME=LOW..HIGH, NAME=VALUE or NAME=none")
    return name.strip(), value.strip()


def _watch(bar: Bar, budget: Budget, objective: Objective) -> Watch:
    """Shows the progress of the hunt, with the worst value so far."""
    from narrows.hunt.hunting import Watch

    def show_search(search: Search) -> None:
        worst = f", worst {objective.words(search.best.value)}" if search.best else ""
        if budget.evaluations:
            done, total = float(search.evaluations), float(budget.evaluations)
        else:
            done, total = search.seconds, float(budget.seconds or 1)
        bar.show("searching", done, total, f"{search.evaluations} paths{worst}")

    def show_minimal(minimal: Minimal) -> None:
        bar.show("minimising", 0, None, f"{minimal.tried} tried, {len(minimal.removed)} left out")

    return Watch(show_search, show_minimal)


def _print_list(as_json: bool) -> None:
    from narrows.blocks.model import Column, Table
    from narrows.blocks.terminal import print_blocks
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.hunt.objectives import OBJECTIVES
    from narrows.hunt.space import GENES

    if as_json:
        print_json(
            {
                "format": "narrows/hunt-list/1",
                "objectives": [
                    {"name": objective.name, "about": objective.about} for objective in OBJECTIVES.values()
                ],
                "bounds": [
                    {"name": gene.name, "low": gene.low, "high": gene.high, "searched": gene.searched}
                    | {"optional": gene.optional, "about": gene.about}
                    for gene in GENES
                ],
            }
        )
        return
    objectives = [(objective.name, objective.about) for objective in OBJECTIVES.values()]
    genes = [(gene.name, gene.searched, gene.about) for gene in GENES]
    about = Column("", "left", folded=True)
    print_blocks(
        stdout_console(),
        (
            Table.new((Column("--worst", "left", names=True), about), objectives),
            Table.new((Column("--bound", "left", names=True), Column("searched", "left"), about), genes),
        ),
    )


def _print_planes(made: Hunt) -> None:
    from narrows.blocks.terminal import print_blocks
    from narrows.console import stdout_console
    from narrows.hunt.prose import replays

    console = stdout_console()
    console.print()
    print_blocks(console, replays(made.document, made.question.objective))
    console.print()
    console.print(f"scenario: {made.path / 'minimal.yaml'}", soft_wrap=True)
    console.print(f"in words: {made.path / 'hunt.md'}", soft_wrap=True)
    if (made.path / "simulated" / "report.html").is_file():
        console.print(f"report: {made.path / 'simulated' / 'report.html'}", soft_wrap=True)
