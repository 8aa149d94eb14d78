"""The paths on which implementations of the same rules are compared, several in one emulated cell.

Each path is a separate link between two separate hosts, with one flow. An unused router joins them, because a
network must be connected.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Packets on the wire.
PACKET = 1500
#: Delay of the links to the unused router: routes take the least delay.
_FAR = "10 s"


@dataclass(frozen=True)
class GridPath:
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
    GridPath(10, 10, 1),
    GridPath(10, 40, 0.25),
    GridPath(10, 100, 1),
    GridPath(20, 20, 4),
    GridPath(20, 50, 1, 0.1),
    GridPath(20, 100, 0.5, 1),
    GridPath(50, 10, 2),
    GridPath(50, 40, 0.5),
    GridPath(50, 100, 1, 0.01),
    GridPath(50, 30, 0.25, 0.5),
    GridPath(100, 20, 1),
    GridPath(200, 10, 1),
)
SECONDS = 25
#: Maximum rate of one cell. The whole grid in one cell fills two processors, and every run is invalid.
MOST_MBPS = 300
#: The same for schemes that react to fractions of a millisecond, and therefore to every wait for a processor.
MOST_MBPS_SENSITIVE = 100
SENSITIVE = ("lp",)

#: For external programs, each flow of which is two more computing processes.
PROGRAM_GRID = (
    GridPath(10, 10, 1),
    GridPath(10, 40, 0.25),
    GridPath(10, 100, 1),
    GridPath(20, 20, 4),
    GridPath(20, 50, 1, 0.1),
    GridPath(20, 100, 0.5, 1),
    GridPath(50, 40, 0.5),
)
MOST_MBPS_PROGRAM = 60
#: For calls, whose video never needs more than 2.5 Mbit/s.
CALL_GRID = (
    GridPath(0.6, 100, 3),
    GridPath(1, 40, 4),
    GridPath(1, 100, 3),
    GridPath(1, 100, 3, 1),
    GridPath(1.5, 200, 1),
    GridPath(2, 60, 2),
)
CALLS = ("gcc", "pion:gcc", "chromium:vp8")
#: Programs of which two processors can run only one flow beside the emulator.
HEAVY = ("chromium",)

#: For a quick look on a busy machine: it says little about the schemes.
QUICK_GRID = (GridPath(4, 20, 1), GridPath(6, 40, 0.5), GridPath(5, 20, 2), GridPath(8, 30, 1, 0.5))
QUICK_SECONDS = 8
QUICK_PROGRAM_GRID, QUICK_CALL_GRID = QUICK_GRID[:2], CALL_GRID[2:3]


def paths_with_programs(scheme: str, *, quick: bool) -> tuple[GridPath, ...]:
    """The paths on which a scheme is compared with external programs."""
    if scheme in CALLS:
        return QUICK_CALL_GRID if quick else CALL_GRID
    return QUICK_PROGRAM_GRID if quick else PROGRAM_GRID


def _most(scheme: str) -> tuple[float, int]:
    """Maximum rate in Mbit/s and number of flows of one cell of a scheme."""
    program, _, variant = scheme.partition(":")
    if program in HEAVY:
        return MOST_MBPS_PROGRAM, 1
    if variant and program not in ("linux", "bpf"):
        return MOST_MBPS_PROGRAM, 6
    return MOST_MBPS_SENSITIVE if (variant or program) in SENSITIVE else MOST_MBPS, 1000


def groups(grid_paths: tuple[GridPath, ...], scheme: str) -> list[tuple[int, ...]]:
    """The paths of each cell of a scheme, by their numbers in the order of the grid."""
    most, flows = _most(scheme)
    found: list[tuple[int, ...]] = []
    current: tuple[int, ...] = ()
    for index, grid_path in enumerate(grid_paths):
        load = sum(grid_paths[number].rate_mbps for number in current)
        if current and (load + grid_path.rate_mbps > most or len(current) == flows):
            found.append(current)
            current = ()
        current += (index,)
    return [*found, current]


def scenario(scheme: str, grid_paths: tuple[GridPath, ...], seconds: int, seed: int) -> str:
    """The scenario in which a scheme meets all paths at once. Randomness is the same for all schemes."""
    numbers = range(1, len(grid_paths) + 1)
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
    for n, grid_path in zip(numbers, grid_paths, strict=True):
        lines.append(f"    - {_link(n, grid_path)}")
        lines += [f"    - {{between: [{side}{n}, nowhere], elements: [{{delay: {_FAR}}}]}}" for side in "ab"]
    lines.append("flows:")
    lines += [f'  - {{from: a{n}, to: b{n}, scheme: "{scheme}"}}' for n in numbers]
    lines += [f"duration: {seconds} s", "record: packets", "sample: 10 ms", f"seed: {seed}"]
    return "\n".join(lines) + "\n"


def _link(number: int, grid_path: GridPath) -> str:
    forward = [
        f"{{rate: {grid_path.rate_mbps:g} Mbit/s, queue: {{droptail: {grid_path.queue_packets} packets}}}}"
    ]
    if grid_path.loss_percent:
        forward.append(f"{{loss: {grid_path.loss_percent:g} %}}")
    half = f"{{delay: {grid_path.rtt_ms / 2:g} ms}}"
    forward.append(half)
    return (
        f"{{between: [a{number}, b{number}], name: path{number},"
        f" forward: [{', '.join(forward)}], backward: [{half}]}}"
    )
