"""Synthetic rows and metrics of results."""

from __future__ import annotations

from typing import Any

from narrows.documents.results import Metric, Row


def made_row(scheme: str, metrics: dict[str, float | None], **members: Any) -> Row:
    """A row of all flows of a valid run."""
    whole: dict[str, Any] = {
        "scenario": "made-up", "plane": "simulate", "base": scheme, "scheme": scheme, "run": 1, "seed": 1,
        "duration_ns": None, "number": None, "flow_scheme": scheme, "verdict": "ok", "cell": f"{scheme}-r1",
        "metrics": metrics, "absent": {},
    }  # fmt: skip
    return Row(**whole | members)


def made_metric(name: str, **members: Any) -> Metric:
    """A metric of this name."""
    whole: dict[str, Any] = {
        "name": name, "label": name, "unit": "", "show_unit": "", "show_scale": 1.0, "better": None,
        "scope": "both", "links": False, "happened": None, "definition": "", "source": None,
    }  # fmt: skip
    return Metric(**whole | members)
