"""Many environments as one: `gymnasium.make_vec("narrows/Flow-v0", num_envs=256, ...)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from narrows.errors import UsageError
from narrows.gym.courses import DEFAULT_COURSES, DEFAULT_PATH
from narrows.gym.episodes import RUNNING, Episodes, Info, Options, RewardFunction, Settings

_Floats = NDArray[np.float32]
_NO_OPTIONS = Options()
#: Autoreset modes by the words of `autoreset`.
AUTORESET = {
    "next": AutoresetMode.NEXT_STEP,
    "same": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


class FlowVectorEnv(VectorEnv[_Floats, Any, NDArray[Any]]):
    """Environments whose worlds run on several threads in one call; results do not depend on their number.

    With `copy=False` returned arrays are views that the next step overwrites. `autoreset` is `next` (the step
    after the last one of an episode begins another), `same` (the last step does, and `info["final_obs"]`
    keeps the last observation) or `disabled` (`reset(options={"reset_mask": mask})` does).
    """

    def __init__(
        self,
        num_envs: int = 1,
        path: str | Path | Mapping[str, Any] = DEFAULT_PATH,
        scheme: str | Mapping[str, Any] | None = None,
        reward: str | RewardFunction = "power",
        steps: int = 1000,
        paths: int = DEFAULT_COURSES,
        changes: Mapping[str, Any] | None = None,
        oracle: bool = False,
        threads: int | None = None,
        copy: bool = True,
        autoreset: str | AutoresetMode = "next",
    ) -> None:
        mode = AUTORESET.get(autoreset) if isinstance(autoreset, str) else autoreset
        if mode is None:
            raise UsageError(f"unknown autoreset '{autoreset}'; use {', '.join(AUTORESET)}")
        if num_envs < 1:
            raise UsageError(f"num_envs is {num_envs}; at least one environment is required")
        self.num_envs = num_envs
        self.metadata = {"render_modes": [], "autoreset_mode": mode}
        settings = Settings(path, scheme, reward, steps, paths, changes, oracle, threads)
        self.episodes = Episodes(settings, num_envs)
        self.single_observation_space = self.episodes.observation_space
        self.single_action_space = self.episodes.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.autoreset_mode = mode
        self._copy = copy
        #: Results of the episodes that ended in the last step, with `autoreset="same"`.
        self.final_infos: Info = {}
        self.final_observations = np.full(num_envs, None, dtype=object)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._terminated = np.zeros(num_envs, dtype=np.bool_)
        self._actions = np.zeros((num_envs, len(self.episodes.worlds.bounds)), dtype=np.float32)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: Info | None = None,
    ) -> tuple[_Floats, Info]:
        """Begins an episode in each environment, or where `options["reset_mask"]` is true. Environment `k`
        has the seed `seed + k`, or the `k`-th of a list.
        """
        chosen = Options.read(options)
        mask = np.asarray([True] * self.num_envs if chosen.reset_mask is None else chosen.reset_mask)
        if mask.shape != (self.num_envs,) or not mask.any():
            raise UsageError(f"reset_mask must have {self.num_envs} values, at least one of them true")
        seeds = [seed + k for k in range(self.num_envs)] if isinstance(seed, int) else seed
        if seeds is not None:
            if len(seeds) != self.num_envs:
                raise UsageError(f"{len(seeds)} seeds for {self.num_envs} environments")
            for index, each in enumerate(seeds):
                if each is not None and mask[index]:
                    self._generators[index] = np.random.default_rng(each)
        infos = self._begin(mask, chosen)
        return self._hand_over(self.episodes.observations), infos

    def step(
        self, actions: Any
    ) -> tuple[_Floats, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Lets all environments act and runs each to its next decision."""
        self._actions[:] = np.asarray(actions, dtype=np.float32).reshape(self._actions.shape)
        before = self._ended
        next_step = self.autoreset_mode is AutoresetMode.NEXT_STEP
        self.episodes.act(self._actions.reshape(-1), before)
        ended = self.episodes.endings != RUNNING
        infos: Info = {}
        rewards = self.episodes.rewards
        if before.any():
            rewards[before] = 0.0
            if next_step:
                infos = self._begin(before)
                ended = self.episodes.endings != RUNNING
        new = ended & ~before
        if new.any():
            self._add_all(infos, new, self.episodes.end_info)
        if (clipped := self.episodes.clipped).any():
            infos |= {"clipped": clipped.astype(np.int64), "_clipped": clipped > 0}
        truncated = ended
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            infos = self._restart(infos, ended)
            ended = np.zeros_like(ended)
        self._ended = ended
        observations = self._hand_over(self.episodes.observations)
        return observations, self._hand_over(rewards), self._terminated.copy(), truncated, infos

    def _hand_over(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.copy() if self._copy else values

    def _begin(self, mask: NDArray[np.bool_], options: Options = _NO_OPTIONS) -> Info:
        """Begins episodes; returns their infos."""
        self.episodes.begin(mask, self._generators, options)
        infos: Info = {}
        self._add_all(infos, mask, self.episodes.start_info)
        self._ended = self._ended & ~mask
        return infos

    def _restart(self, infos: Info, ended: NDArray[np.bool_]) -> Info:
        """Begins episodes in place of those that have just ended."""
        final = np.full(self.num_envs, None, dtype=object)
        self.final_infos, self.final_observations = infos, final
        for index in np.flatnonzero(ended):
            final[index] = self.episodes.observations[index].copy()
        rewards = self.episodes.rewards.copy()
        begun = self._begin(ended)
        self.episodes.rewards[:] = rewards
        return {
            **begun,
            "final_obs": final,
            "_final_obs": ended.copy(),
            "final_info": infos,
            "_final_info": ended.copy(),
        }

    def _add_all(self, infos: Info, which: NDArray[np.bool_], info: Any) -> None:
        for index in np.flatnonzero(which):
            self._add_info(infos, info(int(index)), int(index))
