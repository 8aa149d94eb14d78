"""Inside against outside: medians, the difference with its interval, and the Kolmogorov-Smirnov test."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from narrows.statistics.runs import FEWEST_FOR_INTERVAL, bootstrap_ratio
from validation.tunnel.smirnov import holm, test
from validation.tunnel.testbed import INSIDE, OUTSIDE

#: Below this a difference counts as significant, as in "Pantheon: the training ground for Internet
#: congestion-control research" (USENIX ATC 2018), which compared its tunnel in this way.
LEVEL_OF_TEST = 0.2
#: Medians that differ by less than this share are equivalent in practice: in Pantheon's published reports,
#: runs of one scheme over the steadiest paths vary by as much.
MARGIN = 0.02
#: The metrics that are compared: key, words, unit, how many units one of the kept numbers is.
METRICS = (
    ("throughput_bps", "throughput", "Mbit/s", 1e-6),
    ("delay_p95_ns", "95th percentile of the one-way delay", "ms", 1e-6),
)
SAME, EQUIVALENT, DIFFERENT, UNKNOWN = "same", "equivalent", "different", "unknown"
#: The meanings of the outcomes.
MEANINGS = {
    SAME: f"no significant difference (p >= {LEVEL_OF_TEST:g})",
    EQUIVALENT: f"a significant difference, which is smaller than {MARGIN * 100:g} %",
    DIFFERENT: f"a significant difference, which may be larger than {MARGIN * 100:g} %",
    UNKNOWN: "too few runs",
}


@dataclass(frozen=True)
class Row:
    """One scheme, one metric, runs in one place against those in another."""

    scheme: str
    metric: str
    base: str
    where: str
    runs_base: int
    runs_where: int
    median_base: float | None
    median_where: float | None
    #: The relative difference of the medians.
    difference: float | None
    #: 95 % interval of it, by a bootstrap of both.
    interval: tuple[float, float] | None
    statistic: float | None
    p: float | None
    #: Adjusted for all rows of these two places.
    p_holm: float | None
    outcome: str

    def to_json(self) -> dict[str, Any]:
        """For the document; the single values are with the runs."""
        return asdict(self)


def is_main(row: Row) -> bool:
    """True if it compares the tunnel with the path outside; other rows are explanatory."""
    return (row.base, row.where) == (OUTSIDE.name, INSIDE.name)


def values(runs: list[dict[str, Any]], metric: str) -> list[float]:
    """One number per run that counts."""
    return [float(one["path"][metric]) for one in runs if counts(one)]


def counts(run: dict[str, Any]) -> bool:
    """True if a run describes the path and not the machine."""
    return run["verdict"] in ("ok", "degraded") and run["path"] is not None


def compare(runs: dict[str, dict[str, list[dict[str, Any]]]], pairs: list[tuple[str, str]]) -> list[Row]:
    """All rows, pair by pair of places; `runs` by scheme and place."""
    rows = []
    for base, where in pairs:
        found = [
            (scheme, metric, values(places[base], metric), values(places[where], metric))
            for scheme, places in runs.items()
            for metric, *_ in METRICS
        ]
        tests = [test(first, second) if first and second else (None, None) for *_, first, second in found]
        adjusted = iter(holm([p for _, p in tests if p is not None]))
        for (scheme, metric, first, second), (statistic, p) in zip(found, tests, strict=True):
            difference, interval = _difference(first, second) if p is not None else (None, None)
            rows.append(
                Row(
                    scheme=scheme,
                    metric=metric,
                    base=base,
                    where=where,
                    runs_base=len(first),
                    runs_where=len(second),
                    median_base=median(first) if first else None,
                    median_where=median(second) if second else None,
                    difference=difference,
                    interval=interval,
                    statistic=statistic,
                    p=p,
                    p_holm=next(adjusted) if p is not None else None,
                    outcome=_outcome(p, interval),
                )
            )
    return rows


def _difference(base: list[float], other: list[float]) -> tuple[float, tuple[float, float] | None]:
    """Relative difference of the medians, and its interval."""
    found = median(other) / median(base) - 1
    if min(len(base), len(other)) < FEWEST_FOR_INTERVAL:
        return found, None
    low, high = bootstrap_ratio(other, base)
    return found, (low - 1, high - 1)


def _outcome(p: float | None, interval: tuple[float, float] | None) -> str:
    if p is None or interval is None:
        return UNKNOWN
    if p >= LEVEL_OF_TEST:
        return SAME
    return EQUIVALENT if max(map(abs, interval)) < MARGIN else DIFFERENT


def own_account(runs: list[dict[str, Any]]) -> dict[str, float] | None:
    """The deviation of the tunnel's logs from the path's record, in the median over runs inside: throughput
    as a share, the 95th percentile of the delay in ns."""
    pairs = [(one["path"], one["tunnel"]) for one in runs if counts(one) and one["tunnel"] is not None]
    if not pairs:
        return None
    return {
        "throughput": median([b["throughput_bps"] / a["throughput_bps"] - 1 for a, b in pairs]),
        "delay_p95_ns": median([b["delay_p95_ns"] - a["delay_p95_ns"] for a, b in pairs]),
    }


def circumstances(runs: list[dict[str, Any]]) -> dict[str, float | None]:
    """Medians of possible explanations of a difference."""
    found: dict[str, float | None] = {}
    used = [one for one in runs if counts(one)]
    for key in ("loss_ratio", "train_ratio", "delay_p50_ns", "size_bytes"):
        found[key] = median([float(one["path"][key]) for one in used]) if used else None
    for key in ("rtt_min_ns", "late_p99_ns", "waited_p99_ns", "first_loss_ns"):
        known = [float(number) for one in used if (number := {**one["path"], **one}.get(key)) is not None]
        found[key] = median(known) if known else None
        if key == "first_loss_ns":
            # Slow start ends with losses or before them, and runs of one kind may differ in that.
            found["first_loss_least_ns"] = min(known, default=None)
            found["first_loss_most_ns"] = max(known, default=None)
    return found
