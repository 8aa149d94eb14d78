"""Samples of a feature: one value with the seconds of the run that it was taken from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sample:
    """A value, or for kinds of behaviour a word, and its interval of the run."""

    value: float | str
    start_s: float
    end_s: float
    #: By how much the method may be wrong in each sample alike: whole packets, whole rounds.
    resolution: float = 0.0


class NotMeasuredError(Exception):
    """Why a feature has no value in a run, as a clause."""
