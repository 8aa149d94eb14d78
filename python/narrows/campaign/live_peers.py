"""Both agents of a run between hosts for those who watch it: their counts become readings, and orders to
start and stop flows become commands to both.
"""

from __future__ import annotations

import queue

import msgspec

from narrows.agent.schema import parse, read_event
from narrows.documents.data import DamagedError, from_data
from narrows.documents.live import Changed, PeerSample, Refused, Rescheduled
from narrows.documents.resolved import Cell
from narrows.live.two_ends import TwoEnds
from narrows.live.watch import Watch
from narrows.scenario.real_path import LOCAL, REMOTE

#: Flows start and stop at multiples of this time, which is short to write.
_GRID_NS = 1_000_000
START = "start"


class _Order(msgspec.Struct, frozen=True):
    """An order to start or to stop a flow (live/orders.py)."""

    order: str
    flow: int


class _Awaited(msgspec.Struct):
    """A change that not both agents have confirmed yet."""

    order: _Order
    at_ns: int
    #: By how much it was late, by the name of the end.
    late_ns: dict[str, int]


class LivePeers:
    """Takes the lines of both agents; `order` may be called from any thread, the others by one."""

    def __init__(self, cell: Cell, watch: Watch, ahead_ns: int) -> None:
        self._watch = watch
        self._ahead_ns = ahead_ns
        self._duration_ns = cell.duration_ns
        self._flows = {flow.number: flow for flow in cell.flows}
        #: When each flow starts and stops.
        self._times = {
            flow.number: (flow.start_ns, min(flow.stop_ns or cell.duration_ns, cell.duration_ns))
            for flow in cell.flows
        }
        self._ends = TwoEnds()
        self._orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._awaited: _Awaited | None = None

    def order(self, line: bytes) -> None:
        """Takes an order, a line of JSON."""
        self._orders.put(line)

    def hear(self, end: str, line: bytes) -> None:
        """Takes a line of the agent at an end; one that is damaged is ignored."""
        event, data = read_event(line), parse(line)
        if event is None:
            return
        try:
            if event.event == "counts":
                reading = self._ends.read(end, from_data(data, PeerSample))
                if reading is not None:
                    self._watch.add(reading)
            else:
                self._confirm(end, from_data(data, Rescheduled))
        except DamagedError:
            return

    def next_command(self, now_ns: int) -> dict[str, object] | None:
        """The command for both agents at a time of the run, if there is an order that can be carried out."""
        if self._awaited is not None or self._orders.empty():
            return None
        order = msgspec.json.decode(self._orders.get(), type=_Order)
        at_ns = -(-(now_ns + self._ahead_ns) // _GRID_NS) * _GRID_NS
        why = self._refusal(order, now_ns, at_ns)
        if why is not None:
            self._watch.refuse(Refused(message=why))
            return None
        start_ns, stop_ns = self._times[order.flow]
        times = (at_ns, stop_ns) if order.order == START else (start_ns, at_ns)
        self._times[order.flow] = times
        self._awaited = _Awaited(order, at_ns, {})
        return {
            "order": "reschedule",
            "flow": order.flow,
            "start_ns": times[0],
            "stop_ns": times[1],
            "at_ns": at_ns,
        }

    def _refusal(self, order: _Order, now_ns: int, at_ns: int) -> str | None:
        """Why an order can't be carried out, in the words of the emulator (drivers/emulate/src/orders.rs)."""
        number = order.flow
        if at_ns >= self._duration_ns:
            return "the run is almost over, so that nothing can change any more"
        if number not in self._flows:
            return f"flow {number} does not exist"
        if self._flows[number].program is not None:
            return f"flow {number} is a program, which is started and stopped at the times of the scenario"
        start_ns, stop_ns = self._times[number]
        if order.order == START:
            return f"flow {number} has started already" if start_ns <= at_ns else None
        if start_ns >= now_ns:
            return f"flow {number} has not started yet"
        return f"flow {number} has stopped already" if stop_ns <= at_ns else None

    def _confirm(self, end: str, rescheduled: Rescheduled) -> None:
        awaited = self._awaited
        if awaited is None or rescheduled.flow != awaited.order.flow:
            return
        awaited.late_ns[end] = rescheduled.late_ns
        if not {LOCAL, REMOTE} <= awaited.late_ns.keys():
            return
        self._awaited = None
        order, late_ns = awaited.order, max(awaited.late_ns.values())
        # An end that was late has carried it out at once.
        at_ns = -(-(awaited.at_ns + late_ns) // _GRID_NS) * _GRID_NS
        start_ns, stop_ns = self._times[order.flow]
        is_start = order.order == START
        self._times[order.flow] = (at_ns, stop_ns) if is_start else (start_ns, at_ns)
        start, stop = (order.flow, None) if is_start else (None, order.flow)
        self._watch.keep(Changed(at_ns=at_ns, start=start, stop=stop))
        if late_ns:
            self._watch.note(
                f"this order reached an end {late_ns / 1e6:.0f} ms late; the connection to the other host is"
                " slow"
            )
