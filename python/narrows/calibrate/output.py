"""The files of a calibration.

scenario.yaml       the path with the schemes of the table; narrows run scenario.yaml
errors.csv          ours and theirs of every scheme
results.json        everything (narrows/calibration/1)
points.svg, .png    measured and reproduced points, with their numbers in points.csv
evaluations.jsonl   the simulations
calibration.json    what the folder is a calibration of
"""

from __future__ import annotations

import io
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any

from narrows.calibrate import figure
from narrows.calibrate.examine import RATES, mean_error
from narrows.calibrate.fit import Fit
from narrows.calibrate.paths import FEATURES, PACKET_BYTES, Path, Workload, scenario_text
from narrows.calibrate.search import Search
from narrows.calibrate.table import DELAY, LOSS, THROUGHPUT, Table
from narrows.calibrate.targets import Floor
from narrows.campaign import sealing
from narrows.campaign.store import write_atomically
from narrows.csv_text import Rows

FORMAT = "narrows/calibration/1"
RESULTS, SCENARIO, ERRORS = "results.json", "scenario.yaml", "errors.csv"
#: Factors from base units to those that people read.
_SCALES = {THROUGHPUT: 1e-6, DELAY: 1e-6, LOSS: 100.0}
#: How far from that of the path a scheme's own rate is worth mentioning.
_OWN_RATE = 0.1
UNITS = {THROUGHPUT: "Mbit/s", DELAY: "ms", LOSS: "%"}


@dataclass(frozen=True)
class Report:
    """A calibration with what it was made of."""

    table: Table
    entries: Mapping[str, str]
    left: Mapping[str, str]
    work: Workload
    search: Search
    floor: Floor | None
    fit: Fit


def document(report: Report) -> dict[str, Any]:
    """results.json."""
    made, search = report.fit, report.search
    targets = search.targets
    means = targets.means(made.fresh.runs(search.metrics))
    errors = targets.errors(means)
    of_left = {one.scheme: one for one in made.left_out}
    of_explained = {one.scheme: one for one in made.explained}
    of_rates = {one.scheme: one for one in made.own_rates}
    schemes = []
    for name in targets.schemes:
        values = [
            {
                "flow": one.flow,
                "quantity": one.quantity,
                "measured": one.value,
                "runs": list(one.runs),
                "reproduced": value,
                "error": error,
            }
            for one, value, error in zip(targets.all, means, errors, strict=True)
            if one.scheme == name
        ]
        left, explained, own = of_left.get(name), of_explained.get(name), of_rates.get(name)
        schemes.append(
            {
                "name": name,
                "scheme": report.entries[name],
                "error": targets.mean_error(errors, [name]),
                "left_out_error": left.error if left else None,
                "left_out_path": _path(left.path) if left else None,
                "explained": explained.explained if explained else None,
                "explained_error": explained.error if explained else None,
                "explained_path": _path(explained.path) if explained else None,
                "own_rate_factor": own.factor if own else None,
                "own_rate_error": own.error if own else None,
                "values": values,
            }
        )
    return {
        "format": FORMAT,
        "table": report.table.source,
        "notes": list(report.table.notes),
        "left_out_of_the_table": dict(report.left),
        "metrics": dict(search.metrics),
        "flows": report.work.flows,
        "interval": report.work.interval,
        "duration": report.work.duration,
        "seed": search.seed,
        "evaluations": len(search.history),
        "budget_used_up": not made.within_budget,
        "path": _path(made.path),
        "errors": {
            "fit": made.fitted,
            "fresh_seeds": targets.mean_error(errors),
            "left_out": mean_error(made.left_out),
            "own_rates": mean_error(made.own_rates),
            "noise_floor": report.floor.mean if report.floor else None,
            "single_run": report.floor.single if report.floor else None,
        },
        "links": made.links,
        "features": [vars(one) for one in made.trials],
        "features_not_tried": made.not_tried,
        "schemes": schemes,
    }


