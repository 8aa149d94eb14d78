"""A behaviour card of a sender between two hosts: an sshd in another namespace behind a slow router."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hosts_kit as kit
import processes
import shell_kit
from campaign_kit import narrows, sentence
from hosts_kit import NAME
from real_path_kit import slow

pytestmark = pytest.mark.system


def test_a_sender_is_probed_between_two_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))
    out = tmp_path / "out"
    with kit.hosts(tmp_path_factory.mktemp("identify")) as pair, slow(pair, "60k"):
        words = pair.words(
            "linux:reno", "--host", NAME, "--budget", "15 s", "-o", str(out), command="identify"
        )
        done = processes.run(words, env=pair.environment(), seconds=300)
    if done.returncode == 3:
        pytest.skip(f"the machine was too busy: {done.stderr}")
    assert done.returncode == 0, done.stderr
    (card,) = json.loads((out / "identify.json").read_text())["cards"]
    assert (card["scheme"], card["where"]) == ("linux:reno", "hosts")
    lines = {line["name"]: line for line in card["lines"] if line.get("value") is not None}
    # RFC 5681: half of the window; the router drops at its tail.
    assert lines["decrease"]["low"] <= 0.5 <= lines["decrease"]["high"], lines["decrease"]
    assert "naming" not in card, "no reference has been on this path"
    page = (out / "identify.html").read_text()
    assert "probe-real-path" in page


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--where", "hosts"), "--where hosts needs the other host: --host user@server"),
        (("--where", "simulate", "--host", "x"), "--where simulate: --host is for --where hosts"),
    ],
)
def test_hosts_without_a_host_are_refused(words: tuple[str, ...], error: str) -> None:
    assert error in sentence(narrows("identify", "reno", *words))
