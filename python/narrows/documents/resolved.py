"""The resolved scenario (`narrows/resolved/1`) and its cells (`narrows/cell/1`), which the agent runs.

Units, defaults and names are settled; times are in ns, sizes in bytes, rates in bit/s. Members that the
registry of the core declares (parameters of schemes, elements, traffic, the transport, settings of hosts) are
mappings by parameter. Empty members are not written, so that scenarios from before their introduction keep
their bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, TypeVar

from msgspec import UNSET, UnsetType, field, structs

from narrows.documents.components import Component, Element, Values
from narrows.documents.data import Count, Integer, Number, Part, from_data, to_data
from narrows.documents.programs import Plan
from narrows.documents.results import Expectation
from narrows.hashes import content_hash

FORMAT, CELL = "narrows/resolved/1", "narrows/cell/1"
FORWARD, BACKWARD = "forward", "backward"
DUMBBELL, GRAPH = "dumbbell", "graph"
#: The default detail of the transfers in the record.
ALL_TRANSFERS = "all"
#: The default traffic of flows: as much as the scheme allows.
BULK = "bulk"
#: The traffic of exchanges of a request and an answer.
REQUESTS = "requests"
#: The mark of rows with a model that Narrows trained; more rows than this are counted.
TRAINED_BY_NARROWS = "model trained by Narrows"
MOST_LISTED = 12
Params = dict[str, object]


class NamedFile(Part, frozen=True, kw_only=True):
    """A file beside the cells, which is known by its content."""

    name: str
    sha256: str


class Host(Part, frozen=True, kw_only=True):
    """A host of a network."""

    name: str
    settings: Params = field(default_factory=dict)


class Link(Part, frozen=True, kw_only=True):
    """One direction of a link: from node to node, with its elements in the order of packets."""

    name: str
    origin: str = field(name="from")
    target: str = field(name="to")
    elements: list[Element]


class Route(Part, frozen=True, kw_only=True):
    """The links from host to host."""

    origin: str = field(name="from")
    target: str = field(name="to")
    links: list[str]


class Network(Part, frozen=True, kw_only=True):
    """A network: a `dumbbell`, which is two lists of elements, or a `graph` of links and routes."""

    kind: str
    forward: list[Element] | None = None
    backward: list[Element] | None = None
    #: For a dumbbell, only if some have settings.
    hosts: list[Host] = field(default_factory=list)
    routers: list[str] | None = None
    links: list[Link] | None = None
    routes: list[Route] | None = None

    @property
    def is_known(self) -> bool:
        """False for the placeholder of a network that a record does not describe."""
        return self.forward is not None or bool(self.hosts)

    @property
    def is_dumbbell(self) -> bool:
        """True if all flows share one path."""
        return self.kind != GRAPH

    @property
    def directed(self) -> list[Link]:
        """All links, one for each direction."""
        if not self.is_dumbbell:
            return self.links or []
        pairs = (
            (FORWARD, self.forward, ("sender", "receiver")),
            (BACKWARD, self.backward, ("receiver", "sender")),
        )
        return [Link(name=name, origin=a, target=b, elements=own or []) for name, own, (a, b) in pairs]

    @property
    def elements(self) -> Iterator[Element]:
        """The elements of all links."""
        return (element for link in self.directed for element in link.elements)

    def ways(self, flow: Flow) -> tuple[list[Element], list[Element]]:
        """The elements that the data of a flow pass, and those that its acknowledgements pass."""
        if self.is_dumbbell:
            both = self.forward or [], self.backward or []
            return both if flow.direction == FORWARD else both[::-1]
        own = {link.name: link.elements for link in self.links or ()}
        routes = {(route.origin, route.target): route.links for route in self.routes or ()}
        origin, target = self.ends(flow)
        data, acks = (
            [element for name in routes.get(pair, ()) for element in own.get(name, ())]
            for pair in ((origin, target), (target, origin))
        )
        return data, acks

    def ends(self, flow: Flow) -> tuple[str, str]:
        """The hosts that send and receive the data of a flow."""
        names = [host.name for host in self.hosts] or ["sender", "receiver"]
        return flow.origin or names[0], flow.target or names[-1]

    def rtt_ns(self, flow: Flow) -> int:
        """The fixed delays of a flow's round trip."""
        return sum(element.fixed_delay_ns for way in self.ways(flow) for element in way) + flow.extra_rtt_ns

    def longest_rtt_ns(self, flows: Iterable[Flow]) -> int:
        """The longest fixed round trip among some flows; for a dumbbell, that of the path alone."""
        if self.is_dumbbell:
            return sum(element.fixed_delay_ns for element in self.elements)
        return max(map(self.rtt_ns, flows), default=0)