def _path(path: Path) -> dict[str, Any]:
    packets = path["queue"]
    return {
        "link": path.link,
        **({"trace": File(path.trace.file).name} if path.trace is not None else {}),
        "rate_bps": path["rate"],
        "delay_ns": path["delay"],
        "queue_packets": packets,
        "queue_bytes": packets * PACKET_BYTES,
        "queue_unit": path.unit,
        "loss_ratio": path["loss"],
        "features": {
            name: {one.name: path[one.name] for one in FEATURES[name].parameters} for name in path.features
        },
        "words": path.said(),
    }


def write(report: Report, folder: File) -> dict[str, Any]:
    """Writes all files; returns the content of results.json."""
    found = document(report)
    errors = found["errors"]
    head = [
        f"Calibrated by narrows to {File(report.table.source).name}.",
        f"Mean error of throughput and 95th percentile of delay over {len(report.entries)} schemes:"
        f" {_percent(errors['fresh_seeds'])} on fresh seeds,",
        f"{_percent(errors['left_out'])} of schemes left out of the fit; noise floor of the table"
        f" {_percent(errors['noise_floor'])}.",
        "It describes the path when it was measured, and not the network.",
    ]
    work = Workload(tuple(report.entries.values()), *_flows(report.work))
    title = f"Calibrated to {File(report.table.source).stem}"
    runs = max(3, min(10, max((len(one.runs) for one in report.search.targets.all), default=3)))
    path = report.fit.path
    if path.trace is not None:
        # Beside the scenario, which goes where its folder goes.
        file = File(path.trace.file)
        shutil.copyfile(file, folder / file.name)
        path = replace(path, trace=replace(path.trace, file=file.name))
    text = scenario_text(path, work, runs=runs, seed=1, title=title, head=head)
    write_atomically(folder / SCENARIO, text)
    write_atomically(folder / ERRORS, errors_csv(found))
    figure.write(_pairs(found), folder, title)
    # Last: where it is, everything is.
    write_atomically(folder / RESULTS, sealing.seal(found, FORMAT))
    return found


def _flows(work: Workload) -> tuple[int, str, str]:
    return work.flows, work.interval, work.duration


def errors_csv(found: Mapping[str, Any]) -> str:
    """A line for each value, in base units."""
    text = io.StringIO()
    rows = Rows(text)
    rows.write(
        (
            *("scheme", "flow", "quantity", "measured", "reproduced", "error", "left_out_error", "explained"),
            *("own_rate_factor", "own_rate_error"),
        )
    )
    for scheme in found["schemes"]:
        for one in scheme["values"]:
            explained = scheme["explained"]
            rows.write(
                (
                    scheme["name"],
                    one["flow"],
                    one["quantity"],
                    *(_number(one[key]) for key in ("measured", "reproduced", "error")),
                    _number(scheme["left_out_error"]),
                    "" if explained is None else ("yes" if explained else "no"),
                    *(_number(scheme[key]) for key in ("own_rate_factor", "own_rate_error")),
                )
            )
    return text.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.6g}"


def _pairs(found: Mapping[str, Any]) -> list[figure.Pair]:
    pairs = []
    for scheme in found["schemes"]:
        flows = dict.fromkeys(one["flow"] for one in scheme["values"])
        for flow in flows:
            of = {one["quantity"]: one for one in scheme["values"] if one["flow"] == flow}
            if not {THROUGHPUT, DELAY} <= set(of) or any(
                of[quantity]["reproduced"] is None for quantity in (THROUGHPUT, DELAY)
            ):
                continue
            name = scheme["name"] if len(flows) == 1 else f"{scheme['name']}, flow {flow}"
            points = [
                (of[DELAY][side] * _SCALES[DELAY], of[THROUGHPUT][side] * _SCALES[THROUGHPUT])
                for side in ("measured", "reproduced")
            ]
            pairs.append(figure.Pair(name, points[0], points[1]))
    return pairs


