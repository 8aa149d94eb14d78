"""The key `expect`: conditions on the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import field

from narrows.scenario import registry
from narrows.scenario.declarations.value import Context, Value
from narrows.scenario.model import SchemeRow
from narrows.scenario.problems import Problems, Wrong
from narrows.scenario.programs import playback
from narrows.scenario.quantity import show
from narrows.scenario.registry import Param
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten

if TYPE_CHECKING:
    from narrows.documents.results import Expectation, Metric, Quantity, StateQuestion

#: Statistics over the values of the valid runs.
STATISTICS = ("median", "mean", "min", "max")
#: Kinds of values by the unit of a metric.
KINDS = {"bit/s": "rate", "ns": "span", "bytes": "bytes", "packets": "packets"}
ALL = "all"
#: Questions about a mode of a scheme: label, unit.
OF_MODE = {
    "first": ("first time in {}", "ns"),
    "visits": ("visits to {}", ""),
    "interval": ("mean time between visits to {}", "ns"),
    "longest": ("longest time in {}", "ns"),
    "share": ("share of time in {}", "1"),
}
#: Questions about a value over time.
OF_VALUE = ("first", "last", "min", "max", "mean")

_OF = Param("", "choice", STATISTICS, default="median")
_EXAMPLE = "{metric: throughput_bps, at_least: 10 Mbit/s}"


class ExpectationKeys(Section, frozen=True, kw_only=True):
    """The keys of an expectation."""

    metric: Node | None = None
    mode: Node | None = None
    value: Node | None = None
    measure: Node | None = None
    start: Node | None = field(name="from", default=None)
    until: Node | None = None
    scheme: Node | None = None
    flow: Node | None = None
    statistic: Node | None = field(name="of", default=None)
    at_least: Node | None = None
    at_most: Node | None = None


def kind_of(metric: Quantity) -> str:
    """The kind of value of a metric, for limits with units."""
    if metric.show_unit == "%":
        return "ratio"
    return KINDS.get(metric.unit, "number")


def read_expectations(value: Node, rows: list[SchemeRow], problems: Problems) -> list[Expectation]:
    """The expectations in base units; the scheme is None if the expectation applies to all."""
    if not isinstance(value, Sequence):
        problems.add(value.mark, f"must be a list of expectations such as [{_EXAMPLE}]")
        return []
    expectations = []
    for item in value.items:
        with problems.note():
            keys = problems.section(item, ExpectationKeys, _EXAMPLE.strip("{}"))
            expectations.append(_expectation(keys, rows, problems))
    return expectations


def _expectation(keys: ExpectationKeys, rows: list[SchemeRow], problems: Problems) -> Expectation:
    subjects = {"metric": keys.metric, "mode": keys.mode, "value": keys.value}
    asked = [key for key, written in subjects.items() if written is not None]
    if len(asked) > 1:
        raise Wrong(keys.mark, f"has {' and '.join(asked)}; write one of metric, mode and value")
    question: StateQuestion | None = None
    metric: Quantity
    written = keys.mode or keys.value
    if written is not None:
        question, metric = _question(asked[0], written, keys, problems)
    else:
        metric = _metric(keys)
    context = Context(problems)
    param = Param("", kind_of(metric))
    min_value = None if keys.at_least is None else Value(keys.at_least, param, context).read()
    max_value = None if keys.at_most is None else Value(keys.at_most, param, context).read()
    if keys.at_least is None and keys.at_most is None:
        problems.add(keys.mark, f"needs at_least or at_most; write for example {_EXAMPLE}")
    elif keys.at_least and min_value is not None and max_value is not None and min_value > max_value:
        problems.add(keys.at_least.mark, "is more than at_most")
    statistic = _OF.default
    if keys.statistic is not None:
        statistic = Value(keys.statistic, _OF, context).read()
    scheme = _scheme(keys.scheme, rows, problems)
    flow = _flow(keys.flow, rows, problems)
    if question is not None and flow == ALL:
        # A sender is one flow: the first one by default.
        flow = 1
    from narrows.documents.results import Expectation

    return Expectation(
        metric=metric.name,
        scheme=scheme,
        flow=flow,
        statistic=statistic,
        at_least=min_value,
        at_most=max_value,
        question=question,
        about=None if question is None else metric,
    )


def unit_of(value: str) -> tuple[str, str, float]:
    """The unit of a traced value by the suffix of its name, its display unit, and the factor between them."""
    for end, unit in (
        ("_bps", ("bit/s", "Mbit/s", 1e-6)),
        ("_bytes", ("bytes", "bytes", 1.0)),
        ("_ns", ("ns", "ms", 1e-6)),
        ("_packets", ("packets", "packets", 1.0)),
    ):
        if value.endswith(end):
            return unit
    return ("", "", 1.0)


def _question(
    what: str, written: Node, keys: ExpectationKeys, problems: Problems
) -> tuple[StateQuestion, Quantity]:
    """A question about the states of a sender, with its description in place of a metric's."""
    subject = written.text if isinstance(written, Scalar) else ""
    if not subject:
        raise Wrong(written.mark, f"must be the name of a {what}")
    measures = tuple(OF_MODE) if what == "mode" else OF_VALUE
    if keys.measure is None:
        raise Wrong(keys.mark, f"needs measure: {any_of(measures)}")
    measure = Value(keys.measure, Param("", "choice", measures), Context(problems)).require()
    span = Param("", "span", (), None, None, None, False, "", "")
    times = {
        name: Value(node, span, Context(problems)).read()
        for name, node in (("from_ns", keys.start), ("until_ns", keys.until))
        if node is not None
    }
    if what == "mode":
        label, unit = OF_MODE[measure]
        label = label.format(subject)
        shown = ("%", 100.0) if unit == "1" else ("ms", 1e-6) if unit else ("", 1.0)
    else:
        label = f"{measure} {subject}" if measure in ("first", "last", "mean") else f"{measure}imum {subject}"
        unit, show_unit, scale = unit_of(subject)
        shown = (show_unit, scale)
    if times:
        ends = [f"{key[:-3]} {show('span', value)}" for key, value in times.items() if value is not None]
        label += f" ({', '.join(ends)})"
    name = " ".join([what, subject, measure, *(f"{key}={value}" for key, value in times.items())])
    from narrows.documents.results import Quantity, StateQuestion

    about = Quantity(name=name, label=label, unit=unit, show_unit=shown[0], show_scale=shown[1])
    mode, value = (subject, None) if what == "mode" else (None, subject)
    return StateQuestion(mode=mode, value=value, measure=measure, **times), about


