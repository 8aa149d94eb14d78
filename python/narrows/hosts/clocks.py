"""Facts of two hosts about their clocks, beside the tunnel's measurement of their offset.

Each host's agent prints which program disciplines its clock (chrony, systemd-timesyncd or another), the error
that the program estimates, and how the kernel's clock relates to the oscillator. Where both clocks
are kept, that says how far apart the oscillators are, by which the tunnel's answer can be checked.
"""

from __future__ import annotations

from typing import Any


def by_ntp(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, int] | None:
    """The relation of the oscillators of two hosts if the programs that keep their clocks are right: the
    other one's reading less ours, the most that this is wrong by, and how much faster the other one runs.

    None unless both clocks are kept.
    """
    keys = ("real_ns", "raw_ns", "bound_ns", "correction_ppb")
    if any(clock.get(key) is None for clock in (ours, theirs) for key in keys):
        return None
    return {
        # Both real clocks show the same time, so the distances of the oscillators to them are compared.
        "offset_ns": (ours["real_ns"] - ours["raw_ns"]) - (theirs["real_ns"] - theirs["raw_ns"]),
        "bound_ns": ours["bound_ns"] + theirs["bound_ns"],
        # A clock that is made to run faster has an oscillator that is slow.
        "drift_ppb": ours["correction_ppb"] - theirs["correction_ppb"],
    }


def against(measured: dict[str, Any]) -> str | None:
    """The account of the programs that keep both clocks of a run, against what the tunnel has measured
    (the member `clock` of run.json), in words; None unless both are kept."""
    account = measured.get("by_ntp")
    if not account:
        return None
    # Both are of the start of the run.
    off_ns = account["offset_ns"] - measured["offset_ns"]
    return f"{off_ns / 1e6:+.3f} ms from what was measured, right to ± {account['bound_ns'] / 1e6:.3f} ms"


def keeper(clock: dict[str, Any]) -> str:
    """The program that disciplines a clock, in words."""
    result = clock.get("keeper")
    if not clock.get("synchronized"):
        idle = f" ({result['program']} runs and has no source)" if result else ""
        return f"not synchronized{idle}"
    if not result:
        return "synchronized by an unknown program"
    reference = f" from {result['reference']}" if result.get("reference") else ""
    stratum = f", stratum {result['stratum']}" if result.get("stratum") else ""
    return f"synchronized by {result['program']}{reference}{stratum}"
