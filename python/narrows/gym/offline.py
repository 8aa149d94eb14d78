"""Offline data: episodes of a policy as a Parquet file, and as a data set of Minari."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from narrows.errors import UsageError
from narrows.gym.flow_env import FlowEnv
from narrows.gym.policy import Policy

#: A policy: from an observation to an action.
PolicyFunction = Callable[[NDArray[np.float32]], Any]


@dataclass
class Episode:
    """One recorded episode. Observations have one row more than actions."""

    seed: int
    cell: str
    observations: list[NDArray[np.float32]] = field(default_factory=list)
    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


def play(env: FlowEnv, policy: PolicyFunction, seed: int) -> Episode:
    """Plays an episode to its end."""
    observation, _ = env.reset(seed=seed)
    if isinstance(policy, Policy):
        policy.reset()
    episode = Episode(seed, env.episodes.cell(0), [observation])
    ended = False
    while not ended:
        action = policy(observation)
        observation, reward, _, ended, _ = env.step(action)
        episode.observations.append(observation)
        episode.actions.append(action)
        episode.rewards.append(reward)
    return episode


def collect(
    env: Any,
    policy: PolicyFunction,
    episodes: int,
    out: str | Path,
    *,
    seed: int = 1,
    minari_id: str | None = None,
) -> Path:
    """Plays episodes with the seeds `seed`, `seed + 1` ... and writes them to the Parquet file `out`: a row
    for each step with episode, step, observation, action, reward, next observation, and whether the episode
    ended with it. The file's metadata hold the cell of each episode.

    With `minari_id` (such as `narrows/power/random-v0`) they also become a local data set of Minari; its
    loader is `minari.load_dataset`. Needs the extra `narrows[gym-offline]`.
    """
    inner = env.unwrapped
    if not isinstance(inner, FlowEnv):
        raise UsageError("collect plays single environments: gymnasium.make('narrows/Flow-v0', ...)")
    if episodes < 1:
        raise UsageError(f"episodes is {episodes}; at least one is required")
    played = [play(inner, policy, seed + number) for number in range(episodes)]
    path = Path(out)
    pq.write_table(_table(played), path, compression="zstd")
    if minari_id is not None:
        _save_minari(env, played, minari_id)
    return path


def _table(played: list[Episode]) -> pa.Table:
    steps = [len(episode.actions) for episode in played]
    before = np.concatenate([np.stack(episode.observations[:-1]) for episode in played])
    after = np.concatenate([np.stack(episode.observations[1:]) for episode in played])
    actions = np.stack(
        [np.asarray(action, dtype=np.float32) for episode in played for action in episode.actions]
    )
    last = np.concatenate([np.arange(count) == count - 1 for count in steps])
    columns = {
        "episode": np.repeat(np.arange(len(played)), steps),
        "step": np.concatenate([np.arange(count) for count in steps]),
        "observation": _lists(before),
        "action": _lists(actions.reshape(len(actions), -1)),
        "reward": np.concatenate([episode.rewards for episode in played]),
        "next_observation": _lists(after),
        "truncated": last,
    }
    notes = {f"cell.{number}": episode.cell for number, episode in enumerate(played)}
    return pa.table(columns).replace_schema_metadata(notes)


def _lists(rows: NDArray[np.float32]) -> pa.FixedSizeListArray:
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])


def _save_minari(env: Any, played: list[Episode], name: str) -> None:
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = [
        EpisodeBuffer(
            id=number,
            seed=episode.seed,
            options=None,
            observations=episode.observations,
            actions=episode.actions,
            rewards=episode.rewards,
            terminations=[False] * len(episode.actions),
            truncations=[*[False] * (len(episode.actions) - 1), True],
            infos=None,
        )
        for number, episode in enumerate(played)
    ]
    minari.create_dataset_from_buffers(name, buffers, env=env, data_format="arrow")
