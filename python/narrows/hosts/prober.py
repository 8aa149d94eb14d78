"""One end of a probe of the path between two hosts: commands to `narrows-agent probe`, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from narrows.agent import schema
from narrows.agent.location import Location
from narrows.agent.session import Session
from narrows.errors import UnavailableError
from narrows.json_shapes import Shape

#: A command is answered at once; sending a few thousand datagrams takes up to some seconds.
_ANSWER_S = 60.0
#: Longest answer that is read to its end.
_LONGEST = 1 << 22


@dataclass(frozen=True)
class Opened:
    """A port that was asked for: opened, or why not."""

    asked: int
    port: int | None
    index: int | None
    why: str | None


@dataclass(frozen=True)
class Exchange:
    """The stamps of a question and its answer: when it was asked (our clock), arrived and was answered (the
    other end's clock), and came back (our clock), all in nanoseconds."""

    asked_ns: int
    arrived_ns: int
    answered_ns: int
    back_ns: int
    #: Our address as the other end saw it.
    seen: str

    @property
    def rtt_ns(self) -> int:
        """Time on the way, there and back."""
        return (self.back_ns - self.asked_ns) - (self.answered_ns - self.arrived_ns)

    @property
    def offset_ns(self) -> int:
        """The other end's clock minus ours, if both ways took equally long; it is wrong by at most half of
        `rtt_ns` (RFC 5905, section 8)."""
        return ((self.arrived_ns - self.asked_ns) + (self.answered_ns - self.back_ns)) // 2


@dataclass
class Arrivals:
    """Datagrams that have arrived at a port, over several reports."""

    packets: int = 0
    largest: int = 0
    from_: str | None = None
    #: Answers to our questions, by the port that they came from.
    answers: dict[int, int] = field(default_factory=dict)
    best: Exchange | None = None

    def add(self, report: dict[str, Any]) -> None:
        """Takes one more report."""
        self.packets += report["packets"]
        self.largest = max(self.largest, report["largest"])
        self.from_ = report["from"] or self.from_
        for address, count in report["answers"].items():
            port = schema.split_address(address)[1]
            self.answers[port] = self.answers.get(port, 0) + count
        if (best := report["best"]) is not None:
            exchange = Exchange(*(best[each.name] for each in fields(Exchange)))
            if self.best is None or exchange.rtt_ns < self.best.rtt_ns:
                self.best = exchange


class Prober:
    """An end; use it with `with`."""

    def __init__(self, location: Location, token: str, interface: str | None = None) -> None:
        self.location = location
        self._token = token
        #: The network interface that everything goes by, if not what the routes say.
        self.interface = interface
        self._session: Session | None = None
        #: By how much its clock is shifted, for tests.
        self.shift_ns = 0
        #: Arrivals since `forget`, by the index of the port.
        self.seen: dict[int, Arrivals] = {}
        #: Datagrams of others, since the beginning.
        self.strangers = 0

    def __enter__(self) -> Prober:
        self._session = Session(self.location, "probe", longest=_LONGEST)
        try:
            self._session.write(self._token.encode())
            self.shift_ns = self._session.answer(schema.READY, _ANSWER_S)["clock_shift_ns"]
        except BaseException:
            self._session.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._session
        self._session.end()

    # -- commands ----------------------------------------------------------------------------------

    def open(self, address: str, ports: list[int]) -> list[Opened]:
        """Opens ports (0: any) of a local address."""
        answer = self._by(schema.OPENED, do="open", address=address, ports=ports)["opened"]
        if [item["asked"] for item in answer] != ports:
            raise UnavailableError(
                f"{self.location.name}: the agent opened other ports than it was asked for"
            )
        return [Opened(*(item[each.name] for each in fields(Opened))) for item in answer]

    def send(
        self,
        index: int,
        to: str,
        sizes: list[int],
        *,
        copies: int = 3,
        gap_us: int = 1000,
        answer: bool = True,
    ) -> dict[int, str]:
        """Sends datagrams; returns the sizes that the local side refused, and why."""
        sent = self._command(
            schema.SENT,
            do="send",
            **{"from": index},
            to=to,
            sizes=sizes,
            copies=copies,
            gap_us=gap_us,
            answer=answer,
        )
        return {item["size"]: item["why"] for item in sent["refused"]}

    def source(self, to: str) -> str:
        """Our address towards another."""
        return str(self._by(schema.ROUTE, do="route", to=to)["source"])

    def update(self) -> None:
        """Asks what has arrived."""
        for index, report in enumerate(self._command(schema.ARRIVED, do="report")["ports"]):
            self.seen.setdefault(index, Arrivals()).add(report)
            self.strangers += report["strangers"]

    def forget(self) -> None:
        """Begins anew to note what arrives."""
        self.update()
        self.seen = {}

    def at(self, index: int) -> Arrivals:
        """Arrivals at an opened port."""
        return self.seen.get(index) or Arrivals()

    def _by(self, shape: Shape, **command: Any) -> dict[str, Any]:
        """A command that is about an interface if there is one to go by."""
        return self._command(shape, **command, **({"interface": self.interface} if self.interface else {}))

    def _command(self, shape: Shape, **command: Any) -> dict[str, Any]:
        assert self._session
        return self._session.command(shape, _ANSWER_S, **command)
