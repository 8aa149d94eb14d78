"""One environment: a flow over a path, whose decisions the agent makes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from narrows.gym.courses import DEFAULT_COURSES, DEFAULT_PATH
from narrows.gym.episodes import RUNNING, Episodes, Info, Options, RewardFunction, Settings

_Observation = NDArray[np.float32]
_Action = np.int64 | NDArray[np.float32]


class FlowEnv(gymnasium.Env[Any, Any]):
    """`gymnasium.make("narrows/Flow-v0", path=..., scheme=..., reward=...)`.

    Observations and actions are those of the scheme. A step lasts from one decision to the next; an episode
    ends (truncated) after `steps` decisions or at the end of the run. `info` of `reset` holds the properties
    of the path and the cell, with which `narrows run` repeats the episode; that of the last step says why it
    has ended. Actions out of bounds are clipped, and `info["clipped"]` counts them.
    """

    metadata: Info = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        path: str | Path | Mapping[str, Any] = DEFAULT_PATH,
        scheme: str | Mapping[str, Any] | None = None,
        reward: str | RewardFunction = "power",
        steps: int = 1000,
        paths: int = DEFAULT_COURSES,
        changes: Mapping[str, Any] | None = None,
        oracle: bool = False,
        render_mode: str | None = None,
    ) -> None:
        settings = Settings(path, scheme, reward, steps, paths, changes, oracle)
        self.render_mode = render_mode
        self.episodes = Episodes(settings, 1)
        self.observation_space = self.episodes.observation_space
        self.action_space = self.episodes.action_space
        self._observation = self.episodes.observations[0]
        self._rewards, self._endings = self.episodes.rewards, self.episodes.endings
        self._clipped = self.episodes.clipped
        self._action = np.zeros(len(self.episodes.worlds.bounds), dtype=np.float32)
        self._all = np.ones(1, dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[_Observation, Info]:
        """Begins an episode on a random course; `options` may choose a `course` (or `courses`) and the run's
        `seed`.
        """
        super().reset(seed=seed)
        self.episodes.begin(self._all, [self.np_random], Options.read(options))
        return self._observation.copy(), self.episodes.start_info(0)

    def step(self, action: Any) -> tuple[_Observation, float, bool, bool, Info]:
        """Acts and runs to the next decision."""
        self._action[:] = action
        self.episodes.act(self._action)
        ended = bool(self._endings[0] != RUNNING)
        info = self.episodes.end_info(0) if ended else {}
        if self._clipped[0]:
            info |= {"clipped": int(self._clipped[0])}
        return self._observation.copy(), float(self._rewards[0]), False, ended, info

    @property
    def counters(self) -> dict[str, float]:
        """The counters of the last step."""
        return {name: float(values[0]) for name, values in self.episodes.counters.items()}