class Flow(Part, frozen=True, kw_only=True):
    """A flow. One under test runs the scheme of its row."""

    UNCHECKED: ClassVar[frozenset[str]] = frozenset({"program"})

    number: Count = field(name="flow")
    scheme: str
    params: Params
    #: The object file of a congestion control for the kernel.
    object_file: NamedFile | None = field(name="object", default=None)
    #: The program that is both ends of the flow.
    program: Plan | None = None
    #: Settings of the transport for this flow.
    transport: Params = field(default_factory=dict)
    #: Hosts, in a graph.
    origin: str | None = field(name="from", default=None)
    target: str | None = field(name="to", default=None)
    start_ns: Count
    #: The maximum deviation of the start in either direction, in each run; not in cells.
    start_spread_ns: Count = 0
    stop_ns: Count | None
    direction: str
    extra_rtt_ns: Count
    traffic: Component | None = None
    connections: Count = 1
    dscp: Count = 0
    background: bool = False
    label: str | None = None

    @classmethod
    def from_scheme(cls, scheme: str) -> Flow:
        """A flow of which only the scheme is known."""
        return cls(
            number=0, scheme=scheme, params={}, start_ns=0, stop_ns=None, direction=FORWARD, extra_rtt_ns=0
        )

    @property
    def is_forward(self) -> bool:
        """True if its data go from the sender of a dumbbell to the receiver."""
        return self.direction == FORWARD

    @property
    def has_own_model(self) -> bool:
        """True if it has a model that Narrows trained."""
        return Values(self.params).has_own_model

    @property
    def segments_file(self) -> str | None:
        """For a video player: the file with the segments that it played."""
        return (self.program and self.program.segments) or None

    @property
    def traffic_kind(self) -> str:
        """The kind of its traffic."""
        return BULK if self.traffic is None else self.traffic.kind


class Change(Part, frozen=True, kw_only=True):
    """A change of an element at a time."""

    at_ns: Count
    element: str
    values: Values = field(name="set")


class ScoreBounds(Part, frozen=True, kw_only=True):
    """A score is 1 up to the optimal value, 0 from the unacceptable one on, and linear between."""

    optimal: Number
    unacceptable: Number


class DelayBounds(Part, frozen=True, kw_only=True):
    """The bounds of the percentile of one-way delay that this share of the packets does not exceed."""

    share: Number
    optimal_ns: Count
    unacceptable_ns: Count


class Requirement(Part, frozen=True, kw_only=True):
    """The requirement of an application, for quality of outcome; absent parts are not required."""

    throughput_bps: Count | None = None
    loss: ScoreBounds | None = None
    delays: list[DelayBounds] = field(default_factory=list)


class Measure(Part, frozen=True, kw_only=True):
    """The part of a run that metrics cover, bottlenecks with separate metrics, and the requirement."""

    from_ns: Count | None = None
    to_ns: Count | None = None
    links: list[str] = field(default_factory=list)
    #: None is the example of the draft that defines quality of outcome.
    requirement: Requirement | None = None


WHOLE_RUN = Measure()


class Report(Part, frozen=True, kw_only=True):
    """Settings of the report."""

    pdf: bool


class RealPath(Part, frozen=True, kw_only=True):
    """The other host of runs between two hosts, and how to reach it (see `narrows.scenario.real_path`)."""

    other: str | None
    sender: str
    tunnel: str
    listener: str
    ports: list[int]
    address: str | None
    our_address: str | None
    interface: dict[str, str]
    mtu: Count | None
    prepare: bool
    retries: Count
    vanished: str


