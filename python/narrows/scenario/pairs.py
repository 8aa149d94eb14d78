"""The key `pairs`: each scheme of a list against each other one on the same network, and each alone.

A list of n schemes makes n rows of one flow, n of two flows of one scheme, and one of two flows for each
pair. If the two flows differ in anything (start times, hosts), pairs are run in both orders.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from narrows.scenario.problems import Problems
from narrows.scenario.schemes import Scheme
from narrows.scenario.sections import ScenarioKeys
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence

if TYPE_CHECKING:
    from narrows.scenario.flows import Flow

KEY = "pairs"
#: More schemes make more rows than a matrix may have combinations.
MOST = 40
#: The default flows of a scenario with pairs.
DEFAULT_FLOWS = "2"


def with_two_flows(tree: Mark) -> Mapping:
    """The key `flows` of a scenario with pairs: two flows that start together by default."""
    mark = tree.at("flows")
    count = {"count": Scalar(mark, DEFAULT_FLOWS)}
    return Mapping(mark, dict(count), {"count": mark})


def check(written: Node, keys: ScenarioKeys, problems: Problems) -> None:
    """Refuses keys that exclude pairs, and lists that are too short or too long."""
    if keys.schemes is not None:
        text = f"the list of {KEY} says which schemes are tested; remove one of the two"
        problems.add(keys.key_mark(keys.schemes), text)
    if not isinstance(written, Sequence) or not 2 <= len(written.items) <= MOST:
        problems.add(written.mark, f"must be a list of 2 to {MOST} schemes such as [cubic, bbr1]")


def tests(
    schemes: list[Scheme], flows: list[Flow], mark: Mark, problems: Problems
) -> list[tuple[list[str], list[tuple[Flow, Scheme]]]]:
    """The rows: the labels of the schemes under test, and the flows with their schemes."""
    tested = [flow for flow in flows if not flow.background]
    background = [(flow, flow.scheme) for flow in flows if flow.background and flow.scheme]
    named = next((flow for flow in tested if flow.scheme is not None), None)
    if named is not None or len(tested) != 2:
        what = "one of them names its scheme" if named is not None else f"there are {len(tested)}"
        problems.add(
            mark, f"{KEY} needs two flows that name no scheme, and {what}; write flows: {{count: 2}}"
        )
        return []
    first, second = tested
    pairs = [([scheme.label], [(first, scheme), *background]) for scheme in schemes]
    for number, scheme in enumerate(schemes):
        # Two flows without differences make the same run in either order.
        others = schemes[number:] if _alike(first, second) else schemes
        pairs += [
            ([scheme.label, other.label], [(first, scheme), (second, other), *background]) for other in others
        ]
    return pairs


def _alike(first: Flow, second: Flow) -> bool:
    return replace(first, label=None) == replace(second, label=None)
