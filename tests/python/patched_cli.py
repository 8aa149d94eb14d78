"""The program `narrows` with a fixed registry and synthetic measurements, for tests with the fake agent.

It runs as a program, so that tests can send it signals and kill it.
"""

from __future__ import annotations

import json
from pathlib import Path

from narrows import cli
from narrows.campaign import measurement
from narrows.documents.results import Measured, MeasuredFlow
from narrows.scenario import registry
from results_kit import made_metric

HERE = Path(__file__).resolve().parent

METRICS = [
    made_metric("throughput_bps", label="throughput", unit="bit/s", show_unit="Mbit/s", show_scale=1e-6),
    made_metric("loss_ratio", label="loss", unit="ratio", show_unit="%", show_scale=100.0),
]


def measure_cell(path: Path) -> Measured:
    """Numbers that follow from the cell alone."""
    cell = json.loads((path / "run.json").read_text())["cell"]
    throughput = 1e6 + cell["seed"] % 1000
    flows = [
        MeasuredFlow(
            flow=str(flow["flow"]),
            scheme=flow["scheme"],
            metrics={"throughput_bps": throughput, "loss_ratio": None},
            background=bool(flow.get("background")),
        )
        for flow in cell["flows"]
    ]
    total = {"throughput_bps": throughput * len(flows), "loss_ratio": 0.01}
    flows.append(MeasuredFlow(flow="all", scheme=cell["scheme"], metrics=total))
    return Measured(flows=flows, absent={"1": {"loss_ratio": "made up"}})


def main() -> None:
    """The program; changes modules for the rest of the process."""
    fixed = registry.parse((HERE / "registry.json").read_text())
    registry.load = lambda: fixed  # type: ignore[assignment]
    measurement.measure_cell = measure_cell
    measurement.list_metrics = lambda: METRICS
    cli.main()


if __name__ == "__main__":
    main()
