"""The verdict on each scheme, from all findings about it.

`verified`: every check of the scheme was made and holds. `unverified`: a check does not hold, was not made,
or does not exist.
"""

from __future__ import annotations

from typing import Any

from narrows.schemes.status import FORMAT, UNVERIFIED, VERIFIED
from validation.schemes.check import HOLDS
from validation.schemes.compare import Comparison
from validation.schemes.pairs import Pair, concerns

NOTHING = (
    "no closed form of it is implemented and the kernel has no counterpart; only its unit tests speak for it"
)


def verdict(
    name: str,
    theory: list[dict[str, Any]] | None,
    expected: list[Pair],
    done: dict[tuple[str, str], Comparison],
    missing: dict[str, str],
) -> dict[str, Any]:
    """The entry of a scheme in `verification.json`.

    `theory` are its findings as JSON, None if checks were not made; `expected` are the existing pairs, `done`
    the compared ones; `missing` is the reason why an implementation could not be run.
    """
    mine = [pair for pair in expected if name in concerns(pair)]
    checks = list(theory or [])
    reasons = []
    if theory is None:
        reasons.append("its checks in simulation have not been made")
    failed = [one for one in checks if one["outcome"] != HOLDS]
    if failed:
        worst = failed[0]
        reasons.append(
            f"{worst['what']}: {worst['found']} found, {worst['expected']} expected"
            + (f" (and {len(failed) - 1} more outside)" if len(failed) > 1 else "")
        )
    for pair in mine:
        comparison = done.get((pair.scheme, pair.reference))
        if comparison is None:
            lacking = missing.get(pair.reference) or missing.get(pair.scheme)
            other = pair.reference if name == pair.scheme else pair.scheme
            reasons.append(f"not compared with {other}" + (f": {lacking}" if lacking else " yet"))
            continue
        checks += [one.to_json() for one in comparison.findings()]
        if not comparison.holds:
            reasons.append(comparison.trouble())
    if not checks and not reasons:
        reasons.append(NOTHING)
    return {
        "status": UNVERIFIED if reasons else VERIFIED,
        "reason": "; ".join(reasons),
        "checks": checks,
    }


def document(entries: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The whole file, without parts that no page shows."""
    kept = ("what", "expected", "found", "difference", "tolerance", "outcome")
    return {
        "format": FORMAT,
        "schemes": {
            name: {**entry, "checks": [{key: one[key] for key in kept} for one in entry["checks"]]}
            for name, entry in entries.items()
        },
    }
