"""`narrows doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.parameters import option

if TYPE_CHECKING:
    from narrows.agent.location import Location


@command(example="narrows doctor")
def doctor(
    measure: Annotated[
        bool,
        option("--measure", help="Also measure for ten seconds up to which rate emulated runs are ok here."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Find out what this machine can do.

    Missing abilities come with a remedy. --measure emulates kernel TCP at rising rates, a second
    each, and judges as every run is judged; stop other programs first, because they count.

    Exit codes: 0 everything works, 4 something can't be done here.
    """
    from narrows.agent.location import this_machine
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.errors import EXIT_CANNOT_HERE, UnavailableError
    from narrows.scenario import registry

    checks: list[dict[str, Any]] = []

    def note(name: str, ok: bool, detail: str, remedy: str | None = None) -> None:
        checks.append({"name": name, "ok": ok, "detail": detail, "remedy": remedy})

    facts: dict[str, Any] = {}
    agent: Location | None = None
    try:
        schemes = registry.load().schemes
        note("extension module", True, f"our schemes: {', '.join(schemes)}")
    except UnavailableError as error:
        note("extension module", False, str(error), "make build")
    try:
        agent = this_machine()
        version = agent.version()
        note("agent", True, f"{agent.prefix[-1]}, version {version['narrows']}")
        facts = agent.doctor()
        checks += facts.get("checks") or []
    except UnavailableError as error:
        note("agent", False, str(error), "make build")
    ok = all(check["ok"] for check in checks)
    measured = _measure(agent, facts, quiet=as_json) if measure else None
    if as_json:
        more = {"measured": measured} if measured else {}
        print_json({"format": "narrows/doctor/1", "ok": ok, "checks": checks, "facts": facts, **more})
    else:
        from rich.text import Text

        console = stdout_console()
        if facts:
            memory = (facts.get("memory_bytes") or 0) / 2**30
            console.print(
                f"{facts.get('cpus')} x {facts.get('cpu_model')}, {memory:.0f} GiB, Linux"
                f" {facts.get('kernel')},"
                f" clock {facts.get('clocksource')}",
                soft_wrap=True,
            )
            console.print(
                f"kernel's schemes: {', '.join(facts.get('congestion_controls') or []) or 'none'}",
            )
        for check in checks:
            word, style = ("no", "red") if not check["ok"] else ("ok", "green")
            if check["ok"] and check.get("warning"):
                word, style = "but", "yellow"
            console.print(
                Text(f"{word:<5}", style=style) + f"{check['name']}: {check['detail']}", soft_wrap=True
            )
            if check.get("remedy"):
                console.print(f"     -> {check['remedy']}", soft_wrap=True)
        if measured:
            _print_measured(measured)
    if not ok:
        raise Exit(EXIT_CANNOT_HERE)


def _measure(agent: Location | None, facts: dict[str, Any], *, quiet: bool) -> dict[str, Any]:
    """The rate that the machine carries; on a terminal the rate under test is shown."""
    from narrows.capacity import measure
    from narrows.progress import progress

    namespaces = facts.get("namespaces") or {}
    cannot = None
    if agent is not None and namespaces.get("ok") is False:
        why = str(namespaces.get("why") or "not permitted").rstrip(".")
        cannot = f"network namespaces can't be made ({why})"
    with progress("measuring", quiet=quiet) as bar:
        return measure(agent, cannot, lambda note: bar.update(note=note))


def _print_measured(measured: dict[str, Any]) -> None:
    from narrows.capacity import STOLEN
    from narrows.console import stdout_console, table

    console = stdout_console()
    console.print()
    simulator = measured["simulator"]["packets_per_s"]
    console.print(f"simulator: {simulator / 1e6:.2f} million packets per second on one processor")
    if runs := measured["runs"]:
        late = [f"late {word}" for word in ("p50", "p99", "p99.9")]
        shown = table("rate", "delivered", "packets/s", *late, "verdict", right=["rate", "delivered", *late])
        for item in sorted(runs, key=lambda run: run["rate_bps"]):
            shown.add_row(
                f"{item['rate_bps'] / 1e6:g} Mbit/s",
                f"{item['delivered_bps'] / 1e6:.0f} Mbit/s",
                str(item["packets"]),
                *(f"{item[name] / 1e3:.0f} us" for name in ("late_p50_ns", "late_p99_ns", "late_p999_ns")),
                item["verdict"],
            )
        console.print(shown)
        for entry in runs:
            if entry["reasons"]:
                console.print(f"{entry['rate_bps'] / 1e6:g} Mbit/s: {entry['reasons'][0]}", soft_wrap=True)
        stolen = max(item["stolen_ratio"] or 0.0 for item in runs)
        if stolen > STOLEN:
            console.print(f"the hypervisor took {stolen:.0%} of the processors meanwhile")
    console.print(measured["advice"], soft_wrap=True)