class Overlay(Part, frozen=True, kw_only=True):
    """Differences of a row or of a run from its scenario; absent members are unchanged."""

    topology: str | UnsetType = UNSET
    network: Network | UnsetType = UNSET
    base_rtt_ns: Count | UnsetType = UNSET
    duration_ns: Count | UnsetType = UNSET
    record: str | UnsetType = UNSET
    bin_ns: Count | UnsetType = UNSET
    sample_ns: Count | UnsetType = UNSET
    transport: Params | UnsetType = UNSET
    timeline: list[Change] | UnsetType = UNSET
    drawn: list[Drawn] | UnsetType = UNSET
    measure: Measure | UnsetType = UNSET
    transfers: str | UnsetType = UNSET


class Drawn(Part, frozen=True, kw_only=True):
    """The values drawn for one run: in words by address, and their effects."""

    values: dict[str, str]
    overlay: Overlay


class SchemeRow(Part, frozen=True, kw_only=True):
    """One row of the results: a scheme (or a mix of schemes) with its flows."""

    label: str
    slug: str
    flows: list[Flow]
    #: In a scenario of pairs, the labels of the schemes of the flows under test.
    pair: list[str] = field(default_factory=list)
    #: From a matrix: the differences of this row, its values as written, and those derived from them.
    overlay: Overlay | UnsetType = UNSET
    values: dict[str, str] = field(default_factory=dict)
    derived: dict[str, str] = field(default_factory=dict)

    @property
    def has_own_model(self) -> bool:
        """True if a flow under test has a model that Narrows trained."""
        return any(flow.has_own_model for flow in self.flows if not flow.background)

    @property
    def scheme_names(self) -> list[str]:
        """The schemes of the flows, without duplicates."""
        return list(dict.fromkeys(flow.scheme for flow in self.flows))


class Resolved(Part, frozen=True, kw_only=True):
    """A resolved scenario."""

    format: str
    name: str
    title: str | None
    question: str
    where: str
    topology: str
    network: Network
    base_rtt_ns: Count
    schemes: list[SchemeRow]
    duration_ns: Count
    runs: Count
    seed: Integer
    record: str
    bin_ns: Count
    sample_ns: Count
    transport: Params
    report: Report
    #: Changes of elements in order of time.
    timeline: list[Change] = field(default_factory=list)
    measure: Measure = WHOLE_RUN
    transfers: str = ALL_TRANSFERS
    expect: list[Expectation] = field(default_factory=list)
    real_path: RealPath | None = None
    #: The laws of the values that each run draws, in words, and the drawn values. The network is that of the
    #: medians.
    draw: dict[str, str] = field(default_factory=dict)
    drawn: list[Drawn] = field(default_factory=list)
    #: The addresses of the keys that a matrix varies, by name.
    matrix: dict[str, str] = field(default_factory=dict)

    @property
    def is_planned(self) -> bool:
        """False for an import, which has only the members that its records share."""
        return self.runs > 0

    @property
    def flows(self) -> list[Flow]:
        """The flows of the first row."""
        return self.schemes[0].flows if self.schemes else []

    @property
    def own_models_in_words(self) -> str:
        """The rows that have a model that Narrows trained; empty if there are none."""
        labels = [row.label for row in self.schemes if row.has_own_model]
        if not labels:
            return ""
        rows = ", ".join(labels) if len(labels) <= MOST_LISTED else f"{len(labels)} rows"
        return f"{rows}: {TRAINED_BY_NARROWS}"

    def row(self, label: str) -> SchemeRow | None:
        """The row of that label."""
        return next((row for row in self.schemes if row.label == label), None)

    def with_row(self, row: SchemeRow | None) -> Self:
        """The scenario of one row alone, with its matrix values."""
        return structs.replace(lay_over(self, row.overlay if row else UNSET), schemes=[row] if row else [])


Scenario = TypeVar("Scenario", bound=Resolved)


