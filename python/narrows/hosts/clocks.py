"""Facts of two hosts about their clocks, to compare with the tunnel's measurement of their offset.

Each host's agent reports the program that disciplines its clock (chrony, systemd-timesyncd or another), the
program's estimate of the error, and the relation of the kernel's clock to the oscillator. If both clocks are
disciplined, the offset of the oscillators follows, which the tunnel's result can be compared with.
"""

from __future__ import annotations

from narrows.documents import run
from narrows.documents.agent import Clock, OscillatorOffset


def by_ntp(ours: Clock, theirs: Clock) -> OscillatorOffset | None:
    """The relation of the oscillators of two hosts if the programs that keep their clocks are right. None
    unless both clocks are kept."""
    bounds, corrections = (ours.bound_ns, theirs.bound_ns), (ours.correction_ppb, theirs.correction_ppb)
    if bounds[0] is None or bounds[1] is None or corrections[0] is None or corrections[1] is None:
        return None
    return OscillatorOffset(
        # Both real clocks show the same time, so the distances of the oscillators to them are compared.
        offset_ns=(ours.real_ns - ours.raw_ns) - (theirs.real_ns - theirs.raw_ns),
        bound_ns=bounds[0] + bounds[1],
        # A clock that is made to run faster has an oscillator that is slow.
        drift_ppb=corrections[0] - corrections[1],
    )


def against(measured: run.Clock) -> str | None:
    """The account of the programs that keep both clocks of a run, against what the tunnel has measured
    (the member `clock` of run.json), in words; None unless both are kept."""
    account = measured.by_ntp
    if account is None:
        return None
    # Both are of the start of the run.
    off_ns = account.offset_ns - measured.offset_ns
    return f"{off_ns / 1e6:+.3f} ms from what was measured, right to ± {account.bound_ns / 1e6:.3f} ms"
