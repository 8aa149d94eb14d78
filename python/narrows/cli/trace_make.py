"""`narrows trace make`: traces of constant, Poisson, square and cellular links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option
from narrows.cli.trace_group import Bin, Force, mean_of, print_trace, read_rate, read_span, trace

if TYPE_CHECKING:
    from narrows.traces.trace import Trace

make = group(
    "make",
    "narrows trace make cellular drive.csv --speed '30 km/h' --seed 2",
    "Make a trace; the same values and seed give the same file.",
    parent=trace,
)

Out = Annotated[Path, argument(metavar="OUT", help="The file to write.")]
Length = Annotated[str, option("--length", help="Length of the trace.")]
Seed = Annotated[int, option("--seed", min=0, help="Seed of everything random.")]
Format = Annotated[
    str | None,
    option("--format", help="mahimahi, csv, parquet or pensieve. [default: by the extension of OUT]"),
]
RATE_HELP = "Mean rate of IP bits, such as '12 Mbit/s'."
Rate = Annotated[str, option("--rate", help=RATE_HELP)]


def _finish(
    made: Trace, out: Path, form: str, *, force: bool, as_json: bool, bin_text: str = "100 ms"
) -> None:
    from narrows.console import say
    from narrows.traces.convert import save
    from narrows.traces.trace import Opportunities

    written = save(made, out, form, force=force, bin_ns=read_span(bin_text, "--bin"))
    if as_json:
        print_trace(out, form, written)
        return
    if isinstance(written, Opportunities):
        rows = f"{len(written.times_ms)} opportunities"
    else:
        rows = f"{len(written.time_ns)} rates"
    text = f"{out}: {form}, {rows} in {written.length_ns / 1e9:.9g} s, mean {mean_of(written)}"
    say(text)


@subcommand(make, example="narrows trace make constant 100.trace --rate '100 Mbit/s'")
def constant(
    out: Out,
    rate: Rate,
    length: Length = "60 s",
    form: Format = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """A constant rate: opportunities spread evenly, rounded to milliseconds; csv and parquet are exact."""
    import numpy as np

    from narrows.traces import models
    from narrows.traces.convert import format_for
    from narrows.traces.formats import FORMATS
    from narrows.traces.trace import Rates

    name = format_for(out, form)
    rate_bps, length_ns = read_rate(rate, "--rate"), read_span(length, "--length")
    if FORMATS[name].writes == "opportunities":
        _finish(models.constant(rate_bps, length_ns), out, name, force=force, as_json=as_json)
    else:
        exact = Rates(np.array([0], dtype=np.int64), np.array([rate_bps], dtype=np.int64), length_ns)
        _finish(exact, out, name, force=force, as_json=as_json)


@subcommand(make, example="narrows trace make poisson p.trace --rate '2.64 Mbit/s' --seed 3")
def poisson(
    out: Out,
    rate: Rate,
    length: Length = "60 s",
    seed: Seed = 1,
    form: Format = None,
    bin_text: Bin = "100 ms",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Opportunities with independent exponential gaps: a link on which every packet waits anew."""
    from narrows.traces import models
    from narrows.traces.convert import format_for

    name = format_for(out, form)
    made = models.poisson(read_rate(rate, "--rate"), read_span(length, "--length"), seed)
    _finish(made, out, name, force=force, as_json=as_json, bin_text=bin_text)


