"""Inside against outside: medians, the difference with its interval, and the Kolmogorov-Smirnov test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from narrows.analysis.statistics import FEWEST_FOR_INTERVAL, LEVEL, RESAMPLES, SEED, median
from narrows.verify.tunnel.smirnov import holm, test

#: Below this a difference counts as significant, as in "Pantheon: the training ground for Internet
#: congestion-control research" (USENIX ATC 2018), which compared its tunnel in this way.
LEVEL_OF_TEST = 0.2
#: Medians that differ by less than this share are the same for every purpose: runs of one scheme over the
#: steadiest paths of the reports that Pantheon has published vary by as much.
MARGIN = 0.02
#: What is compared: key, words, unit, how many units one of the kept numbers is.
METRICS = (
    ("throughput_bps", "throughput", "Mbit/s", 1e-6),
    ("delay_p95_ns", "95th percentile of the one-way delay", "ms", 1e-6),
)
SAME, EQUIVALENT, DIFFERENT, UNKNOWN = "same", "equivalent", "different", "unknown"
#: What the outcomes mean.
MEANINGS = {
    SAME: f"no significant difference (p >= {LEVEL_OF_TEST:g})",
    EQUIVALENT: f"a significant difference, which is smaller than {MARGIN * 100:g} %",
    DIFFERENT: f"a significant difference, which may be larger than {MARGIN * 100:g} %",
    UNKNOWN: "too few runs",
}


@dataclass(frozen=True)
class Row:
    """One scheme, one metric, runs in one place against those outside."""

    scheme: str
    metric: str
    where: str
    outside: list[float]
    other: list[float]
    median_outside: float | None
    median_other: float | None
    #: The median there is that of outside times one and this.
    difference: float | None
    #: 95 % interval of it, by a bootstrap of both.
    interval: tuple[float, float] | None
    statistic: float | None
    p: float | None
    #: The same for all rows of that place at once.
    p_holm: float | None
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """For the document; the single values are with the runs."""
        found = asdict(self)
        found["runs_outside"], found["runs_other"] = len(found.pop("outside")), len(found.pop("other"))
        return found


def values(runs: list[dict[str, Any]], metric: str) -> list[float]:
    """One number per run that counts."""
    return [float(one["path"][metric]) for one in runs if counts(one)]


def counts(run: dict[str, Any]) -> bool:
    """Whether a run says something about the path and not about the machine."""
    return run["verdict"] in ("ok", "degraded") and run["path"] is not None


def compare(runs: dict[str, dict[str, list[dict[str, Any]]]], wheres: list[str]) -> list[Row]:
    """All rows, place by place; `runs` by scheme and place. Places other than outside are compared with
    it."""
    rows = []
    for where in wheres[1:]:
        found = [
            (scheme, metric, values(places[wheres[0]], metric), values(places[where], metric))
            for scheme, places in runs.items()
            for metric, *_ in METRICS
        ]
        tests = [test(outside, other) if outside and other else (None, None) for *_, outside, other in found]
        adjusted = iter(holm([p for _, p in tests if p is not None]))
        for (scheme, metric, outside, other), (statistic, p) in zip(found, tests, strict=True):
            difference, interval = _difference(outside, other) if p is not None else (None, None)
            rows.append(
                Row(
                    scheme=scheme,
                    metric=metric,
                    where=where,
                    outside=outside,
                    other=other,
                    median_outside=median(outside) if outside else None,
                    median_other=median(other) if other else None,
                    difference=difference,
                    interval=interval,
                    statistic=statistic,
                    p=p,
                    p_holm=next(adjusted) if p is not None else None,
                    outcome=_outcome(p, interval),
                )
            )
    return rows


def _difference(outside: list[float], other: list[float]) -> tuple[float, tuple[float, float] | None]:
    """Relative difference of the medians, and its 95 % percentile bootstrap interval."""
    import numpy

    found = median(other) / median(outside) - 1
    if min(len(outside), len(other)) < FEWEST_FOR_INTERVAL:
        return found, None
    chance = numpy.random.RandomState(SEED)

    def medians(sample: list[float]) -> Any:
        picks = chance.randint(0, len(sample), size=(RESAMPLES, len(sample)))
        return numpy.median(numpy.asarray(sample)[picks], axis=1)

    tail = (1 - LEVEL) / 2
    low, high = numpy.quantile(medians(other) / medians(outside) - 1, (tail, 1 - tail))
    return found, (float(low), float(high))


def _outcome(p: float | None, interval: tuple[float, float] | None) -> str:
    if p is None or interval is None:
        return UNKNOWN
    if p >= LEVEL_OF_TEST:
        return SAME
    return EQUIVALENT if max(map(abs, interval)) < MARGIN else DIFFERENT


def own_account(runs: list[dict[str, Any]]) -> dict[str, float] | None:
    """By how much the tunnel's logs differ from the path's record, in the median over runs inside:
    throughput as a share, the 95th percentile of the delay in ns."""
    pairs = [(one["path"], one["tunnel"]) for one in runs if counts(one) and one["tunnel"] is not None]
    if not pairs:
        return None
    return {
        "throughput": median([b["throughput_bps"] / a["throughput_bps"] - 1 for a, b in pairs]),
        "delay_p95_ns": median([b["delay_p95_ns"] - a["delay_p95_ns"] for a, b in pairs]),
    }


def circumstances(runs: list[dict[str, Any]]) -> dict[str, float | None]:
    """Medians of what may explain a difference."""
    found: dict[str, float | None] = {}
    used = [one for one in runs if counts(one)]
    for key in ("loss_ratio", "train_ratio", "delay_p50_ns"):
        found[key] = median([float(one["path"][key]) for one in used]) if used else None
    for key in ("rtt_min_ns", "late_p99_ns", "waited_p99_ns"):
        known = [float(one[key]) for one in used if one[key] is not None]
        found[key] = median(known) if known else None
    return found
