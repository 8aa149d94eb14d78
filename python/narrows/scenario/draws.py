"""The key `draw`: values of the network that are drawn for each run.

`{path.forward.0.rate: {uniform: [5 Mbit/s, 20 Mbit/s]}}` draws a rate for each run. All schemes (and all rows
of a matrix) of a run meet the same values, which depend only on the seed of the run and the address of the
key. Each run is resolved as if its values had been written, so amounts in bdp follow them.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist

from msgspec import UNSET, structs

from narrows.documents.resolved import Drawn, find_differences
from narrows.errors import Problem, ScenarioError, UsageError
from narrows.scenario import overrides, real_path
from narrows.scenario.keys import LAWS
from narrows.scenario.matrix import in_words
from narrows.scenario.model import Scenario, run_seed
from narrows.scenario.problems import Problems, Wrong, unknown_key
from narrows.scenario.quantity import UNITS, Quantity, QuantityError, parse, show
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence
from narrows.text import any_of, shorten

KEY = "draw"
#: Roots of keys that may be drawn: the network is the environment of a run, everything else is the
#: experiment.
ROOTS = ("path", "network", "topology", "hosts")
#: Each run is resolved separately.
MOST_RUNS = 1000
_EXAMPLE = "{path.forward.0.rate: {uniform: [5 Mbit/s, 20 Mbit/s]}}"
#: Base units in which drawn values are written.
_BASE = {"rate": "bit/s", "span": "ns", "bytes": "B", "packets": "packets"}


@dataclass(frozen=True)
class Law:
    """A law for the value at one address."""

    path: str
    #: As written in the scenario.
    text: str
    written: Node
    name: str
    values: tuple[Node, ...]
    #: For numbers: their kind of quantity and their values in base units.
    kind: str = ""
    numbers: tuple[Fraction, ...] = ()

    def at(self, share: float) -> tuple[Node, str]:
        """The value at the quantile `share`, and its written form."""
        if self.name == "choice":
            value = self.values[min(int(share * len(self.values)), len(self.values) - 1)]
            return value, in_words(value)
        low, high = (float(number) for number in self.numbers)
        if self.name == "uniform":
            amount = low + share * (high - low)
        elif self.name == "loguniform":
            amount = low * math.exp(share * math.log(high / low))
        else:
            # Values of 0 or less are excluded; the last of 2^53 shares still has a value.
            law = NormalDist(low, high)
            below = law.cdf(0.0)
            amount = law.inv_cdf(min(max(below + share * (1 - below), 2**-53), 1 - 2**-53))
        text, shown = _write(self.kind, amount)
        return Scalar(self.written.mark, text), shown


def share_of(seed: int, path: str) -> float:
    """The random number of one address in a run: 53 bits of SHA-256 of `narrows/draw/1:SEED:ADDRESS`, in [0,
    1).
    """
    digest = hashlib.sha256(f"narrows/draw/1:{seed}:{path}".encode()).digest()
    return float((int.from_bytes(digest[:8], "big") >> 11) / 2**53)


def resolve_all(tree: Mapping, resolve: Callable[[Mapping, bool], Scenario]) -> Scenario:
    """Resolves a scenario once with the median of every law, and then for each of its runs with the drawn
    values (True).
    """
    entries = {key: value for key, value in tree.entries.items() if key != KEY}
    base = Mapping(tree.mark, entries, tree.key_marks)
    problems = Problems()
    laws = _laws(tree.entries[KEY], problems)
    if real_path.is_wanted(tree):
        text = "a real path is what it is, and nothing of it can be drawn; remove it, or run elsewhere"
        problems.add(tree.key_marks[KEY], text)
    problems.raise_if_any()
    middle, _ = _with_values(base, laws, lambda _: 0.5)
    scenario = resolve(middle, False)
    if scenario.runs > MOST_RUNS:
        text = f"every run is resolved by itself, and {scenario.runs} are more than {MOST_RUNS}"
        raise ScenarioError([Problem(str(tree.key_marks[KEY]), KEY, text)])
    runs: list[Drawn] = []
    for run in range(1, scenario.runs + 1):
        seed = run_seed(scenario.seed, run)
        placed, shown = _with_values(base, laws, lambda path, seed=seed: share_of(seed, path))  # type: ignore[misc]
        one = resolve(placed, True)
        overlay = structs.replace(find_differences(scenario, one), drawn=UNSET)
        runs.append(Drawn(values=shown, overlay=overlay))
        scenario.files.merge(one.files)
    # Drawn values make runs differ.
    warnings = [warning for warning in scenario.warnings if warning.key != "runs"]
    return structs.replace(scenario, draw={law.path: law.text for law in laws}, drawn=runs, warnings=warnings)


def _with_values(
    base: Mapping, laws: list[Law], share: Callable[[str], float]
) -> tuple[Mapping, dict[str, str]]:
    """A copy of the scenario with a value in place of every law, and the values in words."""
    changed = copy.deepcopy(base)
    by_path = {law.path: law for law in laws}
    shown: dict[str, str] = {}
    for law in laws:
        source = by_path[in_words(law.values[0])] if law.name == "same" else law
        value, shown[law.path] = source.at(share(source.path))
        option = str(law.written.mark)
        try:
            overrides.place(changed, law.path, value, option)
        except UsageError as error:
            text = str(error).removeprefix(f"{option}: ")
            raise ScenarioError([Problem(option, f"{KEY}.{law.path}", text)]) from None
    return changed, shown


def _laws(value: Node, problems: Problems) -> list[Law]:
    mapping = problems.expect_mapping(value, _EXAMPLE)
    result: list[Law] = []
    for key, mark, written in mapping or ():
        with problems.note():
            if key.split(".")[0] not in ROOTS or "." not in key:
                raise Wrong(mark, f"only values inside of {any_of(ROOTS)} can be drawn; see {_EXAMPLE}")
            result.append(read_law(written, key))
    if mapping is not None and not mapping.entries:
        problems.add(mapping.mark, f"needs a key with a law, such as {_EXAMPLE}")
    laws = {law.path: law for law in result}
    for law in result:
        if law.name != "same":
            continue
        other = laws.get(in_words(law.values[0]))
        if not problems.entries and (other is None or other.name == "same"):
            text = f"{shorten(in_words(law.values[0]))} is not the address of another key of {KEY} with a law"
            problems.add(law.written.mark, text)
    return result


def read_law(written: Node, path: str) -> Law:
    """Reads the law for an address; raises `Wrong`."""
    if not isinstance(written, Mapping) or len(written.entries) != 1:
        raise Wrong(written.mark, f"must name one law ({any_of(LAWS)}), such as in {_EXAMPLE}")
    ((name, mark, inner),) = written
    if name not in LAWS:
        raise unknown_key(mark, name, LAWS)
    values = tuple(inner.items) if isinstance(inner, Sequence) else (inner,)
    law = Law(path, f"{name} {in_words(inner)}", written, name, values)
    if name == "choice":
        if not isinstance(inner, Sequence) or not values:
            raise Wrong(inner.mark, "must be a list of values such as [10 ms, 100 ms]")
        return law
    if name == "same":
        if not isinstance(inner, Scalar):
            raise Wrong(inner.mark, f"must be {LAWS[name]}")
        return law
    if len(values) != 2:
        raise Wrong(inner.mark, f"takes two values: {LAWS[name]}")
    return _with_numbers(law, inner, _quantity(values[0]), _quantity(values[1]))


def _quantity(value: Node) -> Quantity:
    if not isinstance(value, Scalar):
        raise Wrong(value.mark, "must be an amount such as 20 ms")
    try:
        if value.number is not None and math.isfinite(value.number):
            return Quantity("number", Fraction(value.text), value.text)
        return parse(value.text)
    except (QuantityError, ValueError) as error:
        raise Wrong(value.mark, str(error)) from None


def _with_numbers(law: Law, inner: Node, first: Quantity, second: Quantity) -> Law:
    """A law of two numbers."""
    if first.kind != second.kind:
        raise Wrong(inner.mark, f"{shorten(first.text)} and {shorten(second.text)} are not of one kind")
    if law.name == "normal" and (first.value <= 0 or second.value < 0):
        raise Wrong(inner.mark, "the mean must be above 0 and the standard deviation not below")
    if law.name != "normal" and first.value > second.value:
        text = f"{shorten(first.text)} is more than {shorten(second.text)}; write the lower one first"
        raise Wrong(inner.mark, text)
    if law.name == "loguniform" and first.value <= 0:
        raise Wrong(inner.mark, f"{shorten(first.text)} must be above 0 where ratios count")
    if law.name == "normal" and second.value == 0:
        law = replace(law, name="uniform")
        second = first
    return replace(law, kind=first.kind, numbers=(first.value, second.value))


def _write(kind: str, amount: float) -> tuple[str, str]:
    """An amount in base units in the notation of scenarios, to the last whole unit, and for display."""
    if kind in _BASE:
        whole = round(amount)
        return f"{whole} {_BASE[kind]}", _round(kind, whole)
    if kind == "number":
        return f"{amount:.12g}", f"{amount:.6g}"
    unit = "%" if kind == "ratio" else kind
    factor = float(1 / UNITS[unit][1])
    return f"{amount * factor:.12g} {unit}", f"{amount * factor:.6g} {unit}"


def _round(kind: str, whole: int) -> str:
    """An amount with five digits and a suitable unit; the network keeps all digits."""
    digits = max(len(str(abs(whole))) - 5, 0)
    return show(kind, round(whole, -digits))
