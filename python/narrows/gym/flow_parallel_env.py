"""Environments with several agents, by the interface of PettingZoo."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from narrows.errors import UsageError
from narrows.gym.courses import DEFAULT_COURSES, DEFAULT_PATH
from narrows.gym.episodes import RUNNING, Episodes, Info, Options, RewardFunction, Settings

_Observations = dict[str, NDArray[np.float32]]


class FlowParallelEnv(ParallelEnv[str, NDArray[np.float32], Any]):  # type: ignore[misc]
    """Flows that share a path, each an agent: `flow_1`, `flow_2` ...

    All agents act at one instant, so that the scheme must decide by the clock: `{"scheme": "policy", "step":
    "time", ...}`. Until its first acknowledgement an agent observes zeros, and its actions have no effect.
    """

    def __init__(
        self,
        flows: int = 2,
        path: str | Path | Mapping[str, Any] = DEFAULT_PATH,
        scheme: str | Mapping[str, Any] | None = None,
        reward: str | RewardFunction = "remy",
        steps: int = 1000,
        paths: int = DEFAULT_COURSES,
        changes: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if flows < 2:
            raise UsageError(f"flows is {flows}; several agents are at least two, one is narrows/Flow-v0")
        self.metadata: Info = {"name": "narrows_flows_v0", "render_modes": []}
        self.render_mode = render_mode
        settings = Settings(
            path, scheme, reward, steps, paths, {"flows": {"count": flows}, **(changes or {})}
        )
        self.episodes = Episodes(settings, 1, range(flows))
        self.episodes.require_common_instants()
        self.possible_agents = [f"flow_{number}" for number in range(1, flows + 1)]
        self.agents: list[str] = []
        self.observation_spaces = dict.fromkeys(self.possible_agents, self.episodes.observation_space)
        self.action_spaces = dict.fromkeys(self.possible_agents, self.episodes.action_space)
        self._random, _ = seeding.np_random()
        self._actions = np.zeros((flows, len(self.episodes.worlds.bounds)), dtype=np.float32)

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations, the same for all."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions, the same for all."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: Info | None = None
    ) -> tuple[_Observations, dict[str, Info]]:
        """Begins an episode, with the options of `narrows/Flow-v0`."""
        if seed is not None:
            self._random, _ = seeding.np_random(seed)
        self.episodes.observations[:] = 0.0
        # PettingZoo lets callers pass options that an environment does not know.
        known = {name: value for name, value in (options or {}).items() if name in Options.__struct_fields__}
        self.episodes.begin(np.ones(1, dtype=np.bool_), [self._random], Options.read(known))
        self.agents = list(self.possible_agents)
        info = self.episodes.start_info(0)
        return self._observations(), {agent: dict(info) for agent in self.agents}

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[_Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Lets all agents act and runs to the next instant with decisions."""
        for row, agent in enumerate(self.possible_agents):
            self._actions[row] = actions[agent]
        self.episodes.act(self._actions.reshape(-1))
        ended = bool(self.episodes.endings[0] != RUNNING)
        acted, agents = self.agents, self.possible_agents
        info = self.episodes.end_info(0) if ended else {}
        infos = {
            agent: {**info, "clipped": int(self.episodes.clipped[row])} for row, agent in enumerate(agents)
        }
        rewards = {agent: float(self.episodes.rewards[row]) for row, agent in enumerate(agents)}
        self.agents = [] if ended else acted
        return (
            self._observations(),
            rewards,
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, ended),
            infos,
        )

    def _observations(self) -> _Observations:
        rows = self.episodes.observations
        return {agent: rows[row].copy() for row, agent in enumerate(self.possible_agents)}
