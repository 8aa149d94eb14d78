"""Simulated cells for a single purpose: one flow on a path, with sampled states."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import _native

#: One acknowledgement for each packet, so that no receiver timer is involved.
EVERY_PACKET = {"ack_every": "1 packets"}
#: In addition, packets are spread over the round trip instead of leaving in trains, as closed forms assume.
SPREAD = {**EVERY_PACKET, "pacing": "window"}


@dataclass(frozen=True)
class SimulatedPath:
    """A path and one flow on it, in the notation of scenarios."""

    scheme: str
    rtt_ms: float
    seconds: float
    #: Elements before the delay of the forward path.
    elements: tuple[str, ...] = ()
    params: dict[str, str] = field(default_factory=dict)
    transport: dict[str, str] = field(default_factory=lambda: dict(SPREAD))
    sample_ms: float = 5.0
    seed: int = 1

    def text(self) -> str:
        """The scenario."""
        half = f"{{delay: {self.rtt_ms / 2:g} ms}}"
        params = "".join(f", {name}: {value}" for name, value in self.params.items())
        transport = ", ".join(f"{name}: {value}" for name, value in self.transport.items())
        return (
            "schema: narrows/scenario/1\n"
            "question: Do the numbers follow from the rules?\n"
            "where: simulate\n"
            f"path:\n  forward: [{', '.join((*self.elements, half))}]\n  backward: [{half}]\n"
            f'schemes: [{{scheme: "{self.scheme}"{params}}}]\n'
            f"duration: {max(1, round(self.seconds))} s\n"
            # Windows never reach it; without it only losses would bound the data in flight.
            "hosts: {all: {window: 64 MB}}\n"
            f"record: bins\nbin: 1 s\nsample: {self.sample_ms:g} ms\nseed: {self.seed}\n"
            + (f"transport: {{{transport}}}\n" if transport else "")
        )


def metrics_of(record: Path, flow: str = "all") -> dict[str, Any]:
    """The metrics of one flow of a record, or of all together."""
    for row in json.loads(_native.measure(str(record)))["flows"]:
        if str(row["flow"]) == flow:
            found: dict[str, Any] = row["metrics"]
            return found
    raise ValueError(f"{record}: there are no metrics of flow {flow}")
