"""One end of a path probe: commands to `narrows-agent probe`, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from narrows.agent.location import Location
from narrows.agent.session import Session
from narrows.documents.agent import (
    Arrived,
    Exchange,
    OpenedPort,
    OpenedPorts,
    PortArrivals,
    Ready,
    Route,
    Sent,
)
from narrows.errors import UnavailableError

Kind = TypeVar("Kind")

#: A command is answered at once; only sending a few thousand datagrams takes up to some seconds.
_ANSWER_S = 60.0
#: The length limit of an answer.
_LONGEST = 1 << 22


@dataclass
class Arrivals:
    """Datagrams that have arrived at a port, over several reports."""

    packets: int = 0
    largest: int = 0
    from_: str | None = None
    #: Answers to our questions, by their source port.
    answers: dict[int, int] = field(default_factory=dict)
    best: Exchange | None = None

    def add(self, report: PortArrivals) -> None:
        """Takes one more report."""
        self.packets += report.packets
        self.largest = max(self.largest, report.largest)
        self.from_ = report.origin or self.from_
        for port, count in report.answers_by_port.items():
            self.answers[port] = self.answers.get(port, 0) + count
        if report.best is not None and (self.best is None or report.best.rtt_ns < self.best.rtt_ns):
            self.best = report.best


class Prober:
    """One end; a context manager."""

    def __init__(self, location: Location, token: str, interface: str | None = None) -> None:
        self.location = location
        self._token = token
        #: The network interface for all datagrams, if not by the routing table.
        self.interface = interface
        self._session: Session | None = None
        #: The shift of its clock, for tests.
        self.shift_ns = 0
        #: Arrivals since `forget`, by the index of the port.
        self.seen: dict[int, Arrivals] = {}
        #: Datagrams of third parties, since the beginning.
        self.strangers = 0

    def __enter__(self) -> Prober:
        self._session = Session(self.location, "probe", longest=_LONGEST)
        try:
            self._session.write(self._token.encode())
            self.shift_ns = self._session.answer(Ready, _ANSWER_S).clock_shift_ns
        except BaseException:
            self._session.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        assert self._session
        self._session.end()

    # -- commands ----------------------------------------------------------------------------------

    def open(self, address: str, ports: list[int]) -> list[OpenedPort]:
        """Opens ports (0: any) of a local address."""
        opened = self._by(OpenedPorts, do="open", address=address, ports=ports).opened
        if [port.asked for port in opened] != ports:
            raise UnavailableError(
                f"{self.location.name}: the agent opened other ports than it was asked for"
            )
        return opened

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
            Sent,
            do="send",
            **{"from": index},
            to=to,
            sizes=sizes,
            copies=copies,
            gap_us=gap_us,
            answer=answer,
        )
        return {item.size: item.why for item in sent.refused}

    def source(self, to: str) -> str:
        """Our address towards another."""
        return self._by(Route, do="route", to=to).source

    def update(self) -> None:
        """Asks what has arrived."""
        for index, report in enumerate(self._command(Arrived, do="report").ports):
            self.seen.setdefault(index, Arrivals()).add(report)
            self.strangers += report.strangers

    def forget(self) -> None:
        """Discards the noted arrivals."""
        self.update()
        self.seen = {}

    def at(self, index: int) -> Arrivals:
        """Arrivals at an opened port."""
        return self.seen.get(index) or Arrivals()

    def _by(self, kind: type[Kind], **command: Any) -> Kind:
        """A command that is about an interface if there is one to go by."""
        return self._command(kind, **command, **({"interface": self.interface} if self.interface else {}))

    def _command(self, kind: type[Kind], **command: Any) -> Kind:
        assert self._session
        return self._session.command(kind, _ANSWER_S, **command)
