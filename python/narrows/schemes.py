"""The schemes that can be named in scenarios, and what is missing to run them on this machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from narrows.campaign import agent as agents
from narrows.campaign.plan import why_not
from narrows.errors import UnavailableError
from narrows.scenario import registry
from narrows.scenario.schemes import KERNEL_PREFIX


@dataclass(frozen=True)
class SchemeInfo:
    """One scheme as `narrows schemes` lists it."""

    name: str
    planes: tuple[str, ...]
    status: str
    summary: str
    source: str
    missing: str | None

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "planes": list(self.planes)}


def list_schemes() -> list[SchemeInfo]:
    """Ours, then the kernel's that this machine offers."""
    facts, trouble = _facts()
    emulation = _emulation_trouble(facts, trouble)
    found = [
        SchemeInfo(
            entry.name,
            ("simulate",) if emulation else ("simulate", "emulate"),
            entry.status or "unverified",
            entry.summary,
            entry.source,
            f"emulation is not possible here: {emulation}" if emulation else None,
        )
        for entry in registry.load().schemes.values()
    ]
    release = facts.get("kernel", "unknown")
    for name in facts.get("congestion_controls") or ():
        label = KERNEL_PREFIX + name
        missing = why_not(label, "emulate", facts) or (
            emulation and f"emulation is not possible here: {emulation}"
        )
        found.append(
            SchemeInfo(
                label,
                () if missing else ("emulate",),
                "reference",
                f"{name} of the running kernel",
                f"Linux {release}",
                missing or None,
            )
        )
    return found


def _facts() -> tuple[dict[str, Any], str | None]:
    try:
        return agents.ask(agents.find_agent(), "doctor"), None
    except UnavailableError as error:
        return {}, str(error)


def _emulation_trouble(facts: dict[str, Any], trouble: str | None) -> str | None:
    if trouble:
        return trouble
    for key in ("namespaces", "packet_socket"):
        fact = facts.get(key) or {}
        if fact.get("ok") is False:
            return f"{fact.get('why') or key + ' are not permitted'}; narrows doctor tells more"
    return None
