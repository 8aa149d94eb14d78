"""How the window changes while the application has nothing to send."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import Trace

#: A sender that has lost nothing and is silent for this long has nothing to send.
LEAST_PAUSE_S = 0.3
#: A window that remains by this share is kept: rounding and pacing take some of it.
KEPT_SHARE = 0.7
#: The initial window of ten packets (RFC 6928), and what acknowledgements that come early add to it.
RESET_PACKETS = 14
#: Below so many packets before the pause a halved window can't be told from an initial one.
FEWEST_PACKETS = 40
KEPT, DECAYED, RESET = "kept", "decayed", "reset"


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause: the last packet before it, the first one after it, and the windows in packets."""

    start_s: float
    end_s: float
    before: float
    after: float
    #: When the first packet after it is acknowledged.
    answered_s: float


def list_pauses(trace: Trace) -> list[Pause]:
    """The pauses of a trace, the first of which may follow slow start."""
    pauses = []
    for last in np.flatnonzero(np.diff(trace.sent_s) > LEAST_PAUSE_S).tolist():
        start, end = float(trace.sent_s[last]), float(trace.sent_s[last + 1])
        recent = trace.slice_sent(start - 2 * trace.min_rtt_s, end)
        # A silence after losses is a timeout.
        if trace.lost[recent].any():
            continue
        answered = float(trace.resolved_s[last + 1 :].min())
        if not np.isfinite(answered):
            continue
        # All packets before have been acknowledged: the window is as large as what leaves without an answer.
        after = trace.size_bytes[trace.slice_sent(end, answered)].sum() / trace.packet_bytes
        pauses.append(Pause(start, end, float(trace.in_flight[recent].max()), float(after), answered))
    if not pauses:
        raise NotMeasuredError("the sender is never silent without a loss before")
    return pauses


def measure_window(trace: Trace) -> list[Sample]:
    """The packets that leave in the first round trip after a pause, by those in flight before it."""
    return [
        Sample(pause.after / pause.before, pause.start_s, pause.answered_s, 1 / pause.before)
        for pause in list_pauses(trace)
    ]


def measure_reaction(trace: Trace) -> list[Sample]:
    """Whether the window is kept, decays, or is reset to the initial one."""
    samples = []
    for pause in list_pauses(trace):
        if pause.before >= FEWEST_PACKETS:
            samples.append(Sample(_word(pause), pause.start_s, pause.answered_s))
    if not samples:
        raise NotMeasuredError(f"fewer than {FEWEST_PACKETS} packets are in flight before the pauses")
    return samples


def _word(pause: Pause) -> str:
    if pause.after <= RESET_PACKETS:
        return RESET
    return KEPT if pause.after >= KEPT_SHARE * pause.before else DECAYED
