"""Options that describe or change a scenario, and the resulting scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from narrows.cli.completion import scheme_lists
from narrows.cli.parameters import option

if TYPE_CHECKING:
    from narrows.scenario import Loaded, Override
    from narrows.scenario.quick import QuickPath

Rate = Annotated[
    str | None,
    option("--rate", metavar="RATE", help='Rate of the bottleneck, such as "12 Mbit/s".'),
]
Delay = Annotated[
    str | None,
    option(
        "--delay", metavar="TIME", help='One-way delay, such as "20 ms"; the round-trip time is twice that.'
    ),
]
Queue = Annotated[
    str | None,
    option(
        "--queue",
        metavar="QUEUE",
        help='Queue before the rate: "1 bdp", "droptail 60 kB", codel. [default: 1 bdp; before a trace'
        " unlimited]",
    ),
]
Loss = Annotated[
    str | None, option("--loss", metavar="SHARE", help="Share of packets lost at random, such as 1%.")
]
Trace = Annotated[
    str | None,
    option("--trace", metavar="FILE", help="The rate follows this trace (mahimahi's format or ours)."),
]
Schemes = Annotated[
    str | None,
    option(
        "--schemes",
        help="Schemes, separated by commas, instead of the scenario's. [default without one: cubic]",
        complete=scheme_lists,
    ),
]
Flows = Annotated[
    str | None, option("--flows", metavar="N", help="Number of flows under test, which share the path.")
]
Runs = Annotated[str | None, option("--runs", metavar="N", help="Number of runs of each scheme.")]
Seed = Annotated[str | None, option("--seed", metavar="N", help="Seed of everything random.")]
Time = Annotated[
    str | None,
    option(
        "-t",
        "--time",
        metavar="TIME",
        help='Duration of a run: 10 (seconds) or "2 min". [default without a scenario: 30 s]',
    ),
]
Where = Annotated[
    str | None,
    option("--where", help="simulate, emulate or hosts, instead of what the scenario says."),
]
Changes = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="KEY=VALUE",
        help='Change any key: --set path.forward.0.rate="5 Mbit/s". Repeatable.',
    ),
]


@dataclass(frozen=True)
class Changed:
    """The options that change a scenario, as they were given."""

    where: str | None
    schemes: str | None
    flows: str | None
    runs: str | None
    seed: str | None
    time: str | None
    changes: list[str]

    def overrides(self) -> list[Override]:
        """The changes, in the order in which they are applied."""
        from narrows.scenario.overrides import Override, split_list

        result = [Override.from_set(change) for change in self.changes]
        # Seconds, as with iperf3.
        time = f"{self.time} s" if self.time and self.time.strip().isdecimal() else self.time
        for name, path, value in (
            ("--where", "where", self.where),
            ("--flows", "flows.count", self.flows),
            ("--runs", "runs", self.runs),
            ("--seed", "seed", self.seed),
            ("--time", "duration", time),
        ):
            if value is not None:
                result.append(Override(name, path, value))
        if self.schemes is not None:
            result.append(Override("--schemes", "schemes", split_list(self.schemes)))
        return result


def load_scenario(scenario: str | None, path: QuickPath, changed: Changed, more: list[Override]) -> Loaded:
    """The named scenario, or the one that the options describe; `more` are further changes."""
    from narrows.scenario.quick import quick_scenario

    changes = changed.overrides() + more
    if scenario is None:
        return quick_scenario(path, changes)
    if path:
        from narrows.errors import UsageError

        option = next(name for name, value in vars(path).items() if value is not None)
        raise UsageError(
            f"--{option} describes a path in the place of a scenario; to change {scenario}, write --set with"
            " the address of the key, such as --set path.forward.0.rate=..."
        )
    from narrows.scenario import load

    return load(scenario, changes)
