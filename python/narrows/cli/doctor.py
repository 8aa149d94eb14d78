"""`narrows doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import option

if TYPE_CHECKING:
    from narrows.agent.location import Location
    from narrows.documents.agent import MachineFacts
    from narrows.documents.doctor import Capacity


@command(example="narrows doctor")
def doctor(
    measure: Annotated[
        bool,
        option("--measure", help="Also measure for ten seconds up to which rate emulated runs are ok here."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Find out what this machine can do.

    Missing abilities come with a remedy. --measure emulates kernel TCP at rising rates, a second each, and
    judges as every run is judged; stop other programs first, because they count.

    Exit codes: 0 everything works, 4 something is not possible here.
    """
    from narrows.agent.location import this_machine
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.documents.agent import MachineCheck, MachineFacts
    from narrows.documents.data import to_data
    from narrows.documents.doctor import FORMAT, Doctor
    from narrows.errors import EXIT_CANNOT_HERE, UnavailableError
    from narrows.scenario import registry

    checks: list[MachineCheck] = []

    def note(name: str, ok: bool, detail: str, remedy: str | None = None) -> None:
        checks.append(MachineCheck(name=name, ok=ok, detail=detail, remedy=remedy))

    facts = MachineFacts()
    agent: Location | None = None
    try:
        schemes = registry.load().schemes
        note("extension module", True, f"our schemes: {', '.join(schemes)}")
    except UnavailableError as error:
        note("extension module", False, str(error), "make build")
    try:
        agent = this_machine()
        version = agent.version()
        note("agent", True, f"{agent.prefix[-1]}, version {version.narrows}")
        facts = agent.doctor()
        checks += facts.checks
    except UnavailableError as error:
        note("agent", False, str(error), "make build")
    ok = all(check.ok for check in checks)
    measured = _measure(agent, facts, quiet=as_json) if measure else None
    if as_json:
        print_json(to_data(Doctor(format=FORMAT, ok=ok, checks=checks, facts=facts, measured=measured)))
    else:
        from rich.text import Text

        console = stdout_console()
        if facts != MachineFacts():
            console.print(
                f"{facts.cpus} x {facts.cpu_model}, {(facts.memory_bytes or 0) / 2**30:.0f} GiB, Linux"
                f" {facts.kernel}, clock {facts.clocksource}",
                soft_wrap=True,
            )
            console.print(f"kernel's schemes: {', '.join(facts.congestion_controls) or 'none'}")
        for check in checks:
            word, style = ("no", "red") if not check.ok else ("ok", "green")
            if check.ok and check.warning:
                word, style = "but", "yellow"
            console.print(Text(f"{word:<5}", style=style) + f"{check.name}: {check.detail}", soft_wrap=True)
            if check.remedy:
                console.print(f"     -> {check.remedy}", soft_wrap=True)
        if measured:
            _print_measured(measured)
    if not ok:
        raise Exit(EXIT_CANNOT_HERE)


def _measure(agent: Location | None, facts: MachineFacts, *, quiet: bool) -> Capacity:
    """The rate that the machine carries; on a terminal the rate under test is shown."""
    from narrows.capacity import measure
    from narrows.progress import progress

    cannot = None
    if agent is not None and facts.namespaces is not None and not facts.namespaces.ok:
        cannot = f"network namespaces can't be made ({facts.namespaces.obstacle})"
    with progress("measuring", quiet=quiet) as bar:
        return measure(agent, cannot, lambda note: bar.update(note=note))


def _print_measured(measured: Capacity) -> None:
    from narrows.capacity import STOLEN
    from narrows.console import Listing, stdout_console

    console = stdout_console()
    console.print()
    simulator = measured.simulator.packets_per_s
    console.print(f"simulator: {simulator / 1e6:.2f} million packets per second on one processor")
    if runs := measured.runs:
        late = [f"late {word}" for word in ("p50", "p99", "p99.9")]
        shown = Listing(
            "rate", "delivered", "packets/s", *late, "verdict", right=["rate", "delivered", *late]
        )
        for run in sorted(runs, key=lambda run: run.rate_bps):
            shown.add_row(
                f"{run.rate_bps / 1e6:g} Mbit/s",
                f"{run.delivered_bps / 1e6:.0f} Mbit/s",
                str(run.packets),
                *(f"{ns / 1e3:.0f} us" for ns in (run.late_p50_ns, run.late_p99_ns, run.late_p999_ns)),
                run.verdict,
            )
        console.print(shown)
        for run in runs:
            if run.reasons:
                console.print(f"{run.rate_bps / 1e6:g} Mbit/s: {run.reasons[0]}", soft_wrap=True)
        stolen = max(run.stolen_ratio or 0.0 for run in runs)
        if stolen > STOLEN:
            console.print(f"the hypervisor took {stolen:.0%} of the processors meanwhile")
    console.print(measured.advice, soft_wrap=True)
