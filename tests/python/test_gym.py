"""The learning environments of `narrows.gym`: interfaces, episodes, agreement with runs, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import processes  # noqa: E402
from narrows.campaign.record import Run  # noqa: E402
from narrows.errors import DataError, NarrowsError, UsageError  # noqa: E402
from narrows.gym import COUNTERS, REWARDS, FlowVectorEnv  # noqa: E402

HOLD = 2
PATH: dict[str, Any] = {
    "schema": "narrows/scenario/1",
    "question": "Does it work?",
    "where": "simulate",
    "path": {
        "forward": [
            {"rate": "12 Mbit/s", "queue": {"droptail": "60 kB"}},
            {"loss": "0.1 %"},
            {"delay": "20 ms"},
        ],
        "backward": [{"delay": "20 ms"}],
    },
    "schemes": ["indigo"],
    "duration": "20 s",
}


def make(**settings: Any) -> Any:
    return gymnasium.make("narrows/Flow-v0", **{"path": PATH, "steps": 50} | settings)


def make_vec(count: int, **settings: Any) -> FlowVectorEnv:
    made = gymnasium.make_vec("narrows/Flow-v0", num_envs=count, **{"path": PATH, "steps": 50} | settings)
    assert isinstance(made, FlowVectorEnv)
    return made


def play(env: Any, seed: int, actions: int = 200) -> tuple[list[Any], dict[str, Any]]:
    """Observations and rewards of an episode of pseudo-random actions, and the info of its start."""
    observation, start = env.reset(seed=seed)
    chosen = np.random.default_rng(seed).integers(5, size=actions)
    rows = [observation]
    for action in chosen:
        observation, reward, terminated, truncated, _ = env.step(action)
        rows += [observation, reward]
        assert not terminated
        if truncated:
            break
    return rows, start


@pytest.mark.filterwarnings(
    "ignore:.*Box observation space m.*imum value is", "ignore:.*For Box action spaces"
)
@pytest.mark.parametrize("scheme", ["indigo", "muses", "remy"])
def test_environments_pass_the_checker(scheme: str) -> None:
    check_env(make(scheme=scheme).unwrapped, skip_render_check=True)


def test_the_info_of_a_start_describes_the_path() -> None:
    _, info = make().reset(seed=3)
    assert info["capacity_bps"] == 12e6
    assert info["base_rtt_ns"] == 40e6
    assert info["buffer_bytes"] == 60_000
    assert np.isnan(info["best_window"])
    cell = json.loads(info["cell"])
    assert cell["seed"] == info["seed"] and cell["flows"][0]["scheme"] == "indigo"


def test_an_episode_ends_after_its_steps_or_its_run() -> None:
    env = make(steps=7)
    env.reset(seed=1)
    endings = [env.step(HOLD)[3:] for _ in range(7)]
    assert [ended for ended, _ in endings] == [False] * 6 + [True]
    assert endings[-1][1]["ending"] == "steps"
    env = make(steps=10**6, changes={"duration": "1 s"})
    env.reset(seed=1)
    for _ in range(200):
        *_, ended, info = env.step(HOLD)
        if ended:
            break
    assert info["ending"] == "duration"


def test_equal_seeds_give_equal_episodes_and_others_do_not() -> None:
    env = make()
    first, again, other = play(env, 5)[0], play(env, 5)[0], play(env, 6)[0]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_window_that_is_held_sends_that_many_packets_per_round_trip() -> None:
    env = make(steps=60, changes={"duration": "10 s"})
    env.reset(seed=9)
    inner = env.unwrapped
    sent = inner.counters["sent_packets"]
    for _ in range(60):
        env.step(HOLD)
        sent += inner.counters["sent_packets"]
    assert set(inner.counters) == set(COUNTERS)
    # The window stays at ten packets, so that each round trip of 40 ms sends ten.
    end_s = inner.counters["time_ns"] / 1e9
    assert sent == pytest.approx(10 * end_s / 0.040, rel=0.1)
    assert inner.counters["cwnd_packets"] == 10


def test_many_environments_are_those_of_one() -> None:
    count = 6
    single = make()
    alone = [play(single, 40 + k, 30)[0] for k in range(count)]
    for threads in (1, 2, 5):
        env = make_vec(count, threads=threads)
        observations, _ = env.reset(seed=40)
        chosen = np.stack([np.random.default_rng(40 + k).integers(5, size=200) for k in range(count)])
        rows: list[list[Any]] = [[row] for row in observations]
        for step in range(30):
            observations, rewards, *_ = env.step(chosen[:, step])
            for k in range(count):
                rows[k] += [observations[k], rewards[k]]
        for one, other in zip(alone, rows, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)), threads


def test_autoreset_begins_the_next_episode_in_the_step_after_the_last() -> None:
    env = make_vec(3, steps=4)
    env.reset(seed=1)
    for step in range(1, 11):
        _, rewards, _, truncated, infos = env.step([HOLD] * 3)
        assert truncated.tolist() == [step % 5 == 4] * 3
        if step % 5 == 0:
            assert rewards.tolist() == [0.0] * 3
            assert np.all(np.asarray(infos["_capacity_bps"]))


def test_autoreset_in_the_same_step_keeps_the_last_observation() -> None:
    plain, same = make_vec(2, steps=4, autoreset="disabled"), make_vec(2, steps=4, autoreset="same")
    plain.reset(seed=1)
    begun, _ = same.reset(seed=1)
    for _ in range(4):
        last, rewards, _, ended, _ = plain.step([HOLD] * 2)
        new, same_rewards, _, truncated, infos = same.step([HOLD] * 2)
        assert np.array_equal(rewards, same_rewards)
    assert truncated.all() and ended.all()
    assert np.array_equal(np.stack(list(same.final_observations)), last)
    final: Any = infos["final_info"]
    assert list(final["ending"]) == ["steps"] * 2 and infos["final_obs"] is same.final_observations
    assert new.shape == begun.shape and not np.array_equal(new, last)
    assert not same.step([HOLD] * 2)[3].any()


def test_disabled_autoreset_begins_where_the_mask_says() -> None:
    env = make_vec(3, steps=2, autoreset="disabled")
    env.reset(seed=1)
    env.step([HOLD] * 3)
    env.step([HOLD] * 3)
    env.reset(options={"reset_mask": np.array([False, True, False])})
    assert env.step([HOLD] * 3)[3].tolist() == [True, False, True]


def test_views_are_overwritten_and_copies_are_not() -> None:
    for copy in (True, False):
        env = make_vec(2, copy=copy)
        first, _ = env.reset(seed=1)
        kept = first.copy()
        env.step([4, 4])
        assert np.array_equal(first, kept) == copy


@pytest.mark.parametrize("reward", sorted(REWARDS))
def test_rewards_follow_their_definitions(reward: str) -> None:
    env = make(reward=reward)
    _, info = env.reset(seed=2)
    for action in (HOLD, 3, 4, HOLD, HOLD, 1):
        window = env.unwrapped.counters["cwnd_packets"]
        _, got, *_ = env.step(action)
        c = env.unwrapped.counters
        throughput = c["delivered_bytes"] * 8e9 / c["step_ns"]
        rtt = c["rtt_sum_ns"] / c["rtt_samples"]
        loss = c["lost_packets"] / (c["lost_packets"] + c["acked_packets"])
        share, slower = throughput / 12e6, max(rtt / 40e6, 1)
        known = {
            "power": np.log2(max(share, 2**-10)) - np.log2(slower),
            "remy": np.log2(max(share, 2**-10)) - np.log2(slower),
            "aurora": 10 * throughput / 12_000 - 1000 * rtt / 1e9 - 2000 * loss,
            "orca": (share - 5 * share * loss) / (1 if slower <= 1.25 else slower),
        }
        if reward == "imitation":
            windows = [window / 2, window - 10, window, window + 10, window * 2]
            distances = [abs(np.log(max(w, 2) / info["best_window"])) for w in windows]
            assert got == (action == int(np.argmin(distances)))
        else:
            assert got == pytest.approx(known[reward], rel=1e-9)


def test_the_best_window_is_near_the_bandwidth_delay_product() -> None:
    _, info = make(oracle=True).reset(seed=1)
    assert 36 <= info["best_window"] <= 56


def test_a_function_judges_all_environments_at_once() -> None:
    calls = []

    def reward(counters: Any, facts: Any) -> Any:
        calls.append(len(facts["capacity_bps"]))
        return counters["delivered_bytes"] / facts["capacity_bps"]

    env = make_vec(4, reward=reward)
    env.reset(seed=1)
    rewards = env.step([HOLD] * 4)[1]
    assert calls == [4] and np.array_equal(rewards, env.episodes.counters["delivered_bytes"] / 12e6)


def test_a_function_counts_what_the_link_carries() -> None:
    """A window far beyond the path keeps the link full, headers included."""
    path = PATH | {"path": {"forward": [{"rate": "12 Mbit/s", "queue": "unlimited"}, {"delay": "20 ms"}]}}
    env = make(path=path, steps=200)
    env.reset(seed=1)
    for action in (4, 4, 4, *[HOLD] * 100):
        env.step(action)
    counters = env.unwrapped.counters
    assert counters["delivered_bytes"] * 8e9 / counters["step_ns"] == pytest.approx(12e6, rel=0.05)
    assert counters["delivered_bytes"] % 1500 == 0


def test_a_sweep_is_a_distribution_of_paths_and_options_choose_among_them() -> None:
    path = PATH | {"sweep": {"path.forward.0.rate": ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"]}}
    env = make(path=path)
    capacities = {env.reset(seed=seed)[1]["capacity_bps"] for seed in range(20)}
    assert capacities == {5e6, 10e6, 20e6}
    assert {env.reset(options={"courses": [1]})[1]["capacity_bps"] for _ in range(5)} == {10e6}
    info = env.reset(options={"course": 2, "seed": 77})[1]
    assert (info["capacity_bps"], info["seed"]) == (20e6, 77)


def test_actions_out_of_range_are_clipped_and_counted() -> None:
    env = make()
    env.reset(seed=1)
    assert "clipped" not in env.step(4)[4]
    assert env.step(9)[4]["clipped"] == 1
    *_, info = env.step(-1)
    assert info["clipped"] == 2
    # Five packets: the half of ten doubled twice.
    assert env.unwrapped.counters["cwnd_packets"] == 20


def test_an_action_that_is_no_number_ends_the_episode() -> None:
    env = make(scheme="remy")
    env.reset(seed=1)
    *_, truncated, info = env.step([1.0, np.nan, 1.0])
    assert truncated and info["fault"] == "the action is not a number"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"scheme": "cubic"}, "cubic makes no decisions"),
        ({"scheme": "nosuch"}, "nosuch"),
        ({"reward": "money"}, "unknown reward 'money'"),
        ({"steps": 0}, "steps is 0"),
        ({"paths": 0}, "paths is 0"),
        ({"path": "no/such/scenario"}, "no/such/scenario"),
        ({"path": {"schema": "narrows/scenario/1"}}, "path"),
        ({"scheme": "remy", "oracle": True}, "five actions"),
        ({"changes": {"flows": {"traffic": "nosuch"}}}, "nosuch"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(NarrowsError, match=said):
        make(**settings)


def test_bad_options_are_refused() -> None:
    env, vector = make(), make_vec(2)
    bad: list[dict[str, Any]] = [{"course": 5}, {"courses": []}, {"curse": 1}]
    for options in bad:
        with pytest.raises(UsageError):
            env.reset(options=options)
    with pytest.raises(UsageError, match="seeds"):
        vector.reset(seed=[1, 2, 3])
    with pytest.raises(UsageError, match="autoreset"):
        make_vec(2, autoreset="sometimes")


def test_narrows_run_repeats_the_cell_of_an_episode(tmp_path: Path) -> None:
    """The published decisions of the scheme are played from outside; the record is that of the scheme."""
    env = make(changes={"duration": "3 s"})
    _, info = env.reset(seed=4)
    file = tmp_path / "episode.json"
    file.write_text(info["cell"])
    program = str(Path(sys.executable).with_name("narrows"))
    done = processes.run([program, "run", str(file)], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    record = tmp_path / "episode"
    assert Run(record).verdict == "ok"
    checked = processes.run([program, "check", str(record)], cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    again = processes.run([program, "run", str(file)], cwd=tmp_path)
    assert again.returncode == 2 and "exists already" in again.stderr
    refused = processes.run([program, "run", str(file), "--runs", "3"], cwd=tmp_path)
    assert refused.returncode == 2 and "--runs has no meaning" in refused.stderr


def test_a_cell_whose_files_are_missing_is_refused(tmp_path: Path) -> None:
    _, info = make().reset(seed=4)
    cell = json.loads(info["cell"])
    cell["flows"][0]["params"]["model"]["sha256"] = "0" * 64
    file = tmp_path / "episode.json"
    file.write_text(json.dumps(cell))
    done = processes.run([str(Path(sys.executable).with_name("narrows")), "run", str(file)], cwd=tmp_path)
    assert done.returncode == 3 and "names the file indigo.safetensors" in done.stderr
    assert not (tmp_path / "episode").exists()


def test_importing_narrows_does_not_import_gymnasium() -> None:
    code = "import narrows, sys; assert 'gymnasium' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_of_data_name_the_problem() -> None:
    from narrows.gym.courses import load_courses

    with pytest.raises(DataError, match="much"):
        load_courses(PATH | {"sweep": {"path.forward.0.rate": ["much"]}}, 3)


def policy(**more: Any) -> dict[str, Any]:
    return {"scheme": "policy", "observation": "orca", "step": "time", "action": "window-factor"} | more


@pytest.mark.parametrize(
    ("observation", "size"),
    [("indigo", 9), ("muses", 11), ("aurora", 30), ("orca", 7), ("remy", 4), ("raw", 16)],
)
def test_a_policy_without_a_model_is_an_agent_of_any_design(observation: str, size: int) -> None:
    for action in ("indigo", "rate-factor", "window-factor", "window", "rate", "cubic-factor"):
        env = make(scheme=policy(observation=observation, action=action))
        assert env.observation_space.shape == (size,)
        env.reset(seed=1)
        for _ in range(20):
            seen, reward, *_ = env.step(2 if action == "indigo" else [0.5])
            assert np.isfinite(seen).all() and np.isfinite(reward)
    with pytest.raises(NarrowsError, match="blue"):
        make(scheme=policy(observation="blue"))


@pytest.mark.filterwarnings("ignore")
def test_several_agents_pass_the_tests_of_pettingzoo() -> None:
    pytest.importorskip("pettingzoo")
    from pettingzoo.test import parallel_api_test, parallel_seed_test

    from narrows.gym.flow_parallel_env import FlowParallelEnv

    def several() -> FlowParallelEnv:
        return FlowParallelEnv(flows=3, path=PATH, scheme=policy(), steps=40)

    parallel_api_test(several(), num_cycles=200)
    parallel_seed_test(several)


def test_several_agents_decide_at_one_instant() -> None:
    pytest.importorskip("pettingzoo")
    from narrows.gym.flow_parallel_env import FlowParallelEnv

    env = FlowParallelEnv(flows=3, path=PATH, scheme=policy(step_amount=25), steps=40)
    env.reset(seed=1)
    actions = {agent: np.array([0.1], dtype=np.float32) for agent in env.agents}
    times = []
    for _ in range(30):
        env.step(actions)
        assert len(set(env.episodes.counters["time_ns"].tolist())) == 1
        times.append(env.episodes.counters["time_ns"][0])
    assert {time % 25e6 for time in times} == {0.0}
    assert np.diff(times).tolist() == [25e6] * 29
    for scheme, said in (("indigo", "step: time"), (policy(step="ack"), "step: time")):
        with pytest.raises(UsageError, match=said):
            FlowParallelEnv(path=PATH, scheme=scheme)


@pytest.mark.filterwarnings("ignore")
def test_collected_steps_are_those_of_the_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    import pyarrow.parquet as pq

    from narrows.gym import collect

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    env = make(steps=20)
    out = collect(env, lambda _: 3, 3, tmp_path / "steps.parquet", seed=5, minari_id="narrows/toy/test-v0")
    table = pq.read_table(out)
    assert table.num_rows == 60 and table["truncated"].to_numpy().sum() == 3
    rows, start = play_constant(env, 6, 3)
    second = table.filter(np.asarray(table["episode"]) == 1)
    assert np.array_equal(np.stack(second["observation"].to_pylist()), np.stack(rows)[:-1])
    assert json.loads(table.schema.metadata[b"cell.1"])["seed"] == start["seed"]
    dataset = minari.load_dataset("narrows/toy/test-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (3, 60)
    assert np.array_equal(next(iter(dataset.iterate_episodes([1]))).observations, np.stack(rows))


def play_constant(env: Any, seed: int, action: int) -> tuple[list[Any], dict[str, Any]]:
    """Observations of an episode of one action, and the info of its start."""
    observation, start = env.reset(seed=seed)
    rows, ended = [observation], False
    while not ended:
        observation, _, _, ended, _ = env.step(action)
        rows.append(observation)
    return rows, start


@pytest.mark.filterwarnings("ignore")
def test_stable_baselines_learns_in_an_environment() -> None:
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from narrows.gym import sb3

    made = make_vec(4, autoreset="same", scheme=policy(), steps=100)
    stable_baselines3.PPO("MlpPolicy", sb3(made), n_steps=100, batch_size=100).learn(2_000)
    with pytest.raises(UsageError, match="autoreset"):
        sb3(make_vec(2))
