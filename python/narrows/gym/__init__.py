"""The simulator as a learning environment: flows whose decisions an agent makes.

    import gymnasium
    import narrows.gym

    env = gymnasium.make("narrows/Flow-v0", path="slow-link", scheme="indigo",
    reward="power") envs = gymnasium.make_vec("narrows/Flow-v0", num_envs=256)

Importing this module registers the environments. It needs the extra `narrows[gym]`.
"""

from __future__ import annotations

from typing import Any

from narrows.errors import UsageError
from narrows.extras import missing_library

try:
    import gymnasium
except ModuleNotFoundError as error:
    raise (missing_library(error) or error) from None

from narrows.gym.episodes import COUNTERS, REWARDS
from narrows.gym.flow_env import FlowEnv
from narrows.gym.flow_vector_env import FlowVectorEnv
from narrows.gym.offline import collect
from narrows.gym.policy import Policy

__all__ = ["COUNTERS", "REWARDS", "FlowEnv", "FlowVectorEnv", "Policy", "collect", "parallel_env", "sb3"]

gymnasium.register(
    id="narrows/Flow-v0",
    entry_point="narrows.gym.flow_env:FlowEnv",
    vector_entry_point="narrows.gym.flow_vector_env:FlowVectorEnv",
    disable_env_checker=True,
)


def sb3(env: object) -> object:
    """The vector environment `env`, made with `autoreset="same"`, for Stable-Baselines3. Needs the extra
    `narrows[gym-sb3]`.
    """
    if not isinstance(env, FlowVectorEnv):
        raise UsageError(
            "sb3 takes an environment of gymnasium.make_vec('narrows/Flow-v0', autoreset='same')"
        )
    try:
        from narrows.gym.stable_baselines import StableBaselinesEnv
    except ModuleNotFoundError as error:
        raise (missing_library(error) or error) from None
    return StableBaselinesEnv(env)


def parallel_env(**settings: Any) -> Any:
    """A `FlowParallelEnv` with these settings: flows that share a path, each an agent. Needs the extra
    `narrows[gym-multi]`.
    """
    try:
        from narrows.gym.flow_parallel_env import FlowParallelEnv
    except ModuleNotFoundError as error:
        raise (missing_library(error) or error) from None
    return FlowParallelEnv(**settings)
