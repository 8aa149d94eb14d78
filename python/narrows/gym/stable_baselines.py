"""Environments for Stable-Baselines3, which accepts only its own kind of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from narrows.errors import UsageError
from narrows.gym.episodes import Info
from narrows.gym.flow_vector_env import FlowVectorEnv


class StableBaselinesEnv(VecEnv):  # type: ignore[misc]
    """A `FlowVectorEnv` with `autoreset="same"` in the form of Stable-Baselines3."""

    def __init__(self, env: FlowVectorEnv) -> None:
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise UsageError('Stable-Baselines3 needs an environment with autoreset="same"')
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
        self.env = env
        self.actions: NDArray[Any] = np.zeros(0)

    def reset(self) -> NDArray[np.float32]:
        """Begins an episode in each environment; `seed` has been called before to choose them."""
        seeds = [each for each in self._seeds if each is not None]
        observations, infos = self.env.reset(seed=seeds if len(seeds) == self.num_envs else None)
        self._reset_seeds()
        self.reset_infos = self._rows(infos)
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keeps the actions for `step_wait`."""
        self.actions = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[Info]]:
        """Lets all environments act."""
        observations, rewards, terminated, truncated, _ = self.env.step(self.actions)
        done = terminated | truncated
        rows: list[Info] = [{} for _ in range(self.num_envs)]
        if done.any():
            ends = self._rows(self.env.final_infos)
            for index in np.flatnonzero(done):
                rows[index] = {
                    **ends[index],
                    "terminal_observation": self.env.final_observations[index],
                    "TimeLimit.truncated": not terminated[index],
                }
        return observations, rewards.astype(np.float32), done, rows

    def _rows(self, infos: Info) -> list[Info]:
        """One dictionary for each environment."""
        rows: list[Info] = [{} for _ in range(self.num_envs)]
        for name, values in infos.items():
            known = infos.get(f"_{name}")
            if isinstance(known, np.ndarray) and isinstance(values, np.ndarray):
                for index in np.flatnonzero(known):
                    rows[index][name] = values[index]
        return rows

    def close(self) -> None:
        """Closes the environments."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """An attribute, which all environments share."""
        return [getattr(self.env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:  # noqa: ARG002
        """Refused: worlds have no attributes of single environments."""
        raise UsageError(f"{attr_name} can't be set; choose settings when the environment is made")

    def env_method(self, method_name: str, *_: Any, **_more: Any) -> list[Any]:
        """Refused for the same reason."""
        raise UsageError(f"the environments have no method {method_name}")

    def env_is_wrapped(self, _wrapper_class: Any, indices: Any = None) -> Sequence[bool]:
        """No environment is wrapped."""
        return [False] * len(list(self._get_indices(indices)))
