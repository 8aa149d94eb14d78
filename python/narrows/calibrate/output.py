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

from narrows.blocks import model
from narrows.blocks.model import Block, Column, Paragraph
from narrows.calibrate import figure, paths
from narrows.calibrate.examine import RATES, mean_error
from narrows.calibrate.fit import Fit
from narrows.calibrate.paths import FEATURES, PACKET_BYTES, Path, Workload, scenario_text
from narrows.calibrate.search import Search
from narrows.calibrate.table import DELAY, LOSS, THROUGHPUT, Table
from narrows.calibrate.targets import Floor
from narrows.campaign import sealing
from narrows.campaign.json_files import write_atomically
from narrows.csv_text import Rows
from narrows.documents.calibration import (
    FORMAT,
    CalibratedPath,
    CalibratedScheme,
    Calibration,
    CalibrationErrors,
    FeatureTrial,
    Reproduction,
)
from narrows.documents.data import to_data

RESULTS, SCENARIO, ERRORS = "results.json", "scenario.yaml", "errors.csv"
#: Factors from base units to display units.
_SCALES = {THROUGHPUT: 1e-6, DELAY: 1e-6, LOSS: 100.0}
#: A measured value this far beyond the path's contradicts it.
_BEYOND = 1.05
#: A scheme's own rate is mentioned if it differs from the path's by more than this.
_OWN_RATE = 0.1
UNITS = {THROUGHPUT: "Mbit/s", DELAY: "ms", LOSS: "%"}


@dataclass(frozen=True)
class Report:
    """A calibration with its inputs."""

    table: Table
    entries: Mapping[str, str]
    left: Mapping[str, str]
    work: Workload
    search: Search
    floor: Floor | None
    fit: Fit


def document(report: Report) -> Calibration:
    """The content of results.json."""
    made, search = report.fit, report.search
    targets = search.targets
    means = targets.means(made.fresh.runs(search.metrics))
    errors = targets.errors(means)
    return Calibration(
        format=FORMAT,
        table=report.table.source,
        notes=list(report.table.notes),
        left_out_of_the_table=dict(report.left),
        metrics=dict(search.metrics),
        flows=report.work.flows,
        interval=report.work.interval,
        duration=report.work.duration,
        seed=search.seed,
        evaluations=len(search.history),
        budget_used_up=not made.within_budget,
        path=_path(made.path),
        errors=CalibrationErrors(
            fit=made.fitted,
            fresh_seeds=targets.mean_error(errors),
            on_path=targets.mean_error(
                errors, [name for name in targets.schemes if name not in made.off_path]
            ),
            left_out=mean_error(made.left_out),
            own_rates=mean_error(made.own_rates),
            noise_floor=report.floor.mean if report.floor else None,
            single_run=report.floor.single if report.floor else None,
        ),
        links=made.links,
        features=[FeatureTrial(**vars(trial)) for trial in made.trials],
        features_not_tried=made.not_tried,
        schemes=_schemes(report, means, errors),
    )


def _schemes(report: Report, means: list[float | None], errors: list[float | None]) -> list[CalibratedScheme]:
    made, targets = report.fit, report.search.targets
    left_out = {result.scheme: result for result in made.left_out}
    explanations = {result.scheme: result for result in made.explained}
    own_rates = {result.scheme: result for result in made.own_rates}
    schemes = []
    for name in targets.schemes:
        left, explained, own = left_out.get(name), explanations.get(name), own_rates.get(name)
        values = [
            Reproduction(
                flow=target.flow,
                quantity=target.quantity,
                measured=target.value,
                runs=list(target.runs),
                reproduced=value,
                error=error,
            )
            for target, value, error in zip(targets.all, means, errors, strict=True)
            if target.scheme == name
        ]
        schemes.append(
            CalibratedScheme(
                name=name,
                scheme=report.entries[name],
                error=targets.mean_error(errors, [name]),
                on_path=name not in made.off_path,
                left_out_error=left.error if left else None,
                left_out_path=_path(left.path) if left else None,
                explained=explained.explained if explained else None,
                explained_error=explained.error if explained else None,
                explained_path=_path(explained.path) if explained else None,
                own_rate_factor=own.factor if own else None,
                own_rate_error=own.error if own else None,
                values=values,
            )
        )
    return schemes


def _path(path: Path) -> CalibratedPath:
    packets = path[paths.QUEUE]
    return CalibratedPath(
        link=path.link,
        trace=File(path.trace.file).name if path.trace is not None else None,
        rate_bps=path[paths.RATE],
        delay_ns=path[paths.DELAY],
        queue_packets=packets,
        queue_bytes=packets * PACKET_BYTES,
        queue_unit=path.unit,
        loss_ratio=path[paths.LOSS],
        features={
            name: {parameter.name: path[parameter] for parameter in FEATURES[name].parameters}
            for name in path.features
        },
        words=path.words(),
    )


