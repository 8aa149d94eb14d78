"""Decisions per second of `narrows.gym` through the interfaces of Gymnasium, as JSON for the benchmark table."""

import json
import statistics
import time

import gymnasium
import numpy as np

import narrows.gym  # noqa: F401

PATH = {
    "schema": "narrows/scenario/1",
    "where": "simulate",
    "path": {
        "forward": [{"rate": "12 Mbit/s", "queue": {"droptail": "120 kB"}}, {"delay": "20 ms"}],
        "backward": [{"delay": "20 ms"}],
    },
    "schemes": ["indigo"],
    "duration": "10000 s",
}
HOLD, RAISES = 2, (4, 4, 3)
RUNS, DECISIONS = 5, 100_000


def measure(count: int, **settings: object) -> float:
    """Decisions per second of processor time, the median of runs."""
    if count == 1:
        env = gymnasium.make("narrows/Flow-v0", path=PATH, steps=2**31).unwrapped
        actions = [*RAISES, HOLD]
    else:
        env = gymnasium.make_vec("narrows/Flow-v0", num_envs=count, path=PATH, steps=2**31, threads=1, **settings)
        actions = [np.full(count, action) for action in (*RAISES, HOLD)]
    env.reset(seed=1)
    for action in actions:
        env.step(action)
    hold, steps, speeds = actions[-1], DECISIONS // count, []
    for _ in range(RUNS):
        began = time.process_time()
        for _ in range(steps):
            env.step(hold)
        speeds.append(steps * count / (time.process_time() - began))
    return statistics.median(speeds)


rows = [
    {"name": "1 environment, Env.step", "per_s": measure(1)},
    {"name": "256 environments, FlowVectorEnv.step, copy", "per_s": measure(256)},
    {"name": "256 environments, FlowVectorEnv.step, views", "per_s": measure(256, copy=False)},
]
print(json.dumps(rows))
