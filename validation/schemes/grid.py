"""The paths on which implementations of the same rules are compared, several in one emulated cell.

Each path is a link of its own between two hosts of its own, with one flow. A router that no packet ever
needs joins them, because a network is one piece.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Packets on the wire.
PACKET = 1500
#: Delay of the links to the router that nobody uses: routes take the least delay.
_FAR = "10 s"


@dataclass(frozen=True)
class Place:
    """One path."""

    rate_mbps: float
    rtt_ms: float
    #: Room of the queue in bandwidth-delay products.
    buffer_bdp: float
    loss_percent: float = 0.0

    @property
    def bdp_packets(self) -> float:
        """Packets that fill the path."""
        return self.rate_mbps * 1e6 * self.rtt_ms / 1000 / (8 * PACKET)

    @property
    def queue_packets(self) -> int:
        """Room of the queue; never less than two packets."""
        return max(2, round(self.buffer_bdp * self.bdp_packets))

    @property
    def name(self) -> str:
        """In words."""
        loss = f", {self.loss_percent:g} % loss" if self.loss_percent else ""
        return f"{self.rate_mbps:g} Mbit/s, {self.rtt_ms:g} ms, {self.buffer_bdp:g} BDP{loss}"


#: 10 to 200 Mbit/s, 10 to 100 ms, 0.25 to 4 BDP, 0 to 1 % loss; 590 Mbit/s together.
GRID = (
    Place(10, 10, 1),
    Place(10, 40, 0.25),
    Place(10, 100, 1),
    Place(20, 20, 4),
    Place(20, 50, 1, 0.1),
    Place(20, 100, 0.5, 1),
    Place(50, 10, 2),
    Place(50, 40, 0.5),
    Place(50, 100, 1, 0.01),
    Place(50, 30, 0.25, 0.5),
    Place(100, 20, 1),
    Place(200, 10, 1),
)
SECONDS = 25
#: Most that one cell carries. The whole grid in one cell fills two processors, and every run is invalid.
MOST_MBPS = 300
#: The same for schemes that react to fractions of a millisecond, and so to every wait for a processor.
MOST_MBPS_SENSITIVE = 100
SENSITIVE = ("lp",)

#: For a look at a busy machine: it says little about the schemes.
QUICK_GRID = (Place(4, 20, 1), Place(6, 40, 0.5), Place(5, 20, 2), Place(8, 30, 1, 0.5))
QUICK_SECONDS = 8


def groups(places: tuple[Place, ...], scheme: str) -> list[tuple[int, ...]]:
    """The places of each cell of a scheme, by their numbers in the order of the grid."""
    most = MOST_MBPS_SENSITIVE if scheme.rpartition(":")[2] in SENSITIVE else MOST_MBPS
    found: list[tuple[int, ...]] = []
    current: tuple[int, ...] = ()
    for index, place in enumerate(places):
        load = sum(places[number].rate_mbps for number in current)
        if current and load + place.rate_mbps > most:
            found.append(current)
            current = ()
        current += (index,)
    return [*found, current]


def scenario(scheme: str, places: tuple[Place, ...], seconds: int, seed: int) -> str:
    """The scenario in which a scheme meets all places at once. Chance is the same for all schemes."""
    numbers = range(1, len(places) + 1)
    hosts = ", ".join(f"a{n}, b{n}" for n in numbers)
    lines = [
        "schema: narrows/scenario/1",
        "question: Do implementations of the same rules do the same?",
        "where: emulate",
        "network:",
        f"  hosts: [{hosts}]",
        "  routers: [nowhere]",
        "  links:",
    ]
    for n, place in zip(numbers, places, strict=True):
        lines.append(f"    - {_link(n, place)}")
        lines += [f"    - {{between: [{side}{n}, nowhere], elements: [{{delay: {_FAR}}}]}}" for side in "ab"]
    lines.append("flows:")
    lines += [f'  - {{from: a{n}, to: b{n}, scheme: "{scheme}"}}' for n in numbers]
    lines += [f"duration: {seconds} s", "record: packets", "sample: 10 ms", f"seed: {seed}"]
    return "\n".join(lines) + "\n"


def _link(number: int, place: Place) -> str:
    forward = [f"{{rate: {place.rate_mbps:g} Mbit/s, queue: {{droptail: {place.queue_packets} packets}}}}"]
    if place.loss_percent:
        forward.append(f"{{loss: {place.loss_percent:g} %}}")
    half = f"{{delay: {place.rtt_ms / 2:g} ms}}"
    forward.append(half)
    return (
        f"{{between: [a{number}, b{number}], name: path{number},"
        f" forward: [{', '.join(forward)}], backward: [{half}]}}"
    )