def write(report: Report, folder: File) -> Calibration:
    """Writes all files; returns the content of results.json."""
    result = document(report)
    errors = result.errors
    head = [
        f"Calibrated by narrows to {File(report.table.source).name}.",
        f"Mean error of throughput and 95th percentile of delay over {len(report.entries)} schemes:"
        f" {_percent(errors.fresh_seeds)} on fresh seeds,",
        *_head_of_off_path(result),
        f"{_percent(errors.left_out)} of schemes left out of the fit; noise floor of the table"
        f" {_percent(errors.noise_floor)}.",
        "It describes the path when it was measured, and not the network.",
    ]
    work = Workload(tuple(report.entries.values()), *_flows(report.work))
    title = f"Calibrated to {File(report.table.source).stem}"
    runs = max(3, min(10, max((len(target.runs) for target in report.search.targets.all), default=3)))
    path = report.fit.path
    if path.trace is not None:
        # The trace is copied next to the scenario, so that both can move together.
        file = File(path.trace.file)
        shutil.copyfile(file, folder / file.name)
        path = replace(path, trace=replace(path.trace, file=file.name))
    text = scenario_text(path, work, runs=runs, seed=1, title=title, head=head)
    write_atomically(folder / SCENARIO, text)
    write_atomically(folder / ERRORS, errors_csv(result))
    figure.write(_pairs(result), folder, title)
    # Written last: once it exists, everything else does.
    write_atomically(folder / RESULTS, sealing.seal(to_data(result), FORMAT))
    return result


def _head_of_off_path(result: Calibration) -> list[str]:
    off = [scheme.name for scheme in result.schemes if scheme.on_path is False]
    return (
        [f"{_percent(result.errors.on_path)} without {', '.join(off)}, which the path does not explain,"]
        if off
        else []
    )


def _flows(work: Workload) -> tuple[int, str, str]:
    return work.flows, work.interval, work.duration


def errors_csv(result: Calibration) -> str:
    """A line for each value, in base units."""
    text = io.StringIO()
    rows = Rows(text)
    rows.write(
        (
            *("scheme", "flow", "quantity", "measured", "reproduced", "error", "left_out_error", "explained"),
            *("own_rate_factor", "own_rate_error", "on_path"),
        )
    )
    for scheme in result.schemes:
        for value in scheme.values:
            rows.write(
                (
                    scheme.name,
                    value.flow,
                    value.quantity,
                    *(_number(number) for number in (value.measured, value.reproduced, value.error)),
                    _number(scheme.left_out_error),
                    _yes(scheme.explained),
                    *(_number(number) for number in (scheme.own_rate_factor, scheme.own_rate_error)),
                    _yes(scheme.on_path),
                )
            )
    return text.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.6g}"


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "no"


def _pairs(result: Calibration) -> list[figure.Pair]:
    pairs = []
    for scheme in result.schemes:
        flows = scheme.flows
        for flow, values in flows.items():
            delay, throughput = values.get(DELAY), values.get(THROUGHPUT)
            if delay is None or throughput is None:
                continue
            if delay.reproduced is None or throughput.reproduced is None:
                continue
            name = scheme.name if len(flows) == 1 else f"{scheme.name}, flow {flow}"
            measured = (delay.measured * _SCALES[DELAY], throughput.measured * _SCALES[THROUGHPUT])
            reproduced = (delay.reproduced * _SCALES[DELAY], throughput.reproduced * _SCALES[THROUGHPUT])
            pairs.append(figure.Pair(name, measured, reproduced))
    return pairs


# -- words ---------------------------------------------------------------------------------------


