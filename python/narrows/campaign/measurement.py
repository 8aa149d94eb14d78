"""Measurements of single records by the core, and their statistics over runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from narrows import _native
from narrows.documents.campaign import INVALID
from narrows.documents.data import from_data, to_data
from narrows.documents.results import Answer, Expectation, LinkRow, Measured, Metric, Row, Statistics
from narrows.errors import DataError
from narrows.statistics.runs import summarise, summarise_happened


def measure_cell(path: Path) -> Measured:
    """All metrics of one cell's record."""
    try:
        return from_data(json.loads(_native.measure(str(path))), Measured)
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: can't be measured: {error}") from None


def ask_states(path: Path, asked: list[Expectation]) -> list[Answer]:
    """The answers from one cell's record to the questions of expectations."""
    questions = [{"flow": expectation.flow, **to_data(expectation.question or {})} for expectation in asked]
    try:
        return from_data(json.loads(_native.states(str(path), json.dumps(questions))), list[Answer])
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: can't be measured: {error}") from None


def list_metrics() -> list[Metric]:
    """All built-in metrics, with unit and definition."""
    return from_data(json.loads(_native.metrics()), list[Metric])


def over_runs(rows: Sequence[Row | LinkRow], metrics: Iterable[Metric]) -> dict[str, Statistics]:
    """The statistics of each metric over those of these rows that are valid."""
    valid = [row.metrics for row in rows if row.verdict != INVALID]
    statistics: dict[str, Statistics] = {}
    for metric in metrics:
        values = [value for run in valid if (value := run.get(metric.name)) is not None]
        if metric.happened:
            outcomes = [value for run in valid if (value := run.get(metric.happened)) is not None]
            if outcomes:
                statistics[metric.name] = summarise_happened(values, outcomes)
        elif values:
            statistics[metric.name] = summarise(values)
    return statistics
