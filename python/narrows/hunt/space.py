"""The search space: genes of a path and its traffic, with bounds, and the resulting scenario.

A point of the search is a list of numbers from 0 to 1, one for each gene. An optional gene is absent below
one half, so that half of all points lack each kind of element, and unneeded ones can be omitted. Values have
three digits, so that the printed path is the simulated one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from narrows.errors import UsageError
from narrows.scenario.derived import quantity_of
from narrows.scenario.quantity import show
from narrows.text import shorten, suggest

MTU = 1500
#: A queue of fewer packets hardly lets a window through, whatever the scheme.
LEAST_QUEUE = 10
#: Digits of values during the search.
DIGITS = 3
SHORT_FLOW = "100 kB"


@dataclass(frozen=True)
class Gene:
    """One value that may vary between paths."""

    name: str
    #: `rate`, `span`, `ratio`, `bdp`, `packets` or `number` of the value; bounds are in base units.
    kind: str
    low: float
    high: float
    about: str
    #: Absent in half of the points.
    optional: bool = True
    #: Searched on a logarithmic scale.
    log: bool = True
    #: The gene without which this one has no meaning.
    of: str | None = None
    #: True if there is only one value.
    fixed: bool = False
    #: The value that absence is equivalent to.
    absent: float = 0.0

    def at(self, place: float) -> float | None:
        """The value at a position from 0 to 1; None if the gene is absent."""
        if self.optional:
            if place < 0.5:
                return None
            place = min(1.0, 2 * place - 1)
        if self.log:
            value = self.low * (self.high / self.low) ** place
        else:
            value = self.low + (self.high - self.low) * place
        return self.fit(round_digits(value, DIGITS))

    def fit(self, value: float) -> float:
        """The value within the bounds, rounded if the kind requires it."""
        value = min(self.high, max(self.low, value))
        return float(round(value)) if self.kind in ("packets", "number", "span", "rate") else value

    def words(self, value: float | None) -> str:
        """The value in a user's notation; the meaning of absence if it is absent."""
        return write_value(self.kind, self.absent if value is None else value)

    @property
    def law(self) -> str:
        """The bounds in words."""
        return self.words(self.low) if self.fixed else f"{self.words(self.low)} to {self.words(self.high)}"

    @property
    def searched(self) -> str:
        """The bounds, and the meaning of absence if the gene may be absent."""
        absent = f"{self.words(None) if self.absent else 'none'}, or " if self.optional else ""
        return absent + self.law


#: The default bounds: realistic paths, without conditions that would stop any scheme.
RATE = Gene("rate", "rate", 2e6, 50e6, "rate of the bottleneck", optional=False)
DELAY = Gene("delay", "span", 5e6, 100e6, "one-way delay of the path, the same both ways", optional=False)
QUEUE = Gene("queue", "bdp", 0.1, 4.0, f"droptail queue, at least {LEAST_QUEUE} packets", optional=False)
LOSS = Gene("loss", "ratio", 1e-5, 1e-3, "packets lost at random, one by one")
BURSTS = Gene("bursts", "ratio", 1e-4, 3e-3, "packets lost at random in bursts")
BURST = Gene("burst", "packets", 2, 20, "mean length of these bursts", optional=False, of=BURSTS.name)
JITTER = Gene("jitter", "span", 0.5e6, 5e6, "standard deviation of jitter that keeps the order")
LOW = Gene("low", "ratio", 0.2, 0.9, "the rate falls to this share of itself in every other half period")
PERIOD = Gene("period", "span", 0.2e9, 8e9, "period of these changes", optional=False, of=LOW.name)
OUTAGE = Gene("outage", "span", 50e6, 300e6, "length of outages, in which packets are dropped")
EVERY = Gene("every", "span", 2e9, 20e9, "time from outage to outage", optional=False, of=OUTAGE.name)
FLOWS = Gene("flows", "number", 2, 4, "flows of the scheme beside each other", absent=1)
DATAGRAMS = Gene("datagrams", "ratio", 0.05, 0.3, "cross traffic: datagrams, as a share of the lowest rate")
SHORT = Gene("short", "ratio", 0.05, 0.3, f"cross traffic: short flows of {SHORT_FLOW}, likewise (CUBIC)")
BULK = Gene("bulk", "number", 1, 4, "cross traffic: long flows of CUBIC")
LATER = Gene("later", "ratio", 0.01, 0.25, "the competitor starts later, by this share of the run")
EARLIER = Gene("earlier", "ratio", 0.01, 0.25, "the competitor starts earlier, by this share of the run")
GENES = (
    RATE,
    DELAY,
    QUEUE,
    LOSS,
    BURSTS,
    BURST,
    JITTER,
    LOW,
    PERIOD,
    OUTAGE,
    EVERY,
    FLOWS,
    DATAGRAMS,
    SHORT,
    BULK,
    LATER,
    EARLIER,
)