def _metric(keys: ExpectationKeys) -> Metric:
    known = registry.metrics() | {metric.name: metric for metric in playback.describe()}
    written = keys.metric
    name = written.text if isinstance(written, Scalar) else ""
    if written is None:
        raise Wrong(keys.mark, f"needs the key metric; write for example {_EXAMPLE}")
    if name not in known:
        hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
        raise Wrong(written.mark, f'unknown metric "{shorten(name)}"{hint}')
    return known[name]


def _scheme(written: Node | None, rows: list[SchemeRow], problems: Problems) -> str | None:
    if written is None:
        return None
    labels = [row.label for row in rows]
    name = written.text if isinstance(written, Scalar) else ""
    if rows and name not in labels:
        hint = did_you_mean(name, labels) or f"; it tests {any_of(labels)}".replace(" or ", " and ")
        text = f'the scenario does not test "{shorten(name)}"{hint}'
        problems.add(written.mark, text)
    return name


def _flow(written: Node | None, rows: list[SchemeRow], problems: Problems) -> int | str:
    """The number of a flow, or `all`."""
    if written is None:
        return ALL
    word = written.text if isinstance(written, Scalar) else ""
    if word == ALL or not rows:
        return ALL
    flows = rows[0].flows
    for flow in flows:
        if word in (str(flow.number), flow.label):
            return flow.number
    labels = [flow.label for flow in flows if flow.label]
    hint = did_you_mean(word, labels) or f"; write all, or a number from 1 to {len(flows)}"
    problems.add(written.mark, f'flow "{shorten(word)}" does not exist{hint}')
    return ALL
