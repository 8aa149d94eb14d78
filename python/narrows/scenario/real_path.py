"""The key `real_path`: the other host of runs with `where: hosts`, and the connection of the two ends.

The network between them is unknown. The key `path` describes the path of the other planes: it is read, so
that its mistakes are reported, but not applied.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from narrows.documents.components import Element
from narrows.errors import UsageError
from narrows.scenario.declarations.declaration import Key
from narrows.scenario.declarations.reader import Reader, Section
from narrows.scenario.keys import FORMAT, REAL_PATH
from narrows.scenario.network import BACKWARD, DUMBBELL, FORWARD, Network
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.sections import ScenarioKeys
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import shorten

if TYPE_CHECKING:
    from narrows.documents import resolved

KEY = "real_path"
#: The corresponding value of `where`.
WHERE = "hosts"
#: The machines: the one that runs the campaign, and the other one.
LOCAL, REMOTE = "here", "there"
BOTH, AUTO = "both", "auto"
#: Without a tunnel.
OFF = "off"
#: A reaction to the loss of the other host.
STOP = "stop"
#: The kind of the elements of an unknown network.
KIND = "real"
#: A rounded number that leaves the agent a source port.
MOST_PORTS = 60
#: Keys that affect the course of a campaign, but not its results.
NOT_OF_RESULTS = ("retries", "vanished")
_EXAMPLE = "{other: user@host}"
#: The ports that are examined by default.
PORTS = tuple(REAL_PATH["ports"].default)


def is_wanted(tree: Mapping) -> bool:
    """True if a written scenario is for two hosts."""
    where = ScenarioKeys.from_mapping(tree).where
    return isinstance(where, Scalar) and where.text == WHERE


def asks_for_both(tree: Mapping) -> bool:
    """True if every scheme must run in both directions."""
    written = tree.entries.get(KEY)
    sender = written.entries.get("sender") if isinstance(written, Mapping) else None
    return is_wanted(tree) and isinstance(sender, Scalar) and sender.text == BOTH


def both_directions() -> tuple[str, list[Node]]:
    """The matrix axis for which `sender: both` is short."""
    mark = Mark(f"{KEY}.sender", path=f"{KEY}.sender")
    return f"{KEY}.sender", [Scalar(mark, LOCAL), Scalar(mark, REMOTE)]


def read(tree: Mapping, problems: Problems) -> resolved.RealPath | None:
    """The key, with defaults filled in; None if the scenario is not for two hosts."""
    written: Node = tree.entries.get(KEY, Mapping(tree.mark.at(KEY)))
    mapping = problems.expect_mapping(written, _EXAMPLE)
    result = _Reader(FORMAT, problems).section(mapping or Mapping(written.mark), KEY)
    if not is_wanted(tree):
        return None
    from narrows.documents.resolved import RealPath

    entry = RealPath(**result)
    if mapping is not None and "other" not in mapping.entries:
        text = "needs the other host; name it with --host user@host, or write real_path: {other: user@host}"
        problems.add(written.mark, text)
    if entry.tunnel == OFF:
        _check_bare(written, result, problems)
    addresses = [address for address in (entry.address, entry.our_address) if address is not None]
    if len({ipaddress.ip_address(address).version for address in addresses}) > 1:
        problems.add(
            written.mark, "address and our_address are of different versions of IP; give two of the same"
        )
    return entry


def _check_bare(written: Node, entry: Section, problems: Problems) -> None:
    """Refuses settings that require a tunnel."""
    marks = written.entries if isinstance(written, Mapping) else {}
    for key in ("listener", "interface", "mtu"):
        if entry[key] != REAL_PATH[key].default:
            text = "is a setting of the tunnel, and there is none with tunnel: off; remove it"
            problems.add(marks[key].mark if key in marks else written.mark.at(f"{KEY}.{key}"), text)
    for key in ("address", "our_address"):
        if entry[key] is not None and ipaddress.ip_address(entry[key]).version != 4:
            text = "without a tunnel flows need addresses of IPv4; give one, or write tunnel: on"
            problems.add(marks[key].mark if key in marks else written.mark.at(f"{KEY}.{key}"), text)


class _Reader(Reader):
    """Reads the kinds of values that only this key has."""

    def read_host(self, value: Node, _key: Key) -> str:
        text = value.text if isinstance(value, Scalar) and not value.is_null else ""
        if not text or text.startswith("-") or any(letter.isspace() for letter in text):
            raise Wrong(value.mark, "must be a host as ssh takes it, such as user@host")
        return text

    def read_address(self, value: Node, _key: Key) -> str:
        text = value.text if isinstance(value, Scalar) and not value.is_null else ""
        try:
            return str(ipaddress.ip_address(text))
        except ValueError:
            text = f'"{shorten(text)}" is not an address; write it in figures, such as 192.0.2.7'
            raise Wrong(value.mark, text) from None

    def read_ports(self, value: Node, _key: Key) -> list[int]:
        items = value.items if isinstance(value, Sequence) else [value]
        texts = [item.text if isinstance(item, Scalar) else "" for item in items]
        try:
            return list(ports_of(",".join(texts)))
        except ValueError as error:
            raise Wrong(value.mark, str(error)) from None

    def read_interfaces(self, value: Node, _key: Key) -> dict[str, str]:
        mapping = mapping_of(value, "{here: eth0, there: wwan0}")
        interfaces: dict[str, str] = {}
        for key, written in self.problems.check_keys(mapping, (LOCAL, REMOTE)):
            name = written.text if isinstance(written, Scalar) and not written.is_null else ""
            if not 0 < len(name) < 16 or "/" in name or any(letter.isspace() for letter in name):
                # The kernel's own limits (IFNAMSIZ, dev_valid_name).
                self.problems.add(written.mark, "must be the name of a network interface, such as eth0")
            else:
                interfaces[key] = name
        return interfaces


def ports_of(text: str) -> tuple[int, ...]:
    """`443,5000-5003` as numbers, in the order given; `ValueError` with a clause that states the mistake."""
    result: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) <= 65535):
            raise ValueError(f"{part.strip()!r} is neither a port nor a range of ports; write 443,5000-5003")
        if len(result) + int(last) - int(first) + 1 > MOST_PORTS:
            raise ValueError(f"more than {MOST_PORTS} ports; name fewer")
        result |= dict.fromkeys(range(int(first), int(last) + 1))
    return tuple(result)


def resolve_network(network: Network, entry: resolved.RealPath) -> resolved.Network:
    """The network of cells: the machine at either end, without anything between them."""
    from narrows.documents import resolved

    ends = (LOCAL, str(entry.other))
    if entry.sender != LOCAL:
        ends = ends[::-1]
    forward, backward = (
        [Element(KIND, {"from": origin, "to": target}, f"{name}.0")]
        for name, (origin, target) in ((FORWARD, ends), (BACKWARD, ends[::-1]))
    )
    hosts = network.resolve([]).hosts if network.kind == DUMBBELL else []
    return resolved.Network(kind=DUMBBELL, forward=forward, backward=backward, hosts=hosts)


def sender_is_local(cell: resolved.Cell) -> bool:
    """True if this machine is the sender of a cell's `forward` flows."""
    return next(cell.network.elements).text("from") == LOCAL


