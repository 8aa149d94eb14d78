"""All lines of a card: each feature, how it is measured, and the probes that it is measured on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from narrows.identify import pauses, responses, rhythm, windows
from narrows.identify.responses import LossPoint
from narrows.identify.samples import NotMeasuredError, Sample
from narrows.identify.trace import (
    ANSWERS,
    ARRIVALS,
    DELAYS,
    GAPS,
    LOSSES,
    SENDING,
    WINDOW,
    Trace,
)  # fmt: skip

SHORT, LONG, SHALLOW = "probe-short-rtt", "probe-long-rtt", "probe-shallow-buffer"
RANDOM_LOSS, RATE_STEP, RTT_STEP = "probe-random-loss", "probe-rate-step", "probe-rtt-step"
BESIDE_CUBIC, ECN = "probe-beside-cubic", "probe-ecn"
LARGE, PAUSE, TWO_RTTS = "probe-large-window", "probe-pause", "probe-two-rtts"
#: The probe between two hosts. The references of the library have no card of it.
REAL_PATH = "probe-real-path"
#: The probes in the order in which they run: those that separate most schemes first.
PROBES = (
    SHORT,
    LONG,
    SHALLOW,
    LARGE,
    BESIDE_CUBIC,
    RANDOM_LOSS,
    RATE_STEP,
    ECN,
    RTT_STEP,
    PAUSE,
    TWO_RTTS,
)
_STEADY = (SHORT, LONG, SHALLOW, LARGE)
_GROWING = (SHORT, LONG, LARGE)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of a sender."""

    name: str
    title: str
    unit: str
    #: The probes that show it; other scenarios are measured too if `anywhere`.
    probes: tuple[str, ...]
    measure: Callable[[Trace], Sequence[Sample]]
    anywhere: bool = True
    #: Digits after the point in tables.
    digits: int = 3
    #: The kinds of data from which it is measured.
    needs: tuple[str, ...] = (SENDING, ARRIVALS, LOSSES, DELAYS, WINDOW)
    #: True if values may be negative.
    is_signed: bool = False


def _refuse(_trace: Trace) -> Sequence[Sample]:
    raise NotMeasuredError("it is measured from several runs together")


LOSS_EXPONENT = Feature(
    "loss-exponent", "throughput by loss, exponent", "", (RANDOM_LOSS,), _refuse, False, is_signed=True
)
LOSS_TOLERANCE = Feature("loss-tolerance", "tolerated loss", "share", (RANDOM_LOSS,), _refuse, False)
#: Measured from the runs at all ratios of loss together.
COMBINED: tuple[tuple[Feature, Callable[[Sequence[LossPoint]], Sequence[Sample]]], ...] = (
    (LOSS_EXPONENT, responses.fit_exponent),
    (LOSS_TOLERANCE, responses.find_tolerance),
)
FEATURES = (
    Feature("slow-start-growth", "slow start, growth per round", "", (LONG,), windows.measure_start, True, 2),
    Feature("slow-start-end", "slow start, ended by", "", _STEADY, windows.measure_exit),
    Feature(
        "slow-start-window",
        "slow start, largest window",
        "BDP",
        (LONG,),
        windows.measure_exit_window,
        True,
        2,
    ),
    Feature("decrease", "window after a loss", "share", _STEADY, windows.measure_decrease),
    Feature("law", "law of growth", "", _GROWING, windows.measure_law),
    Feature("growth-linear", "growth, linear", "packets/round", _GROWING, windows.measure_linear, True, 2),
    Feature(
        "growth-empty",
        "growth, empty queue",
        "packets/round",
        (LARGE,),
        windows.measure_empty_growth,
        True,
        2,
    ),
    Feature(
        "growth-exponential",
        "growth, exponential",
        "share/round",
        _GROWING,
        windows.measure_exponential,
        True,
        4,
    ),
    Feature("growth-cubic", "growth, cubic: C", "packets/s^3", (SHORT, LONG), windows.measure_cubic),
    Feature(
        "queue",
        "standing queue",
        "packets",
        (*_GROWING, ECN),
        rhythm.measure_queue,
        True,
        1,
        (DELAYS, ARRIVALS),
    ),
    Feature(
        "utilization",
        "delivered rate",
        "share",
        (*_STEADY, ECN),
        rhythm.measure_utilization,
        needs=(ARRIVALS,),
    ),
    Feature("loss", "lost packets", "share", (*_STEADY, ECN), rhythm.measure_loss, True, 4, (LOSSES,)),
    Feature("gain", "probing, rate", "", (LONG,), rhythm.measure_gain),
    Feature("drain", "draining, rate", "", (LONG,), rhythm.measure_drain),
    Feature("gain-period", "probing, period", "s", (LONG,), rhythm.measure_gain_period, True, 2),
    Feature("oscillation", "window, period", "RTT", (SHORT, LONG), rhythm.measure_oscillation, True, 1),
    Feature(
        "dip-period", "dips of the window, period", "s", (SHORT, LONG), rhythm.measure_dip_period, True, 2
    ),
    Feature(
        "dip-floor", "dips of the window, to", "packets", (SHORT, LONG), rhythm.measure_dip_floor, True, 1
    ),
    Feature("dip-length", "dips of the window, for", "s", (SHORT, LONG), rhythm.measure_dip_length),
    Feature(
        "loss-window",
        "window at random loss",
        "packets",
        (RANDOM_LOSS,),
        responses.measure_loss_window,
        False,
        1,
    ),
    Feature("share", "share beside CUBIC", "share", (BESIDE_CUBIC,), responses.measure_share, False),
    Feature("harm", "harm to CUBIC", "share", (BESIDE_CUBIC,), responses.measure_harm, False),
    Feature(
        "rtt-bias",
        "bias to short round trips",
        "",
        (TWO_RTTS,),
        responses.measure_rtt_bias,
        False,
        2,
        is_signed=True,
    ),
    Feature("pause", "window after a pause is", "", (PAUSE,), pauses.measure_reaction, False),
    Feature("pause-window", "window after a pause", "share", (PAUSE,), pauses.measure_window, False, 2),
    Feature("rise", "rate rises: 90 % after", "s", (RATE_STEP,), responses.measure_rise, True, 2),
    Feature("peak", "rate falls: largest delay", "s", (RATE_STEP,), responses.measure_peak),
    Feature(
        "clearing", "rate falls: queue short after", "s", (RATE_STEP,), responses.measure_clearing, True, 2
    ),
    Feature("after-delay", "longer path: rate kept", "share", (RTT_STEP,), responses.measure_after_delay),
    Feature("fall", "window falls without loss, to", "share", (ECN, SHORT), responses.measure_fall),
    Feature(
        "bursts", "packets sent in bursts", "share", (SHORT, LONG), rhythm.measure_bursts, True, 2, (GAPS,)
    ),
    Feature(
        "per-answer",
        "packets per acknowledgement",
        "",
        (SHORT,),
        rhythm.measure_per_answer,
        True,
        2,
        (ANSWERS,),
    ),
)
