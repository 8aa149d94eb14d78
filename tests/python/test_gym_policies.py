"""The policies of schemes as functions: agreement with runs, memories, model files, refusals."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

import processes
from narrows.errors import NarrowsError, UsageError
from narrows.gym import Policy
from test_gym import make

DECIDED_OUTSIDE = {"scheme": "policy", "observation": "indigo", "step": "time", "action": "window-factor"}


def test_a_policy_outside_sends_the_packets_of_the_scheme(tmp_path: Path) -> None:
    """`tests/all/gym.rs` compares the decisions in all bits; this is the way of a user."""
    env, policy = make(changes={"duration": "3 s"}, steps=10_000).unwrapped, Policy("indigo")
    observation, info = env.reset(seed=4)
    sent, ended = 0.0, False
    while not ended:
        observation, _, _, ended, _ = env.step(policy(observation))
        sent += env.counters["sent_packets"]
    file = tmp_path / "episode.json"
    file.write_text(info["cell"])
    program = str(Path(sys.executable).with_name("narrows"))
    assert processes.run([program, "run", str(file)], cwd=tmp_path).returncode == 0
    run = json.loads((tmp_path / "episode" / "run.json").read_text())
    total = run["flows"][0]["sender"]["sent_packets"]
    # Packets after the last decision belong to no step.
    assert total > 1000 and 0 <= total - sent < 40


def test_copies_of_a_policy_act_as_single_ones_and_remember_apart() -> None:
    observations = np.random.default_rng(3).random((40, 3, 9)).astype(np.float32)
    copies = Policy("indigo", num_envs=3)
    actions = np.array([copies(rows) for rows in observations])
    assert actions.dtype == np.int64 and len(np.unique(actions)) > 1
    for index in range(3):
        single = Policy("indigo")
        assert [single(rows[index]) for rows in observations] == actions[:, index].tolist()
    copies.reset([False, True, False])
    again = np.array([copies(rows) for rows in observations])
    assert again[:, 1].tolist() == actions[:, 1].tolist()


def test_a_model_file_is_a_policy(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    layers = [{"kind": "dense", "activation": "none"}]
    design = {"observation": "aurora", "step": "time", "action": "rate-factor", "layers": layers}
    file = tmp_path / "mine.safetensors"
    kernel = np.linspace(-1, 1, 30, dtype=np.float32).reshape(30, 1)
    arrays = {"kernel0": kernel, "bias0": np.array([0.25], dtype=np.float32)}
    save_file(arrays, file, metadata={"kind": "policy", "policy": json.dumps(design)})
    observation = np.arange(30, dtype=np.float32) / 30
    for scheme in (file, str(file), {"scheme": "policy", "model": str(file)}):
        (action,) = Policy(scheme)(observation)
        assert action == pytest.approx(float(observation @ kernel[:, 0]) + 0.25, abs=1e-5)


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("cubic", "cubic makes no decisions"),
        ("cubik", 'did you mean "cubic"'),
        (DECIDED_OUTSIDE, "has no model"),
        ("none.safetensors", "none.safetensors"),
        (__file__ + ".safetensors", "is not a model file"),
    ],
)
def test_schemes_without_a_policy_are_refused(scheme: Any, said: str) -> None:
    with pytest.raises(NarrowsError, match=said):
        Policy(scheme)


def test_observations_of_another_shape_are_refused() -> None:
    with pytest.raises(UsageError, match=r"\(9,\) is required"):
        Policy("indigo")(np.zeros(8))
    with pytest.raises(UsageError, match=r"\(2, 9\) is required"):
        Policy("indigo", num_envs=2)(np.zeros(9))
    with pytest.raises(UsageError, match=r"\(2,\) is required"):
        Policy("indigo", num_envs=2).reset([True])
    with pytest.raises(UsageError, match="num_envs"):
        Policy("indigo", num_envs=0)
