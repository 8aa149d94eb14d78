"""The policies of schemes as functions from observations to actions."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrows._native import Policies
from narrows.errors import DataError, UsageError
from narrows.gym.courses import load_courses
from narrows.models.format import SUFFIX, read_kind

#: A path for a scheme whose flow never starts.
_PATH = {
    "schema": "narrows/scenario/1",
    "path": {"forward": [{"rate": "12 Mbit/s", "queue": {"droptail": "1 bdp"}}, {"delay": "20 ms"}]},
    "duration": "1 s",
}


class Policy:
    """The policy of a scheme, in the arithmetic in which the scheme runs: for the same observations the
    actions are the same, bit for bit, as in a simulated, an emulated or a real flow.

    `scheme` is a learned scheme as scenarios write it (`"indigo"`, `{"scheme": "policy", "model": "mine"}`),
    or a model file. With `num_envs` copies, a call takes as many observations and returns as many actions. A
    policy with memory must begin each episode with `reset`.

    Raises `NarrowsError` if the scheme does not exist, has no model, or makes no decisions.
    """

    def __init__(self, scheme: str | Path | Mapping[str, Any], num_envs: int | None = None) -> None:
        count = 1 if num_envs is None else num_envs
        if count < 1:
            raise UsageError(f"num_envs is {num_envs}; at least one is required")
        self.num_envs = num_envs
        (course,) = load_courses(_PATH, 1, {"schemes": [_as_scheme(scheme)]})
        with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
            for name, content in course.files.items():
                (Path(folder) / name).write_bytes(content)
            try:
                self._policies = Policies(course.text, count, Path(folder))
            except ValueError as error:
                raise DataError(f"{scheme}: {error}") from None
        self._count = count

    def __call__(self, observation: ArrayLike) -> Any:
        """The action for an observation, or the actions for observations of shape `(num_envs, n)`, in the
        form that the environments take.

        Raises `UsageError` for another number of numbers.
        """
        rows = np.ascontiguousarray(observation, dtype=np.float32)
        expected = (self._policies.inputs,) if self.num_envs is None else (self._count, self._policies.inputs)
        if rows.shape != expected:
            raise UsageError(f"the observation has the shape {rows.shape}; {expected} is required")
        numbers = self._policies.act(rows.reshape(-1))
        actions: NDArray[Any] = numbers.reshape(self._count, -1)
        if self._policies.choices is not None:
            actions = actions[:, 0].astype(np.int64)
        return actions[0] if self.num_envs is None else actions

    def reset(self, mask: ArrayLike | None = None) -> None:
        """Forgets all memories, or those of the environments where `mask` is true."""
        which = np.ones(self._count, np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
        if which.shape != (self._count,):
            raise UsageError(f"the mask has the shape {which.shape}; {(self._count,)} is required")
        self._policies.reset(which)


def _as_scheme(scheme: str | Path | Mapping[str, Any]) -> str | Mapping[str, Any]:
    if (isinstance(scheme, str) and not scheme.endswith(SUFFIX)) or isinstance(scheme, Mapping):
        return scheme
    path = Path(scheme)
    kind = read_kind(path)
    if kind is None:
        raise DataError(f"{path}: is not a model file")
    return {"scheme": kind, "model": str(path.absolute())}