def lay_over(scenario: Scenario, overlay: Overlay | UnsetType) -> Scenario:
    """The scenario with an overlay applied."""
    if overlay is UNSET:
        return scenario
    changes = {name: value for name, value in structs.asdict(overlay).items() if value is not UNSET}
    return structs.replace(scenario, **changes)


def find_differences(base: Resolved, other: Resolved) -> Overlay:
    """The members of another scenario that differ from the first one."""
    first, second = structs.asdict(base), structs.asdict(other)
    names = Overlay.__struct_fields__
    return Overlay(**{name: second[name] for name in names if second[name] != first[name]})


class Cell(Part, frozen=True, kw_only=True):
    """One run of one row: what the agent runs."""

    format: str
    #: The name of its folder.
    id: str
    scheme: str
    run: Count
    where: str
    seed: Integer
    duration_ns: Count
    record: str
    bin_ns: Count
    sample_ns: Count
    network: Network
    flows: list[Flow]
    transport: Params
    timeline: list[Change] = field(default_factory=list)
    #: The values drawn for the run, in words.
    drawn: dict[str, str] = field(default_factory=dict)
    measure: Measure = WHOLE_RUN
    transfers: str = ALL_TRANSFERS

    def to_json(self) -> dict[str, Any]:
        """The cell in stored form."""
        content: dict[str, Any] = to_data(self)
        return content

    def to_text(self) -> str:
        """The cell in the agent's format."""
        return json.dumps(self.to_json())

    @property
    def hash(self) -> str:
        """The identity of the cell."""
        return content_hash(self.to_json())


# -- reading ---------------------------------------------------------------------------------------

#: Members that imports and earlier versions do not write.
_FLOW: Params = {"flow": 0, "scheme": "", "params": {}, "start_ns": 0, "stop_ns": None, "direction": FORWARD}
_FLOW |= {"extra_rtt_ns": 0}
_BOTH: Params = {"where": "", "network": {"kind": DUMBBELL}, "duration_ns": 0, "seed": 0, "record": ""}
_BOTH |= {"bin_ns": 0, "sample_ns": 0, "transport": {}}
_CELL: Params = {"format": CELL, **_BOTH, "id": "", "scheme": "", "run": 0, "flows": []}
_RESOLVED: Params = {"format": FORMAT, **_BOTH, "name": "", "title": None, "question": "", "topology": ""}
_RESOLVED |= {"base_rtt_ns": 0, "schemes": [], "runs": 0, "report": {"pdf": True}}
_ROW: Params = {"slug": "", "flows": []}
_REAL_PATH: Params = {"other": None, "sender": "here", "tunnel": "on", "listener": "auto", "ports": []}
_REAL_PATH |= {"address": None, "our_address": None, "interface": {}, "mtu": None, "prepare": False}
_REAL_PATH |= {"retries": 0, "vanished": "go-on"}


def read_resolved(data: object, root: str = "the file.scenario.resolved") -> Resolved:
    """Reads the resolved scenario of campaign.json. Raises `DamagedError` with the path, below `root`, of the
    mismatch."""
    return from_data(
        _complete(data, _RESOLVED, schemes=_complete_row, real_path=_complete_path), Resolved, root
    )


def read_cell(data: object, root: str = "the file.cell") -> Cell:
    """Reads the cell of run.json; raises `DamagedError` as above."""
    return from_data(_complete(data, _CELL, flows=_complete_flow), Cell, root)


def _complete_row(row: object) -> object:
    return _complete(row, _ROW, flows=_complete_flow)


def _complete_flow(flow: object) -> object:
    return _complete(flow, _FLOW)


def _complete_path(real_path: object) -> object:
    return _complete(real_path, _REAL_PATH)


def _complete(data: object, lacking: Params, **inner: Callable[[object], object]) -> object:
    """An object with its missing members filled in, and likewise the objects `inner`; null counts
    as absent."""
    if not isinstance(data, dict):
        return data
    content = {**lacking, **{name: value for name, value in data.items() if value is not None}}
    for name, complete in inner.items():
        value = content.get(name)
        if isinstance(value, list):
            content[name] = [complete(item) for item in value]
        elif value is not None:
            content[name] = complete(value)
    return content