def answer(result: Calibration) -> list[str]:
    """The outcome, in sentences."""
    path, errors = result.path, result.errors
    lines = [f"{path.link} link, " + ", ".join(f"{_name(name)} {text}" for name, text in path.words.items())]
    parts = []
    if errors.fresh_seeds is not None:
        parts.append(f"{_percent(errors.fresh_seeds)} on fresh seeds")
    if errors.left_out is not None:
        by_chance = errors.fresh_seeds is not None and errors.left_out < errors.fresh_seeds
        less = ", less by chance" if by_chance else ""
        parts.append(f"{_percent(errors.left_out)} of schemes left out and refitted{less}")
    if errors.noise_floor is not None:
        parts.append(f"{_percent(errors.noise_floor)} is the noise floor of the table")
    lines.append("mean error of throughput and delay: " + ("; ".join(parts) or "none, the table has neither"))
    admitted = [trial for trial in result.features if trial.admitted]
    lines += [
        f"{trial.feature} is admitted: the expected error of schemes left out falls from"
        f" {_percent(trial.before)} to {_percent(trial.after)}"
        for trial in admitted
    ]
    others = sorted({trial.feature for trial in result.features} - {trial.feature for trial in admitted})
    if others:
        lines.append(f"tried, and not admitted: {', '.join(others)}")
    if result.features_not_tried:
        lines.append(f"features not tried: {result.features_not_tried}")
    if result.budget_used_up:
        lines.append("the budget ended before the search had settled; a larger one may do better")
    lines += _off_path(result)
    lines += _own_rates(result)
    lines += [f"{name} is left out: {why}" for name, why in result.left_out_of_the_table.items()]
    return lines


def _off_path(result: Calibration) -> list[str]:
    """The schemes that are off the path, and those that contradict it."""
    off = [scheme for scheme in result.schemes if scheme.on_path is False]
    lines = []
    if off:
        names = ", ".join(f"{scheme.name} ({_percent(scheme.error)})" for scheme in off)
        count = len(result.schemes) - len(off)
        lines.append(
            f"off the path, and of little weight in the fit: {names}; the {count} schemes on it have"
            f" {_percent(result.errors.on_path)}"
        )
    lost = [scheme.name for scheme in off if scheme.explained is False]
    if lost:
        lines.append(f"no path on which the others fit explains {', '.join(lost)}")
    fast = {
        scheme.name: value.measured
        for scheme in result.schemes
        for value in scheme.values
        if value.quantity == THROUGHPUT and value.measured > _BEYOND * result.path.rate_bps
    }
    if fast:
        names = ", ".join(f"{name} {value * _SCALES[THROUGHPUT]:.3g} Mbit/s" for name, value in fast.items())
        lines.append(f"measured at more than the rate of the path, so that the path was another one: {names}")
    early = {
        scheme.name: value.measured
        for scheme in result.schemes
        for value in scheme.values
        if value.quantity == DELAY and 0 < value.measured * _BEYOND < result.path.delay_ns
    }
    if early:
        names = ", ".join(f"{name} {value * _SCALES[DELAY]:.3g} ms" for name, value in early.items())
        lines.append(
            f"measured at less than the delay of the path, so that the path was another one: {names}"
        )
    return lines


def _own_rates(result: Calibration) -> list[str]:
    """The part of the error that a separate rate for each scheme would explain."""
    error = result.errors.own_rates
    if error is None:
        return []
    factors = {scheme.name: scheme.own_rate_factor for scheme in result.schemes if scheme.own_rate_factor}
    away = sorted((factor, name) for name, factor in factors.items() if abs(factor - 1) > _OWN_RATE)
    # A rate at the end of the range only shows that the rate is not the cause.
    names = ", ".join(f"{name} {factor:g}" for factor, name in away if factor not in (RATES[0], RATES[-1]))
    return [
        f"if the path had carried more or less while each scheme ran: {_percent(error)}"
        + (f", at these multiples of the rate: {names}" if names else "")
    ]


def _name(name: str) -> str:
    return {"backward": "delay of acknowledgements, of that of data,"}.get(name, name)


def blocks(result: Calibration) -> tuple[Block, ...]:
    """The outcome in words, and the table of errors."""
    heads = (
        Column("scheme", "left", names=True),
        Column("throughput", "left", unit="Mbit/s"),
        Column("p95 delay", "left", unit="ms"),
        Column("loss", "left", rank=1, unit="%"),
        Column("error"),
        Column("left out"),
        Column("on path", "left", rank=2),
    )
    rows = []
    for scheme in result.schemes:
        for flow, values in scheme.flows.items():
            sides = [_sides(values.get(quantity)) for quantity in (THROUGHPUT, DELAY, LOSS)]
            name = scheme.name if flow == "all" else f"{scheme.name}, flow {flow}"
            errors = (_percent(scheme.error), _percent(scheme.left_out_error))
            rows.append([name, *sides, *errors, _yes(scheme.on_path)])
    return (
        *map(Paragraph, answer(result)),
        model.Table.new(heads, rows, label="Errors of the schemes"),
        Paragraph("measured / reproduced, on fresh seeds", "remark"),
    )


def _sides(value: Reproduction | None) -> str:
    if value is None:
        return ""
    scale = _SCALES[value.quantity]
    reproduced = "-" if value.reproduced is None else f"{value.reproduced * scale:.3g}"
    return f"{value.measured * scale:.3g} / {reproduced}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"
