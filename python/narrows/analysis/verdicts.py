"""How many runs stand behind a number, and what became of the others, in a few words beside it."""

from __future__ import annotations

from collections.abc import Mapping

#: Beside the number of runs some of which are degraded.
DEGRADED_MARK = "~"


def runs_in_words(counts: Mapping[str, int | None]) -> str:
    """`2 ok`, `2, 1 degraded`, `1 of 2, 1 invalid`, `none of 3, 3 failed`, from the counts of runs `started`,
    `finished`, `valid` and, of these, `degraded`."""
    started, finished, valid, degraded = (
        int(counts.get(key) or 0) for key in ("started", "finished", "valid", "degraded")
    )
    if not started:
        return "not run"
    bad = [(degraded, "degraded"), (finished - valid, "invalid"), (started - finished, "failed")]
    told = [f"{number} {word}" for number, word in bad if number > 0]
    if not told:
        return f"{valid} ok"
    many = f"{valid}" if valid == started else f"{valid or 'none'} of {started}"
    return ", ".join([many, *told])