Values = dict[str, float | None]


@dataclass(frozen=True)
class Space:
    """The searched and the fixed genes for one question."""

    genes: tuple[Gene, ...]
    duration_ns: int

    def decode(self, places: Sequence[float]) -> Values:
        """The values at a point of the search."""
        point: Values = {}
        free = iter(places)
        for gene in self.genes:
            point[gene.name] = gene.fit(gene.low) if gene.fixed else gene.at(next(free))
        return self.tidy(point)

    def tidy(self, values: Values) -> Values:
        """The values without meaningless ones: of absent genes, and of two that exclude each other."""
        point = dict(values)
        for gene in self.genes:
            if gene.of and point.get(gene.of) is None:
                point[gene.name] = None
        if point.get(LATER.name) is not None:
            point[EARLIER.name] = None
        return point

    @property
    def free(self) -> int:
        """The number of searched numbers."""
        return sum(not gene.fixed for gene in self.genes)

    def gene(self, name: str) -> Gene:
        """The gene of that name."""
        return next(gene for gene in self.genes if gene.name == name)

    def in_words(self, values: Values) -> dict[str, str]:
        """All values in a user's notation."""
        return {gene.name: gene.words(values.get(gene.name)) for gene in self.genes}

    def plain(self) -> Values:
        """A path without further elements: 20 Mbit/s, 20 ms and a queue of 1 bdp, within the bounds."""
        values: Values = {gene.name: None for gene in self.genes}
        for gene, value in ((RATE, 20e6), (DELAY, 20e6), (QUEUE, 1.0)):
            values[gene.name] = self.gene(gene.name).fit(value)
        return self.tidy(values | {gene.name: gene.low for gene in self.genes if gene.fixed})


def make(names: Sequence[str], bounds: Mapping[str, str], duration_ns: int) -> Space:
    """The space of these genes with other bounds for some: `LOW..HIGH`, a value, or `none`, by name. Raises
    `UsageError`.
    """
    known = {gene.name: gene for gene in GENES if gene.name in names}
    for name, text in bounds.items():
        if name not in known:
            hint = suggest(name, known, "gene")
            raise UsageError(f'--bound: nothing is called "{shorten(name)}"{hint}')
        if text.strip() == "none":
            if not known[name].optional:
                raise UsageError(f"--bound {name}=none: a path has a {name}; give a value or bounds")
            gone = [name, *(gene.name for gene in GENES if gene.of == name)]
            known = {key: gene for key, gene in known.items() if key not in gone}
            continue
        known[name] = _bound(known[name], text)
    return Space(tuple(known.values()), duration_ns)


def _bound(gene: Gene, text: str) -> Gene:
    parts = text.split("..")
    if len(parts) > 2 or not all(part.strip() for part in parts):
        raise UsageError(f"--bound {gene.name}={text}: write LOW..HIGH, one value, or none")
    # A unit may be written once, after the second number.
    unit = parts[-1].strip().lstrip("0123456789.").strip()
    ends = []
    for part in parts:
        quantity = quantity_of(part.strip())
        if quantity is not None and quantity.kind == "number" and gene.kind != "number" and unit:
            quantity = quantity_of(f"{part.strip()} {unit}")
        if quantity is None or quantity.kind != gene.kind:
            raise UsageError(
                f"--bound {gene.name}={text}: {part.strip()} is not like {gene.words(gene.high)}"
            )
        ends.append(float(quantity.value))
    low, high = ends[0], ends[-1]
    if not 0 < low <= high:
        raise UsageError(f"--bound {gene.name}={text}: bounds are above 0, the lower one first")
    if gene.kind == "ratio" and high > 1:
        raise UsageError(f"--bound {gene.name}={text}: a share is at most 100 %")
    if gene.kind == "number" and high > 100:
        raise UsageError(f"--bound {gene.name}={text}: at most 100 flows")
    return replace(gene, low=low, high=high, fixed=low == high, optional=gene.optional and low != high)


def round_digits(value: float, digits: int) -> float:
    """The value rounded to this many significant digits."""
    return float(f"{value:.{digits - 1}e}") if value else 0.0


