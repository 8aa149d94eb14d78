"""Why a scheme cannot run on a plane of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX

if TYPE_CHECKING:
    from narrows.documents.agent import Facts


def why_not(scheme: str, where: str, facts: Facts) -> str | None:
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
    if name in facts.congestion_controls:
        return None
    listed = ", ".join(facts.congestion_controls) or "none"
    return (
        f"this kernel ({facts.kernel or 'unknown'}) does not offer {name}; it offers {listed}"
        f" (if there is a module: modprobe tcp_{name})"
    )


def no_rights(facts: Facts) -> str | None:
    """Why no BPF program can be loaded on this machine; None if they can."""
    return None if facts.bpf is None or facts.bpf.ok else str(facts.bpf.why)
