"""The JSON Schema and the reference: up to date, and consistent with the reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from narrows.errors import IsSweep
from narrows.scenario import loads, registry
from narrows.scenario.keys import KEYS
from narrows.scenario.reference import markdown
from narrows.scenario.schema import schema, schema_text
from narrows.scenario.shipped import list_scenarios
from test_mutations import BUSY, GRAPH, LOT

ROOT = Path(__file__).resolve().parent.parent.parent


def load(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def test_committed_schema_is_current() -> None:
    committed = (ROOT / "scenarios" / "scenario.schema.json").read_text()
    assert committed == schema_text(registry.load()), "run: make generated"


def test_committed_reference_is_current() -> None:
    committed = (ROOT / "docs" / "guide" / "scenario-reference.md").read_text()
    assert committed == markdown(registry.load()), "run: make generated"


def test_shipped_scenarios_satisfy_the_schema() -> None:
    validator = jsonschema.Draft7Validator(schema(registry.load()))
    for one in list_scenarios():
        assert not list(validator.iter_errors(load(one.path.read_text()))), one.name


def test_examples_of_keys_are_accepted() -> None:
    least = {
        "schema": "narrows/scenario/1",
        "question": "Why?",
        "path": "{forward: [{rate: 12 Mbit/s, queue: {droptail: 60 kB}}, {delay: 20 ms}]}",
        "schemes": "[reno]",
        "duration": "30 s",
    }
    for key in KEYS.values():
        # A network replaces a path, pairs replace schemes.
        replaced = {"network": "path", "pairs": "schemes"}.get(key.name)
        base = {name: value for name, value in least.items() if name != replaced}
        text = "".join(f"{name}: {value}\n" for name, value in (base | {key.name: key.example}).items())
        if key.name == "sweep":
            with pytest.raises(IsSweep):
                loads(text, "example.yaml")
        else:
            loads(text, "example.yaml")


GOOD = """\
schema: narrows/scenario/1
question: Does it work?
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 1.5 bdp}}
    - {rate: {steps: {low: 1 Mbit/s, high: 2 Mbit/s}}, queue: toy_aqm}
    - {delay: 20 ms}
    - {loss: 0.1 %}
schemes: ["linux:cubic", reno, {scheme: cubic, beta: 0.8, hystart: false}]
flows: {count: 3, interval: 2 s, extra_rtt: [0 ms, 10 ms, 20 ms]}
duration: 10 s
transport: {ack_every: 4}
report: {pdf: false}
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("12 Mbit/s", "12"),
        ("12 Mbit/s", "-12 Mbit/s"),
        ("12 Mbit/s", "12 ms"),
        ("droptail", "droptial"),
        ("reno,", "remo,"),
        ("beta: 0.8", "beta: 8"),
        ("beta: 0.8", "betta: 0.8"),
        ("duration: 10 s", ""),
        ("ack_every: 4", "ack_every: 4.5"),
        ("{delay: 20 ms}", "{delay: 20 ms, loss: 1 %}"),
        ("toy_aqm", "{toy_aqm: {mode: mild}}"),
        ("pdf: false", "pdf: 3"),
        ("question:", "matrix: {}\nquestion:"),
        ("question:", "matrix: {runs: 3}\nquestion:"),
        ("{scheme: cubic,", "{schem: cubic,"),
        ("{scheme: cubic,", "{scheme: cubik,"),
        ("{delay: 20 ms}", "{dealy: 20 ms}"),
        ("{delay: 20 ms}", "{}"),
        ("{delay: 20 ms}", "20 ms"),
        ("rate: 12 Mbit/s, ", ""),
        ("linux:cubic", "linux:"),
        ("flows: {count: 3,", "flows: {cont: 3,"),
    ],
)
def test_editors_see_the_same_mistakes(fixed_registry: registry.Registry, before: str, after: str) -> None:
    validator = jsonschema.Draft7Validator(schema(fixed_registry))
    assert not list(validator.iter_errors(load(GOOD)))
    assert before in GOOD
    told(validator, load(GOOD.replace(before, after, 1)))


def told(validator: jsonschema.Draft7Validator, scenario: Any) -> None:
    """The mistakes, each reported at the value or key itself, not for failing alternatives."""
    errors = list(validator.iter_errors(scenario))
    assert errors
    for error in errors:
        assert error.validator not in ("anyOf", "oneOf", "not"), error.message
        assert not error.context


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (BUSY, "star:", "sart:"),
        (BUSY, "access:", "acces:"),
        (BUSY, "{down:", "{dwon:"),
        (BUSY, "tcp_sack: 0", "tcp_sack: 7"),
        (BUSY, "mtu: 1400 B", "mtu: 1400"),
        (BUSY, "interval: 1 s", "interval: 1"),
        (BUSY, "{cbr: 2 Mbit/s}", "{cbr: 2 ms}"),
        (BUSY, "{web: 1 Mbit/s}", "{wbe: 1 Mbit/s}"),
        (BUSY, "dscp: EF", "dscp: EFF"),
        (BUSY, "cut:", "ct:"),
        (BUSY, "{at: 4 s, stop: pair}", "{at: 4 s}"),
        (BUSY, "of: max", "of: most"),
        (BUSY, ", at_least: 1 Mbit/s", ""),
        (BUSY, "name: slow", "name: [slow]"),
        (GRAPH, "[a, r1]", "[a]"),
        (GRAPH, "hosts:", "host:"),
        (GRAPH, "elements:", "element:"),
        (GRAPH, "[1, 30]", "30"),
        (LOT, "hops: 2", "hops: two"),
        (LOT, "[4 s, 2 Mbit/s]", "[4 s, 2 ms]"),
        (LOT, "[3, 7]", "[3, x]"),
        (LOT, "overhead: 38 B", "overhead: 38"),
        (LOT, "[2 s, 3 ms]", "[2 s]"),
    ],
)
def test_editors_see_mistakes_in_networks_and_schedules(
    fixed_registry: registry.Registry, text: str, before: str, after: str
) -> None:
    validator = jsonschema.Draft7Validator(schema(fixed_registry))
    assert not [error.message for error in validator.iter_errors(load(text))]
    assert before in text
    told(validator, load(text.replace(before, after, 1)))


def test_the_reference_names_everything(fixed_registry: registry.Registry) -> None:
    page = markdown(fixed_registry)
    known = fixed_registry
    families = (known.schemes, known.queues, known.links, known.rates, known.traffic)
    params = [param.name for param in (*known.bottleneck, *known.host_settings)]
    for name in [*KEYS] + params + [name for family in families for name in family]:
        assert f"`{name}`" in page
