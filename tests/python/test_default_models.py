"""Learned schemes without parameters run the models that come with Narrows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import model_kit
from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.scenario import registry
from narrows.scenario.schema import schema
from test_models import scenario
from test_shipped_models import add, chosen, home, narrows

__all__ = ["home"]


@pytest.mark.parametrize(
    ("name", "model"), [("aurora", "aurora"), ("indigo", "indigo"), ("muses", "muses"), ("remy", "tao")]
)
def test_learned_schemes_run_without_parameters(name: str, model: str, tmp_path: Path, home: Path) -> None:
    assert chosen(f"[{name}]") == [(name, f"{model}.safetensors")]
    named, default = scenario(f"[{{{name}: {model}}}]"), scenario(f"[{{scheme: {name}}}]")
    assert named.schemes[0].flows == default.schemes[0].flows
    # A file of that name beside the scenario is not what a default means.
    (tmp_path / model).write_bytes(b"junk")
    assert chosen(f"[{name}]", tmp_path) == [(name, f"{model}.safetensors")]
    add(home, model, model_kit.small_model(name))
    assert not scenario(f"[{name}]").schemes[0].has_own_model


def test_the_page_of_a_scheme_shows_its_default_model(tmp_path: Path) -> None:
    page = narrows("schemes", "indigo", cwd=tmp_path).stdout
    assert "default model: indigo (trained by Narrows, recipe test, score 0.95, seed 1, version 0.1)" in page
    (row,) = [
        one
        for one in json.loads(narrows("schemes", "remy", "--json", cwd=tmp_path).stdout)["params"]
        if one["name"] == "model"
    ]
    assert row["default"] == "tao"


def test_a_default_that_is_not_installed_is_skipped_or_refused(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "shipped")
    plan = make_plan(scenario("[reno, remy]"), MachineFacts())
    assert [(one.scheme, "narrows models add tao PATH" in one.reason) for one in plan.skipped] == [
        ("remy", True)
    ]
    done = narrows("hunt", "muses", "-o", "h", cwd=tmp_path)
    assert done.returncode == 4 and done.stderr.count("\n") == 1, done.stderr
    assert "narrows models add muses PATH" in done.stderr


def test_a_quick_run_and_a_hunt_of_a_learned_scheme(tmp_path: Path) -> None:
    words = ["--rate", "12 Mbit/s", "--delay", "20 ms", "--schemes", "cubic,indigo", "--time", "2"]
    done = narrows("run", *words, "--where", "simulate", "--no-report", "-o", "q", cwd=tmp_path)
    assert done.returncode == 0 and "indigo: model trained by Narrows" in done.stdout, done.stderr
    words = ["--worst", "utilization", "--budget", "16", "--no-report"]
    done = narrows("hunt", "remy", *words, "-o", "h", cwd=tmp_path)
    assert done.returncode in (0, 5) and "failed" not in done.stderr, done.stderr


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    made = schema(registry.load())
    validator = jsonschema.Draft7Validator(
        {**made["definitions"]["scheme"], "definitions": made["definitions"]}
    )
    good: list[Any] = [
        "indigo",
        "remy",
        {"indigo": ["a", "b"]},
        {"scheme": "muses", "model": ["a"]},
        {"scheme": "remy"},
    ]
    bad: list[Any] = [
        {"indigo": []},
        {"indigo": ["a", "a"]},
        {"indigo": [1]},
        {"indigo": [["a"]]},
        {"remy": {}},
    ]
    assert all(validator.is_valid(value) for value in good)
    assert not any(validator.is_valid(value) for value in bad)