# -- words ---------------------------------------------------------------------------------------


def answer(found: Mapping[str, Any]) -> list[str]:
    """The outcome in sentences."""
    path, errors = found["path"], found["errors"]
    words = path["words"]
    lines = [f"{path['link']} link, " + ", ".join(f"{_name(name)} {text}" for name, text in words.items())]
    said = []
    if errors["fresh_seeds"] is not None:
        said.append(f"{_percent(errors['fresh_seeds'])} on fresh seeds")
    if errors["left_out"] is not None:
        said.append(f"{_percent(errors['left_out'])} of schemes left out and refitted")
    if errors["noise_floor"] is not None:
        said.append(f"{_percent(errors['noise_floor'])} is the noise floor of the table")
    lines.append("mean error of throughput and delay: " + ("; ".join(said) or "none, the table has neither"))
    admitted = [one["feature"] for one in found["features"] if one["admitted"]]
    for one in found["features"]:
        if one["admitted"]:
            lines.append(
                f"{one['feature']} is admitted: the expected error of schemes left out falls from"
                f" {_percent(one['before'])} to {_percent(one['after'])}"
            )
    others = sorted({one["feature"] for one in found["features"]} - set(admitted))
    if others:
        lines.append(f"tried, and not admitted: {', '.join(others)}")
    if found["features_not_tried"]:
        lines.append(f"features not tried: {found['features_not_tried']}")
    if found["budget_used_up"]:
        lines.append("the budget ended before the search had settled; a larger one may do better")
    strange = [one["name"] for one in found["schemes"] if one["explained"] is False]
    if strange:
        lines.append(f"no path on which the others fit explains {', '.join(strange)}")
    lines += _own_rates(found)
    lines += [f"{name} is left out: {why}" for name, why in found["left_out_of_the_table"].items()]
    return lines


def _own_rates(found: Mapping[str, Any]) -> list[str]:
    """The part of the error that a separate rate for each scheme would explain."""
    error = found["errors"]["own_rates"]
    if error is None:
        return []
    factors = {one["name"]: one["own_rate_factor"] for one in found["schemes"] if one["own_rate_factor"]}
    away = sorted((factor, name) for name, factor in factors.items() if abs(factor - 1) > _OWN_RATE)
    # The end of the range only shows that the rate is not the difference.
    listed = ", ".join(f"{name} {factor:g}" for factor, name in away if factor not in (RATES[0], RATES[-1]))
    return [
        f"if the path had carried more or less while each scheme ran: {_percent(error)}"
        + (f", at these multiples of the rate: {listed}" if listed else "")
    ]


def _name(name: str) -> str:
    return {"backward": "delay of acknowledgements, of that of data,"}.get(name, name)


def rows(found: Mapping[str, Any]) -> list[list[str]]:
    """The table of errors: scheme, measured and reproduced throughput, delay and loss, error, error left
    out, explained."""
    lines = []
    for scheme in found["schemes"]:
        for flow in dict.fromkeys(one["flow"] for one in scheme["values"]):
            of = {one["quantity"]: one for one in scheme["values"] if one["flow"] == flow}
            sides = []
            for quantity in (THROUGHPUT, DELAY, LOSS):
                one = of.get(quantity)
                sides.append(f"{_shown(one, 'measured')} / {_shown(one, 'reproduced')}" if one else "")
            name = scheme["name"] if flow == "all" else f"{scheme['name']}, flow {flow}"
            explained = {None: "", True: "yes", False: "no"}[scheme["explained"]]
            lines.append(
                [name, *sides, _percent(scheme["error"]), _percent(scheme["left_out_error"]), explained]
            )
    return lines


def _shown(one: Mapping[str, Any], side: str) -> str:
    value = one[side]
    return "-" if value is None else f"{value * _SCALES[one['quantity']]:.3g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"