@subcommand(
    make, example="narrows trace make square s.csv --low '2 Mbit/s' --high '10 Mbit/s' --period '10 s'"
)
def square(
    out: Out,
    low: Annotated[str, option("--low", help="The low rate; may be '0 bit/s'.")],
    high: Annotated[str, option("--high", help="The high rate, which comes first.")],
    period: Annotated[
        str, option("--period", help="Length of one high and one low phase together.")
    ] = "10 s",
    duty: Annotated[float, option("--duty", min=0, max=1, help="Share of the high phase.")] = 0.5,
    length: Length = "60 s",
    form: Format = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """A rate that jumps between two values."""
    from narrows.traces import models
    from narrows.traces.convert import format_for

    name = format_for(out, form)
    low_bps = 0 if low.split() == ["0", "bit/s"] else read_rate(low, "--low")
    spans = read_span(period, "--period"), read_span(length, "--length")
    made = models.square(low_bps, read_rate(high, "--high"), spans[0], duty, spans[1])
    _finish(made, out, name, force=force, as_json=as_json)


@subcommand(make, example="narrows trace make cellular drive.csv --speed '30 km/h' --seed 2")
def cellular(
    out: Out,
    rate: Annotated[str, option("--rate", help=RATE_HELP)] = "5 Mbit/s",
    speed: Annotated[str, option("--speed", help="Speed of the user: km/h or m/s.")] = "3 km/h",
    snr_db: Annotated[float, option("--snr", help="Median signal-to-noise ratio in dB.")] = 10.0,
    shadow_db: Annotated[float, option("--shadow", help="Standard deviation of the shadowing in dB.")] = 6.0,
    shadow_m: Annotated[
        float, option("--shadow-distance", help="Decorrelation distance of the shadowing in metres.")
    ] = 50.0,
    carrier: Annotated[float, option("--carrier", help="Carrier frequency in GHz.")] = 2.0,
    parts: Annotated[int, option("--parts", help="Parts of the band that fade independently.")] = 4,
    users: Annotated[float, option("--users", help="Mean number of other active users.")] = 1.0,
    stay: Annotated[str, option("--stay", help="Mean time that they stay active.")] = "5 s",
    handover_m: Annotated[
        float, option("--handover-distance", help="Mean metres between handovers.")
    ] = 500.0,
    handover: Annotated[str, option("--handover", help="Interruption by a handover.")] = "28 ms",
    outage: Annotated[float, option("--outage", help="Share of the time without coverage, 0 to 0.9.")] = 0.0,
    outage_length: Annotated[
        str, option("--outage-length", help="Mean length of a time without coverage.")
    ] = "1 s",
    length: Length = "60 s",
    seed: Seed = 1,
    form: Format = None,
    bin_text: Annotated[
        str, option("--bin", help="Width of the bins of rates in whole milliseconds.")
    ] = "20 ms",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """A fading cellular link: shadowing, Rayleigh fading, LTE's ladder, other users, handovers, outages.

    docs/guide/traces.md has the formulas, the sources of the defaults, and the statistics.
    """
    from narrows.traces import cellular as model
    from narrows.traces.convert import format_for
    from narrows.traces.formats import FORMATS

    name = format_for(out, form)
    values = model.Cellular(
        mean_bps=read_rate(rate, "--rate"),
        speed_m_per_s=_speed(speed),
        carrier_hz=carrier * 1e9,
        snr_db=snr_db,
        shadow_db=shadow_db,
        shadow_m=shadow_m,
        parts=parts,
        users=users,
        stay_s=read_span(stay, "--stay") / 1e9,
        handover_m=handover_m,
        handover_s=read_span(handover, "--handover") / 1e9,
        outage=outage,
        outage_s=read_span(outage_length, "--outage-length") / 1e9,
    )
    length_ns = read_span(length, "--length")
    if FORMATS[name].writes == "opportunities":
        _finish(model.opportunities(values, seed, length_ns), out, name, force=force, as_json=as_json)
    else:
        _finish(
            model.rates(values, seed, length_ns, read_span(bin_text, "--bin")),
            out,
            name,
            force=force,
            as_json=as_json,
        )


def _speed(text: str) -> float:
    import re

    from narrows.errors import UsageError

    match = re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]{1,6})?)\s*(km/h|m/s)\s*", text)
    if not match:
        raise UsageError(f'--speed: "{text}" is not a speed such as 30 km/h or 1.5 m/s')
    return float(match[1]) / (3.6 if match[2] == "km/h" else 1.0)
