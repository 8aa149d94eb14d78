"""Why a scheme cannot run on a plane of a machine."""

from __future__ import annotations

from typing import Any

from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX


def why_not(scheme: str, where: str, facts: dict[str, Any]) -> str | None:
    """Why a scheme can't run on a plane of this machine; None if it can."""
    if scheme.startswith(BPF_PREFIX):
        if where == "simulate":
            return "it runs inside a kernel, and there is none in simulation; use --where emulate"
        return no_rights(facts)
    if not scheme.startswith(KERNEL_PREFIX):
        return None
    if where == "simulate":
        return "it is the kernel's code and needs a real kernel; use --where emulate"
    name = scheme.removeprefix(KERNEL_PREFIX)
    offered = facts.get("congestion_controls") or []
    if name in offered:
        return None
    listed = ", ".join(offered) or "none"
    return (
        f"this kernel ({facts.get('kernel', 'unknown')}) does not offer {name}; it offers {listed}"
        f" (if there is a module: modprobe tcp_{name})"
    )


def no_rights(facts: dict[str, Any]) -> str | None:
    """Why no BPF program can be loaded on this machine; None if they can."""
    loading = facts.get("bpf") or {}
    return None if loading.get("ok", True) else str(loading.get("why"))
