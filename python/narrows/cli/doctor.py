"""`narrows doctor`."""

from __future__ import annotations

from typing import Any

import typer

from narrows.cli.app import command
from narrows.cli.common import Json


@command(example="narrows doctor")
def doctor(
    as_json: Json = False,
) -> None:
    """Find out what this machine can do.

    What it can't do comes with what to do about it.

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
    if as_json:
        print_json({"format": "narrows/doctor/1", "ok": ok, "checks": checks, "facts": facts})
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
    if not ok:
        raise typer.Exit(EXIT_CANNOT_HERE)