def write_value(kind: str, value: float) -> str:
    """A value of a gene with its unit."""
    if kind == "ratio":
        return f"{100 * value:.6g} %"
    if kind == "bdp":
        return f"{value:.6g} bdp"
    if kind == "number":
        return f"{value:.6g}"
    if not value:
        return {"span": "0 ms", "rate": "0 bit/s", "packets": "0 packets"}[kind]
    if kind == "span" and value >= 1e9:
        return f"{value / 1e9:.6g} s"
    return show(kind, round(value))


def queue_packets(values: Values) -> int:
    """The queue of a path in packets."""
    rate, delay, queue = (float(values[name] or 0) for name in (RATE.name, DELAY.name, QUEUE.name))
    return max(LEAST_QUEUE, round(queue * rate * 2 * delay / 8e9 / MTU))


def elements(values: Values) -> list[str]:
    """The elements of the forward path in the notation of scenarios."""
    rate = float(values[RATE.name] or 0)
    served = write_value("rate", rate)
    if (low := values.get(LOW.name)) is not None:
        fallen, period = (
            round_digits(low * rate, DIGITS),
            write_value("span", float(values[PERIOD.name] or 0)),
        )
        served = f"{{square: {{high: {served}, low: {write_value('rate', fallen)}, period: {period}}}}}"
    parts = [f"{{rate: {served}, queue: {{droptail: {write_value('packets', queue_packets(values))}}}}}"]
    parts.append(f"{{delay: {write_value('span', float(values['delay'] or 0))}}}")
    if (jitter := values.get(JITTER.name)) is not None:
        parts.append(f"{{jitter: {write_value('span', jitter)}}}")
    if (loss := values.get(LOSS.name)) is not None:
        parts.append(f"{{loss: {write_value('ratio', loss)}}}")
    if (bursts := values.get(BURSTS.name)) is not None:
        back = 1 / float(values[BURST.name] or 2)
        # The share of bad packets is p / (p + r).
        into = round_digits(bursts * back / (1 - bursts), DIGITS)
        parts.append(f"{{gilbert: {{p: {_decimal(into)}, r: {_decimal(round_digits(back, DIGITS))}}}}}")
    if (outage := values.get(OUTAGE.name)) is not None:
        every = float(values[EVERY.name] or 0)
        start, length = write_value("span", round_digits(every / 2, DIGITS)), write_value("span", outage)
        parts.append(
            f"{{outage: {{start: {start}, length: {length}, period: {write_value('span', every)}}}}}"
        )
    return parts


def background(values: Values) -> list[str]:
    """The entries of cross traffic in the notation of scenarios."""
    # Traffic that does not yield to congestion must leave capacity even at low rates.
    rate = float(values[RATE.name] or 0) * (values.get(LOW.name) or 1.0)
    texts = []
    if (share := values.get(DATAGRAMS.name)) is not None:
        texts.append(f"{{traffic: {{cbr: {write_value('rate', round_digits(share * rate, DIGITS))}}}}}")
    if (share := values.get(SHORT.name)) is not None:
        load = write_value("rate", round_digits(share * rate, DIGITS))
        texts.append(f"{{scheme: cubic, traffic: {{arrivals: {{size: {SHORT_FLOW}, load: {load}}}}}}}")
    if (count := values.get(BULK.name)) is not None:
        texts.append(f"{{scheme: cubic, count: {count:.0f}}}")
    return texts


def flows(values: Values, duration_ns: int, against: str | None) -> str:
    """The flows under test in the notation of scenarios; empty for a single one; `against` competes with the
    first one.
    """
    if against is None:
        return f"{{count: {count:.0f}}}" if (count := values.get(FLOWS.name)) else ""
    starts = [
        f", start: {write_value('span', round_digits(share * duration_ns, DIGITS))}" if share else ""
        for share in (values.get(EARLIER.name), values.get(LATER.name))
    ]
    own = f"{{{starts[0].removeprefix(', ')}}}"
    return f"[{own}, {{scheme: {against}{starts[1]}}}]"


def plainer(value: float) -> list[float]:
    """Rounder values near one, the roundest first: 1, 2 or 5 and zeros, one digit, two digits."""
    if value <= 0 or not math.isfinite(value):
        return []
    scale = Fraction(10) ** math.floor(math.log10(value))
    near = sorted((scale * digit for digit in (1, 2, 5, 10)), key=lambda to: abs(math.log(value / float(to))))
    rounder = [float(number) for number in near[:2]]
    rounder += [round_digits(value, 1), round_digits(value, 2)]
    return list(dict.fromkeys(rounder))


def _decimal(value: float) -> str:
    return f"{value:.12f}".rstrip("0").rstrip(".")
