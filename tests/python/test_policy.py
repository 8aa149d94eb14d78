"""Policies of users: files made with the guide's converter, on all planes, and refusals."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from forked_commands import run_in
from narrows.models import store
from narrows.models.format import summary

GUIDE = Path(__file__).resolve().parents[2] / "docs/guide/learning.md"
SCENARIO = """\
schema: narrows/scenario/1
question: Do policies run?
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 4 bdp}}
    - {delay: 20 ms}
  backward:
    - {delay: 20 ms}
schemes: SCHEMES
duration: 8 s
"""
ORCA = {"observation": "orca", "step": {"rule": "time", "amount": 20}, "action": "cubic-factor"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NARROWS_MODELS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture(scope="module")
def save_policy() -> Callable[..., None]:
    """The converter in the guide."""
    (block,) = (
        code for code in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S) if "def " in code
    )
    names: dict[str, Any] = {}
    exec(block, names)
    function: Callable[..., None] = names["save_policy"]
    return function


@pytest.fixture
def gentle(save_policy: Callable[..., None], tmp_path: Path) -> Path:
    """The policy over CUBIC of the guide."""
    weights = {"0.weight": np.array([[0, 0, 0, 0, 0, 0, 1]]), "0.bias": np.array([-1])}
    save_policy(tmp_path / "gentle.safetensors", weights, ["none"], **ORCA)
    return tmp_path / "gentle.safetensors"


def narrows(*words: object, cwd: Path) -> Any:
    done = run_in(os.environ, [str(word) for word in words], cwd)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def run(cwd: Path, schemes: str, where: str = "simulate") -> dict[str, dict[str, float]]:
    """The metrics of each scheme by its label."""
    (cwd / "s.yaml").write_text(SCENARIO.replace("SCHEMES", schemes))
    done = narrows("run", "s.yaml", "--where", where, "--no-report", "-o", "out", cwd=cwd)
    assert done.returncode == 0, done.stderr
    rows = json.loads((cwd / "out/results.json").read_text())["rows"]
    return {row["scheme"]: row["metrics"] for row in rows}


def test_the_converter_reads_dictionaries_of_pytorch_and_of_flax(
    save_policy: Callable[..., None], tmp_path: Path
) -> None:
    first, second = np.arange(18.0).reshape(9, 2), np.array([[0.5], [-0.25]])
    torch = {"0.weight": first.T, "0.bias": np.zeros(2), "2.weight": second.T, "2.bias": np.ones(1)}
    flax = {
        "Dense_0": {"kernel": first, "bias": np.zeros(2)},
        "Dense_1": {"kernel": second, "bias": np.ones(1)},
    }
    design = {"observation": "indigo", "step": "ack", "action": "window-factor"}
    for name, weights in (("torch", torch), ("flax", flax)):
        path = tmp_path / f"{name}.safetensors"
        save_policy(path, weights, ["tanh", "none"], **design)
        arrays = load_file(path)
        assert np.array_equal(arrays["kernel0"], first) and np.array_equal(arrays["kernel1"], second)
        assert arrays["bias1"].tolist() == [1] and arrays["kernel0"].dtype == np.float32
        assert narrows("models", "add", name, path, cwd=tmp_path).returncode == 0
    for name in ("torch", "flax"):
        words = " ".join(narrows("models", "show", name, cwd=tmp_path).stdout.split())
        assert "indigo inputs, window-factor action, 2 layers" in words
    shown = narrows("models", "show", "flax", cwd=tmp_path).stdout
    assert "for policy" in shown and '"observation": "indigo"' in shown
    label = "policy model=torch"
    assert run(tmp_path, "[{policy: torch}]")[label]["throughput_bps"] > 0


def test_a_factor_over_cubic_keeps_the_queue_shorter(gentle: Path, tmp_path: Path) -> None:
    metrics = run(tmp_path, f"[{{policy: {gentle.name}}}, cubic]")
    mine, cubic = metrics[f"policy model={gentle.name}"], metrics["cubic"]
    assert mine["throughput_bps"] > 0.9 * cubic["throughput_bps"]
    for name in ("delay_mean_ns", "delay_p95_ns"):
        assert mine[name] < 0.85 * cubic[name], (name, mine, cubic)


def test_indigos_network_as_a_policy_is_indigo(tmp_path: Path) -> None:
    arrays = load_file(store.find_shipped_folder() / "indigo.safetensors")
    arrays = {
        "kernel0": arrays["kernel0"],
        "bias0": arrays["bias0"],
        "kernel1": arrays["output_weights"],
        "bias1": arrays["output_bias"],
    }
    layers = [{"kind": "lstm"}, {"kind": "dense"}]
    design = {"observation": "indigo", "step": "ack", "action": "indigo", "layers": layers}
    save_file(arrays, tmp_path / "p.safetensors", metadata={"kind": "policy", "policy": json.dumps(design)})
    metrics = run(tmp_path, "[indigo, {policy: p.safetensors, profile: datagrams}]")
    first, second = metrics.values()
    assert first["throughput_bps"] > 5e6
    assert first == second


def test_a_sweep_takes_a_policy(gentle: Path, tmp_path: Path) -> None:
    text = SCENARIO.replace("SCHEMES", f"[{{policy: {gentle.name}}}]").replace("8 s", "2 s")
    text += "sweep:\n  path.forward.0.rate: [6 Mbit/s, 12 Mbit/s]\n"
    (tmp_path / "w.yaml").write_text(text)
    done = narrows("sweep", "run", "w.yaml", "-o", "w", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.system
def test_a_policy_runs_emulated(gentle: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces can't be made (not permitted)")
    text = SCENARIO.replace("SCHEMES", f"[{{policy: {gentle.name}}}]").replace("8 s", "4 s")
    (tmp_path / "e.yaml").write_text(text)
    done = narrows("run", "e.yaml", "--where", "emulate", "--no-report", "-o", "e", cwd=tmp_path)
    assert done.returncode in (0, 6), done.stderr
    rows = json.loads((tmp_path / "e/results.json").read_text())["rows"]
    assert {row["scheme"] for row in rows} == {"policy model=gentle.safetensors"}
    assert rows[0]["metrics"]["throughput_bps"] > 3e6, rows


def _write(path: Path, design: dict[str, Any], bias: float = 0.0, inputs: int = 7) -> None:
    layers = {"layers": [{"kind": "dense"}]}
    arrays = {"kernel0": np.zeros((inputs, 1), "<f4"), "bias0": np.full(1, bias, "<f4")}
    metadata = {"kind": "policy", "policy": json.dumps({**layers, **design})}
    save_file(arrays, path, metadata=metadata)


@pytest.mark.parametrize(
    ("change", "bias", "inputs", "words"),
    [
        ({}, float("nan"), 7, "bias0 has numbers that are not finite"),
        ({}, float("inf"), 7, "bias0 has numbers that are not finite"),
        ({}, 0.0, 8, "kernel0 is f32 [8, 1], where f32 [7, 1] is needed"),
        ({"observation": "orka"}, 0.0, 7, 'its observation is "orka", where one of indigo, muses, aurora'),
        ({"step": "never"}, 0.0, 7, 'its step is "never", where one of ack, rtt, time is needed'),
        ({"action": "jump"}, 0.0, 7, 'its action is "jump", where one of indigo'),
        ({"layers": [{"kind": "gru"}]}, 0.0, 7, "no kind that is dense or lstm"),
    ],
)
def test_a_bad_policy_is_refused_in_one_sentence(
    tmp_path: Path, change: dict[str, Any], bias: float, inputs: int, words: str
) -> None:
    _write(tmp_path / "bad.safetensors", {**ORCA, **change}, bias, inputs)
    (tmp_path / "s.yaml").write_text(SCENARIO.replace("SCHEMES", "[{policy: bad.safetensors}]"))
    for done in (
        narrows("run", "s.yaml", "--where", "simulate", "-o", "out", cwd=tmp_path),
        narrows("models", "add", "bad", "bad.safetensors", cwd=tmp_path),
    ):
        assert done.returncode == 3 and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_of_a_gigabyte_is_refused_by_its_size(tmp_path: Path) -> None:
    with (tmp_path / "huge.safetensors").open("wb") as file:
        file.truncate(1_000_000_000)
    (tmp_path / "s.yaml").write_text(SCENARIO.replace("SCHEMES", "[{policy: huge.safetensors}]"))
    done = narrows("run", "s.yaml", "--where", "simulate", "-o", "out", cwd=tmp_path)
    assert done.returncode == 3 and "is larger than" in done.stderr, done.stderr
    assert narrows("models", "add", "huge", "huge.safetensors", cwd=tmp_path).returncode == 3


@pytest.mark.parametrize("scheme", ["policy", "{scheme: policy, observation: raw, step: time, action: rate}"])
def test_a_policy_without_a_model_is_refused(tmp_path: Path, scheme: str) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO.replace("SCHEMES", f"[{scheme}]"))
    for where in ("simulate", "emulate"):
        done = narrows("run", "s.yaml", "--where", where, "-o", "out", cwd=tmp_path)
        assert done.returncode == 3 and "policy needs a model" in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1


def test_an_action_that_is_not_a_number_is_named_in_the_record(tmp_path: Path) -> None:
    design = {**ORCA, "layers": [{"kind": "dense"}, {"kind": "dense"}]}
    arrays = {
        "kernel0": np.zeros((7, 2), "<f4"),
        "bias0": np.full(2, 3e38, "<f4"),
        "kernel1": np.array([[3e38], [-3e38]], "<f4"),
        "bias1": np.zeros(1, "<f4"),
    }
    metadata = {"kind": "policy", "policy": json.dumps(design)}
    save_file(arrays, tmp_path / "wild.safetensors", metadata=metadata)
    assert summary((tmp_path / "wild.safetensors").read_bytes()).kind == "policy"
    metrics = run(tmp_path, "[{policy: wild.safetensors}]")
    # The flow is CUBIC from then on, times 1.
    assert metrics["policy model=wild.safetensors"]["throughput_bps"] > 5e6
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert b"stopped: the action is not a number" in stored
