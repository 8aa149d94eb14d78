"""Parameters of a path: ranges, initial values, and the scenario that they make.

The path is Pantheon's (Yan et al., USENIX ATC 2018, section 4): a drop-tail queue before a link of constant
rate, or one that serves packets as a Poisson process; then random loss and a delay, which is the same both
ways. Features add to it. At its neutral value a feature has no effect, so results without a feature carry
information about the path with it.

Rates are in bit/s, times in ns, queues in packets (of 1500 bytes if the unit is bytes).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

PACKET_BYTES = 1500
CONSTANT, POISSON = "constant", "poisson"
LINKS = (CONSTANT, POISSON)
#: The link that follows a recorded trace; its rate is the mean, to which the trace is scaled.
TRACE = "trace"
PACKETS, BYTES = "packets", "bytes"
_DIGITS = 4
#: Paths may lie this far outside the ranges of a part of a space and still belong to it.
_MARGIN = 0.3


@dataclass(frozen=True)
class Parameter:
    """A parameter and the axis on which it is searched: the logarithm of value + offset."""

    name: str
    kind: str
    least: float
    most: float
    offset: float = 0.0
    #: The value at which the parameter has no effect.
    neutral: float | None = None
    #: The range of a feature's parameter; the ranges of the path's basic parameters follow from the table.
    low: float = 0.0
    high: float = 0.0

    def axis(self, value: float) -> float:
        """The position of a value on the axis."""
        return math.log(value + self.offset)

    def value(self, place: float) -> float:
        """The value at a position."""
        return self.at(math.exp(place) - self.offset)

    def at(self, value: float) -> float:
        """The value at a position, within the limits and rounded to the digits that scenarios use."""
        amount = min(max(value, self.least), self.most)
        if self.kind == "packets":
            return float(max(1, round(amount)))
        if self.kind == "ratio" and amount < 1e-5:
            return 0.0
        rounded = float(f"{amount:.{_DIGITS}g}")
        return float(round(rounded)) if self.kind in ("rate", "span", "bytes") else rounded


RATE = Parameter("rate", "rate", 1e3, 1e12)
DELAY = Parameter("delay", "span", 1e4, 1e11)
QUEUE = Parameter("queue", "packets", 1, 4e6)
LOSS = Parameter("loss", "ratio", 0.0, 0.95, offset=5e-4)
BASIC = (RATE, DELAY, QUEUE, LOSS)
#: Those of features.
BACKWARD = Parameter("backward", "number", 0.02, 50, neutral=1.0, low=0.3, high=3.0)
DEVIATION = Parameter("deviation", "ratio", 0.0, 2.0, offset=0.1, neutral=0.0, low=0.05, high=0.8)
TIME = Parameter("time", "span", 5e7, 1e12, neutral=1e9, low=2e8, high=2e10)
GRANT = Parameter("grant", "bytes", 64, 1e6, neutral=PACKET_BYTES, low=150, high=12000)
JITTER = Parameter("jitter", "span", 0.0, 1e10, offset=2e6, neutral=0.0, low=5e5, high=4e7)
JITTER_MEAN = Parameter("jitter-mean", "span", 0.0, 1e10, offset=2e6, neutral=0.0, low=1e5, high=4e7)
BURST = Parameter("burst", "number", 1.0, 1e4, neutral=1.0, low=1.5, high=40.0)
HOLD = Parameter("hold", "span", 0.0, 1e10, offset=1e7, neutral=0.0, low=1e7, high=5e8)
EVERY = Parameter("every", "span", 2e8, 1e12, neutral=3e9, low=1e9, high=1e10)
SPREAD = Parameter("spread", "ratio", 0.0, 0.6, offset=0.1, neutral=0.0, low=0.05, high=0.4)
OFFSET = Parameter("offset", "span", 0.0, 1e12, offset=1e8, neutral=0.0, low=1e8, high=2e9)


@dataclass(frozen=True)
class Feature:
    """An optional property of a path."""

    name: str
    about: str
    parameters: tuple[Parameter, ...]
    #: The kind of link that the feature needs.
    link: str | None = None
    #: Only with several flows that start one after the other.
    several: bool = False


FEATURES = {
    item.name: item
    for item in (
        Feature(
            "unequal-delays",
            "the delay of acknowledgements is another than that of data",
            (BACKWARD,),
        ),
        Feature(
            "drift",
            "the rate of the Poisson process wanders around its mean (AR(1) of its logarithm)",
            (
                DEVIATION,
                TIME,
            ),
            POISSON,
        ),
        Feature(
            "grants",
            "an event of the Poisson process moves so many bytes, and not those of one packet",
            (GRANT,),
            POISSON,
        ),
        Feature(
            "jitter",
            "packets are delayed by random times besides, in order (normal, never negative)",
            (
                JITTER,
                JITTER_MEAN,
            ),
        ),
        Feature(
            "burst-loss",
            "losses come in bursts (Gilbert's channel) of this mean length",
            (BURST,),
        ),
        Feature(
            "holds",
            "the link holds everything for a time, again and again",
            (
                HOLD,
                EVERY,
            ),
        ),
        Feature(
            "capacity-per-run",
            "every run has a rate of its own, normal around the mean",
            (SPREAD,),
        ),
        Feature(
            "start-offsets",
            "flows start at random times around those planned",
            (OFFSET,),
            several=True,
        ),
    )
}
PARAMETERS = {item.name: item for item in (*BASIC, *(p for f in FEATURES.values() for p in f.parameters))}


@dataclass(frozen=True)
class TraceFile:
    """A recorded trace of rates: its file, and its mean rate."""

    file: str
    mean_bps: float


@dataclass(frozen=True)
class Path:
    """A kind of link with a value for every parameter; parameters of absent features are neutral."""

    link: str
    values: Mapping[str, float]
    unit: str = PACKETS
    trace: TraceFile | None = None

    def __getitem__(self, parameter: Parameter) -> float:
        value = self.values.get(parameter.name, parameter.neutral)
        assert value is not None
        return value

    @property
    def features(self) -> list[str]:
        """The features of the path."""
        return [
            name
            for name, feature in FEATURES.items()
            if self[feature.parameters[0]] != feature.parameters[0].neutral
        ]

    def words(self) -> dict[str, str]:
        """The values in words, by the names of parameters."""
        own = [item for feature in self.features for item in FEATURES[feature].parameters]
        return {item.name: self.text(item) for item in (*BASIC, *own)}

    def text(self, parameter: Parameter) -> str:
        """A value in words."""
        from narrows.scenario.quantity import show

        value = self[parameter]
        if parameter is QUEUE and self.unit == BYTES:
            return show("bytes", int(value) * PACKET_BYTES)
        if parameter.kind == "ratio":
            return f"{value * 100:.4g} %"
        if parameter.kind == "number":
            return f"{value:.4g}"
        return show(parameter.kind, int(value))


@dataclass(frozen=True)
class Workload:
    """The workload of the path: schemes as scenarios write them, flows, and the duration."""

    schemes: tuple[str, ...]
    flows: int = 1
    interval: str = "0 s"
    duration: str = "30 s"


def interval_ns(work: Workload) -> int:
    """The time from the start of one flow to that of the next; 0 where there is one flow."""
    from narrows.scenario.quantity import convert, parse

    return int(convert(parse(work.interval, "span"), "span", None)) if work.flows > 1 else 0


def scenario_text(
    path: Path, work: Workload, *, runs: int, seed: int, title: str = "", head: Sequence[str] = ()
) -> str:
    """The scenario of a path, as YAML. `head` has comment lines that precede it."""
    has = path.features
    rate = path.text(RATE)
    packet = f", packet: {path.text(GRANT)}" if "grants" in has else ""
    if "drift" in has:
        drift = f"deviation: {path.text(DEVIATION)}, time: {path.text(TIME)}{packet}"
        rate = f"{{poissondrift: {{rate: {rate}, {drift}}}}}"
        key = "path.forward.0.rate.poissondrift.rate"
    elif path.trace is not None:
        scale = f"{path[RATE] / path.trace.mean_bps:.{_DIGITS}g}"
        rate = f"{{trace: {{file: {_quote(path.trace.file)}, scale: {scale}}}}}"
        key = "path.forward.0.rate.trace.scale"
    elif packet:
        rate, key = f"{{poisson: {{rate: {rate}{packet}}}}}", "path.forward.0.rate.poisson.rate"
    elif path.link == POISSON:
        rate, key = f"{{poisson: {rate}}}", "path.forward.0.rate.poisson"
    else:
        key = "path.forward.0.rate"
    forward = [f"{{rate: {rate}, queue: {{droptail: {path.text(QUEUE)}}}}}"]
    if "holds" in has:
        # Begins within the first seconds, but not together with the first flow.
        start = int(0.37 * path[EVERY])
        forward.append(
            f"{{outage: {{start: {start} ns, length: {path.text(HOLD)}, period: {path.text(EVERY)},"
            " mode: hold}}"
        )
    if path[LOSS] > 0:
        forward.append(_loss(path, bursts="burst-loss" in has))
    if "jitter" in has:
        forward.append(
            f"{{jitter: {{law: truncated, spread: {path.text(JITTER)}, mean: {path.text(JITTER_MEAN)}}}}}"
        )
    forward.append(f"{{delay: {path.text(DELAY)}}}")
    back = int(path[DELAY] * path[BACKWARD])
    interval = work.interval + (f" +- {path.text(OFFSET)}" if "start-offsets" in has else "")
    flows = f"{{count: {work.flows}, interval: {interval}}}" if work.flows > 1 else "{count: 1}"
    lines = [f"# {line}".rstrip() for line in head]
    lines += ["schema: narrows/scenario/1"]
    if title:
        lines += [f"title: {_quote(title)}"]
    lines += [
        "question: How do schemes do on the path that reproduces these measurements?",
        "where: simulate",
        "path:",
        "  forward:",
        *(f"    - {text}" for text in forward),
        "  backward:",
        f"    - {{delay: {_span(back)}}}",
        "schemes:",
        *(f"  - {scheme}" for scheme in work.schemes),
        f"flows: {flows}",
        f"duration: {work.duration}",
        f"runs: {runs}",
        f"seed: {seed}",
    ]
    if "capacity-per-run" in has:
        middle, deviation = path.text(RATE), _rate(path[RATE] * path[SPREAD])
        if path.trace is not None:
            middle, deviation = scale, f"{float(scale) * path[SPREAD]:.{_DIGITS}g}"
        lines += ["draw:", f"  {key}: {{normal: [{middle}, {deviation}]}}"]
    return "\n".join(lines) + "\n"


def _loss(path: Path, *, bursts: bool) -> str:
    if not bursts:
        return f"{{loss: {path.text(LOSS)}}}"
    # In the long run a share p / (p + r) of the packets encounters the bad state, in runs of 1 / r packets.
    leaving = 1 / path[BURST]
    entering = leaving * path[LOSS] / (1 - path[LOSS])
    return f"{{gilbert: {{p: {min(1.0, entering) * 100:.4g} %, r: {leaving * 100:.4g} %}}}}"


def _span(value: int) -> str:
    from narrows.scenario.quantity import show

    return show("span", value)


def _rate(value: float) -> str:
    from narrows.scenario.quantity import show

    return show("rate", int(float(f"{value:.{_DIGITS}g}")))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclass
class Space:
    """The paths to be searched: a kind of link, the features, and the range of each parameter on its axis."""

    link: str
    ranges: dict[str, tuple[float, float]]
    features: tuple[str, ...] = ()
    unit: str = PACKETS
    #: The name of a part of a space, and whether only paths within its ranges belong to it.
    part: str = ""
    trace: TraceFile | None = None
    #: The largest values of parameters that depend on the workload or the table, and the smallest ones.
    most: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = list(self.ranges)

    @property
    def kind(self) -> str:
        """The kind of link with its features."""
        return ", ".join((self.link, *self.features))

    def path(self, shares: Iterable[float]) -> Path:
        """The path at shares of the ranges; shares outside 0 to 1 lie outside the ranges."""
        values = {}
        for name, share in zip(self.names, shares, strict=True):
            low, high = self.ranges[name]
            value = PARAMETERS[name].value(low + float(share) * (high - low))
            values[name] = max(min(value, self._most(name)), self._least(name))
        return Path(self.link, values, self.unit, self.trace)

    def shares(self, path: Path) -> list[float]:
        """The reverse."""
        values = []
        for name in self.names:
            low, high = self.ranges[name]
            values.append((PARAMETERS[name].axis(path[PARAMETERS[name]]) - low) / (high - low))
        return values

    def _most(self, name: str) -> float:
        return min(PARAMETERS[name].most, self.most.get(name, math.inf))

    def _least(self, name: str) -> float:
        return max(PARAMETERS[name].least, self.least.get(name, 0.0))

    def _lowest(self, name: str) -> float:
        """The lower end of the axis."""
        parameter = PARAMETERS[name]
        return parameter.axis(max(self._least(name), 1e-9 if not parameter.offset else 0.0))

    def holds(self, path: Path) -> bool:
        """True if the path differs from this space only in the values of its parameters."""
        alike = path.link == self.link and path.unit == self.unit
        if not alike or not set(path.features) <= set(self.features):
            return False
        return not self.part or all(-_MARGIN <= share <= 1 + _MARGIN for share in self.shares(path))

    def around(self, path: Path, width: float, part: str) -> Space:
        """The part of this space around a path that covers a share of each range."""
        ranges = {}
        for name, share in zip(self.names, self.shares(path), strict=True):
            low, high = self.ranges[name]
            one, middle, half = PARAMETERS[name], low + share * (high - low), width / 2 * (high - low)
            # A queue holds whole packets.
            half = max(half, 1.5 / path[one] if one.kind == "packets" else 0.0)
            ranges[name] = (
                max(self._lowest(name), middle - half),
                min(one.axis(self._most(name)), middle + half),
            )
        return replace(self, ranges=ranges, part=part)

    def with_feature(self, name: str) -> Space:
        """This space with an additional feature."""
        ranges = dict(self.ranges)
        for parameter in FEATURES[name].parameters:
            high = min(parameter.high, self._most(parameter.name))
            ranges[parameter.name] = (parameter.axis(min(parameter.low, high / 2)), parameter.axis(high))
        return replace(self, ranges=ranges, features=(*self.features, name))

    def widen(self, path: Path) -> bool:
        """Widens the ranges at whose edge a path lies; returns False if there are none."""
        wider = False
        for name, share in zip(self.names, self.shares(path), strict=True):
            low, high = self.ranges[name]
            one, step = PARAMETERS[name], 0.5 * (high - low)
            if share < 0.03 and low > (limit := self._lowest(name)):
                low, wider = max(limit, low - step), True
            elif share > 0.97 and high < (limit := one.axis(self._most(name))):
                high, wider = min(limit, high + step), True
            self.ranges[name] = (low, high)
        return wider
