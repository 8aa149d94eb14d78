"""The key `expect`: what must hold of the results."""

from __future__ import annotations

from typing import Any

from narrows.scenario import registry
from narrows.scenario.model import SchemeRow
from narrows.scenario.nodes import section
from narrows.scenario.params import Context, read_value
from narrows.scenario.problems import Problems, any_of, did_you_mean, join, shorten
from narrows.scenario.registry import Param
from narrows.scenario.written import Mapping, Scalar, Sequence

KNOWN = ("metric", "scheme", "flow", "of", "at_least", "at_most")
#: What is looked at of the values of the valid runs.
STATISTICS = ("median", "mean", "min", "max")
#: Kinds of values by the unit of a metric.
KINDS = {"bit/s": "rate", "ns": "span", "bytes": "bytes", "packets": "packets"}
ALL = "all"

_OF = Param("", "choice", STATISTICS, "median", None, None, False, "", "")
_EXAMPLE = "{metric: throughput_bps, at_least: 10 Mbit/s}"


def kind_of(metric: dict[str, Any]) -> str:
    """What kind of value a metric has, for limits with units."""
    if metric.get("show_unit") == "%":
        return "ratio"
    return KINDS.get(metric["unit"], "number")


def read_expectations(tree: Mapping, rows: list[SchemeRow], problems: Problems) -> list[dict[str, Any]]:
    """The expectations in base units; the scheme is None where it holds for each."""
    value = tree.entries["expect"]
    if not isinstance(value, Sequence):
        problems.add(value.mark, "expect", f"must be a list of expectations such as [{_EXAMPLE}]")
        return []
    found = []
    for index, item in enumerate(value.items):
        path = join("expect", index)
        mapping = section(item, path, KNOWN, problems, _EXAMPLE.strip("{}"))
        if mapping is not None and (one := _expectation(mapping, path, rows, problems)) is not None:
            found.append(one)
    return found


def _expectation(
    mapping: Mapping, path: str, rows: list[SchemeRow], problems: Problems
) -> dict[str, Any] | None:
    metric = _metric(mapping, path, problems)
    if metric is None:
        return None
    kind = kind_of(metric)
    limits: dict[str, Any] = {}
    for key in ("at_least", "at_most"):
        written = mapping.entries.get(key)
        limits[key] = None
        if written is not None:
            param = Param("", kind, (), None, None, None, False, "", "")
            limits[key] = read_value(written, join(path, key), param, Context(problems))
    if not {"at_least", "at_most"} & set(mapping.entries):
        problems.add(mapping.mark, path, f"needs at_least or at_most; write for example {_EXAMPLE}")
    elif None not in limits.values() and limits["at_least"] > limits["at_most"]:
        problems.add(mapping.entries["at_least"].mark, join(path, "at_least"), "is more than at_most")
    statistic = _OF.default
    if "of" in mapping.entries:
        statistic = read_value(mapping.entries["of"], join(path, "of"), _OF, Context(problems))
    scheme = _scheme(mapping, path, rows, problems)
    flow = _flow(mapping, path, rows, problems)
    return {"metric": metric["name"], "scheme": scheme, "flow": flow, "of": statistic, **limits}


def _metric(mapping: Mapping, path: str, problems: Problems) -> dict[str, Any] | None:
    known = registry.metrics()
    written = mapping.entries.get("metric")
    name = written.text if isinstance(written, Scalar) else ""
    if written is None:
        problems.add(mapping.mark, path, f"needs the key metric; write for example {_EXAMPLE}")
    elif name not in known:
        hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
        problems.add(written.mark, join(path, "metric"), f'unknown metric "{shorten(name)}"{hint}')
    return known.get(name)


def _scheme(mapping: Mapping, path: str, rows: list[SchemeRow], problems: Problems) -> str | None:
    written = mapping.entries.get("scheme")
    if written is None:
        return None
    labels = [row.label for row in rows]
    name = written.text if isinstance(written, Scalar) else ""
    if rows and name not in labels:
        hint = did_you_mean(name, labels) or f"; it tests {any_of(labels)}".replace(" or ", " and ")
        text = f'the scenario does not test "{shorten(name)}"{hint}'
        problems.add(written.mark, join(path, "scheme"), text)
    return name


def _flow(mapping: Mapping, path: str, rows: list[SchemeRow], problems: Problems) -> int | str:
    """The number of a flow, or `all`."""
    written = mapping.entries.get("flow")
    if written is None:
        return ALL
    word = written.text if isinstance(written, Scalar) else ""
    if word == ALL or not rows:
        return ALL
    flows = rows[0].flows
    for flow in flows:
        if word in (str(flow["flow"]), flow.get("label")):
            return int(flow["flow"])
    labels = [flow["label"] for flow in flows if "label" in flow]
    hint = did_you_mean(word, labels) or f"; write all, or a number from 1 to {len(flows)}"
    problems.add(written.mark, join(path, "flow"), f'there is no flow "{shorten(word)}"{hint}')
    return ALL