def check(tree: Mapping, network: Network, entry: resolved.RealPath, problems: Problems) -> None:
    """Refuses settings that other planes support and a real path does not."""
    # Noise applies to simulated hosts, and has no effect here.
    made = [settings.keys() - {"noise"} for settings in network.settings.values()]
    if entry.tunnel == OFF and any(made):
        key = "network" if "network" in tree.entries else "hosts"
        mark = tree.key_marks.get(key, tree.mark)
        text = (
            "settings of hosts need their namespaces, which exist only with a tunnel; remove them,"
            " or write tunnel: on"
        )
        problems.add(mark.at(key), text)
    if network.kind != "dumbbell":
        key = "network" if "network" in tree.entries else "topology"
        mark = tree.key_marks.get(key, tree.mark)
        text = (
            "two real hosts have one path between them; remove it, or run the scenario with --where emulate"
        )
        problems.add(mark.at(key), text)
    timeline = ScenarioKeys.from_mapping(tree).timeline
    for item in timeline.items if isinstance(timeline, Sequence) else []:
        for key, mark, _ in item if isinstance(item, Mapping) else ():
            if key in ("set", "cut", "restore"):
                text = "a real path cannot be changed; remove it, or run the scenario with"
                problems.add(mark, f"{text} --where emulate")


def check_axis(key: str) -> str | None:
    """The problem of a key in the matrix of a scenario for two hosts."""
    first = key.partition(".")[0]
    if first in ("path", "topology", "network"):
        return "a real path cannot be changed; remove it, or run the scenario with --where emulate"
    if first == KEY and key != f"{KEY}.sender":
        return f"of {KEY} only sender can be varied; remove it"
    return None


def quote_host(text: str) -> str:
    """The argument of `--host`, quoted for YAML."""
    if not text.strip():
        raise UsageError("--host takes a host as ssh does, such as user@host")
    quoted = text.replace("'", "''")
    return f"'{quoted}'"
