"""Model cards: what a model was trained on, how well it does there and beyond, and its limits."""

from __future__ import annotations

from pathlib import Path

from narrows.learn.card_map import draw_map, list_boxes, write_map
from narrows.learn.score import Measured, Trial, TrialPath, measure
from narrows.learn.training import Run

#: The map of a card: rates in Mbit/s, one-way delays in ms.
RATES = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
DELAYS = (2, 5, 10, 20, 40, 80, 160)
SECONDS = 20.0


#: Limits of the models of a scheme; those of networks trained by imitation are the first.
_LIMITS = (
    "Trained with one flow at a time: shares of several flows were not part of the objective. Beyond the"
    " rates and delays of the recipe its behaviour is not determined; see the map."
)
_OTHER_LIMITS = {
    "aurora": "Trained with one flow at a time, on paths whose rate does not change: shares of several flows"
    " were not part of the rewards. Its inputs are ratios, so that other rates and delays are not foreign to"
    " it, but the rate changes by at most 2.5 % per half round trip: over a large bandwidth-delay product a"
    " flow of 20 s hardly reaches the rate of the path; see the map.",
    "remy": "Trained with the propagation delays of the recipe and unlimited queues: on links slower than"
    " those of the recipe its queue grows, and losses were not part of the objective.",
}


def write_card(path: Path, name: str, run: Run, content: bytes) -> str:
    """Writes the card of the model in `content`, made by `run`, to `path`, and its map beside it;
    returns its text.
    """
    from narrows.models.store import save

    scheme = run.recipe.scheme or "?"
    shares = measure_map(scheme, content, run.threads)
    picture = write_map(draw_map(shares, RATES, DELAYS, list_boxes(run.recipe)), path.with_suffix(""), name)
    lines = [
        f"# {name}",
        "",
        f"A model for the scheme `{scheme}`, trained in the simulator of Narrows by the published method; no"
        " weight and no table of others is part of it.",
        "",
        "| | |",
        "|---|---|",
        f"| rounds | {run.recipe.rounds} |",
        *(f"| {key} | {value} |" for key, value in run.notes),
        "",
        "## Where it works",
        "",
        *_table(shares),
        "",
        f"![Power by rate and delay; boxes surround the paths of the training]({picture.name})",
        "",
        "## Limits",
        "",
        _OTHER_LIMITS.get(scheme, _LIMITS),
        "",
        "## Recipe",
        "",
        "```yaml",
        run.recipe.text.rstrip(),
        "```",
        "",
    ]
    text = "\n".join(lines)
    save(path, text.encode())
    return text


def measure_map(scheme: str, content: bytes, threads: int) -> list[list[float]]:
    """Power on a grid of rates (rows) and delays, as a share of what the path allows."""
    paths = [TrialPath(rate_bps=rate * 1e6, one_way_ms=delay) for rate in RATES for delay in DELAYS]
    all_trials = [Trial(path=path, seconds=SECONDS, late_hosts=True) for path in paths]
    measured = iter(measure(scheme, content, all_trials, threads))
    return [[_share(next(measured), rate * 1e6, delay) for delay in DELAYS] for rate in RATES]


def _table(shares: list[list[float]]) -> list[str]:
    lines = [
        f"Power of one flow over {SECONDS:g} s behind an unlimited queue, as a share of the path's rate by"
        " its propagation delay and the transmission of one packet. Power is the throughput by the 95th"
        " percentile of the one-way delay. Rows are rates in Mbit/s, columns one-way delays in ms.",
        "",
        f"| | {' | '.join(map(str, DELAYS))} |",
        f"|---|{'---|' * len(DELAYS)}",
    ]
    for rate, row in zip(RATES, shares, strict=True):
        lines.append(f"| {rate:g} | {' | '.join(f'{share:.2f}' for share in row)} |")
    return lines


def _share(measured: Measured, rate_bps: float, delay_ms: float) -> float:
    transmission_ms = 1_500 * 8 / rate_bps * 1e3
    return measured.power / (rate_bps / 1e6 / (delay_ms + transmission_ms))
