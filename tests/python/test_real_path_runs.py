"""Whole campaigns between two hosts: an sshd in another namespace, and a network in between.

One campaign runs over an emulated path behind an address translator, so that only the other host can be
reached; in the second one both can, and in the last one only this host.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hosts_kit as kit
import processes
import shell_kit
from hosts_kit import NAME, Hosts
from processes import eventually
from real_path_kit import RAISED, SETTING, Lab, footprint, slow

pytestmark = pytest.mark.system

SCENARIO = """\
schema: narrows/scenario/1
question: Does it work between two hosts?
where: hosts
"""
#: Two kinds of kernel TCP, and two of our schemes that react to delay, each against itself, in both
#: directions.
CAMPAIGN = f"""{SCENARIO}
real_path: {{other: {NAME}, sender: both, ports: 5001-5002, retries: 2}}
schemes: ['linux:cubic', 'linux:bbr', copa, sprout]
flows: {{count: 3, interval: 100 ms}}
duration: 1200 ms
runs: 2
"""
#: All of them against each other.
TOGETHER = f"""{SCENARIO}
real_path: {{other: {NAME}, sender: here, ports: 5001-5002, retries: 2}}
flows:
  - {{scheme: 'linux:bbr'}}
  - {{scheme: sprout, start: 200 ms}}
  - {{scheme: copa, direction: backward}}
duration: 1200 ms
"""
#: Every cell is finished; on a busy machine some may be invalid, and say so.
DONE = (0, 6)
#: Acceptable reasons for invalid runs.
STARVED = {"endpoint_starved", "socket_drops", "lost_here"}
#: The effects of the first campaign's path. The queue is long: a connection that loses its first packet
#: retries after a second, which leaves nothing of a flow.
RATE_BPS, DELAY_MS = 12_000_000, 10
SHELL = ("--rate", "12 Mbit/s", "--delay", f"{DELAY_MS} ms", "--queue", "droptail 500 kB", "--quiet", "--")


@contextlib.contextmanager
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())
    with kit.hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    # Except the list of fonts, which takes long to build.
    fonts = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "matplotlib"
    monkeypatch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR") or str(fonts))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache-of-hosts"))


def program(*words: str) -> subprocess.CompletedProcess[str]:
    done = processes.run([sys.executable, "-m", "narrows", *words], seconds=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.timeout(600)
def test_campaigns(tmp_path_factory: pytest.TempPathFactory) -> None:
    """If the other host can be reached, if both can, if only this one can. Most of their time is waiting, so
    they run together; they share nothing else, not even hosts."""
    campaigns = (
        a_campaign_over_an_emulated_path,
        a_campaign_where_both_can_be_reached,
        a_campaign_where_only_we_can_be_reached,
    )
    with contextlib.ExitStack() as stack:
        pairs = [stack.enter_context(hosts(tmp_path_factory)) for _ in campaigns]
        folders = [tmp_path_factory.mktemp("campaign") for _ in campaigns]
        pool = stack.enter_context(ThreadPoolExecutor(len(campaigns)))
        list(pool.map(lambda campaign, pair, folder: campaign(pair, folder), campaigns, pairs, folders))


def a_campaign_over_an_emulated_path(pair: Hosts, folder: Path) -> None:
    """We are behind an address translator; the campaign is killed in between."""
    shell = (sys.executable, "-m", "narrows", "shell", *SHELL)
    lab = Lab(pair, folder, CAMPAIGN, before=shell)
    before = footprint(pair)
    nowhere = subprocess.DEVNULL
    started = lab.start("--no-report", stdout=nowhere, stderr=nowhere, start_new_session=True)
    with processes.running(started):
        eventually("a cell is finished", lambda: "finished" in lab.states(), seconds=100)
        # The shell, and all its processes.
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    # Folders of a killed campaign stay there until it is resumed.
    lab.nothing_is_left(before, folders=False)
    kept = lab.finished_files()

    done = lab.run()
    assert done.returncode in DONE, (done.stdout, done.stderr)
    assert f"resuming {lab.out}: 1 of 16 cells are finished" in done.stderr
    assert f"{NAME} listens at {kit.THERE}:5001" in done.stderr
    assert kept.items() <= lab.finished_files().items()
    lab.nothing_is_left(before)
    # Both machines were examined before and after each round of this session.
    document = lab.campaign
    noted = [(one["round"], one["when"]) for one in document["rounds"][-4:]]
    assert noted == [(1, "before"), (1, "after"), (2, "before"), (2, "after")]
    last = document["rounds"][-1]
    assert last["here"]["kernel"] == last["there"]["kernel"] and last["there"]["sysctls"]
    assert document["sessions"][-1]["hosts"]["way"]["their_address"] == kit.THERE
    check_cells(lab, RATE_BPS, DELAY_MS)


def check_cells(lab: Lab, rate_bps: int, delay_ms: int) -> None:
    """Checks the known properties of the path in the records of its cells; runs report and check."""
    assert lab.states() == ["finished"] * 16
    rows = json.loads((lab.out / "results.json").read_text())["rows"]
    for cell in lab.campaign["cells"]:
        run = lab.run_json(cell["id"])
        assert run["plane"] == "hosts"
        codes = {reason["code"] for reason in run["reasons"] if reason["severity"] == "invalid"}
        assert codes <= STARVED, run["reasons"]
        own = {row["flow"]: row["metrics"] for row in rows if row["cell"] == cell["id"]}
        assert list(own) == [1, 2, 3, None]
        for flow in (1, 2, 3):
            # No packet is faster than the path, and the clocks agree within their bound.
            assert own[flow]["delay_p50_ns"] >= delay_ms * 1e6 - run["clock"]["error_ns"], own[flow]
            assert own[flow]["goodput_bps"] > 0
        # The bottleneck also carries the headers of the tunnel, so packets inside get less than its rate.
        assert 0.2 * rate_bps < own[None]["throughput_bps"] < rate_bps, own[None]
    for name in ("report.html", "report.pdf"):
        assert (lab.out / name).stat().st_size > 0
    checked = program("check", str(lab.out), "--json")
    assert checked.returncode == 0, (checked.stdout, checked.stderr)
    assert json.loads(checked.stdout)["ok"]


def a_campaign_where_both_can_be_reached(pair: Hosts, folder: Path) -> None:
    """A setting is raised at both ends meanwhile; ssh breaks in between, and nothing is left anywhere."""
    lab = Lab(pair, folder, CAMPAIGN)
    before = footprint(pair)
    with slow(pair):
        started = lab.start("--prepare", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with processes.running(started):
            eventually("a cell runs", lambda: len(lab.agents("side")) == 2, seconds=60)
            assert [value(end) for end in (pair.here, pair.there)] == [RAISED, RAISED]
            (master,) = lab.masters()
            os.kill(master, signal.SIGKILL)
            _, complaints = processes.finish(started, seconds=500)
    assert started.returncode in DONE, complaints
    # Raised once here, and once more there after the reconnection.
    for name, times in (("here", 1), (NAME, 2)):
        said = f"{name}: {SETTING} from 0 to {RAISED} for the time of the campaign"
        assert complaints.splitlines().count(said) == times, complaints
    assert "not put back" not in complaints
    failures = [one for cell in lab.campaign["cells"] for one in cell.get("failures", [])]
    assert [one["kind"] for one in failures] == ["vanished"], failures
    assert f"{NAME} has vanished" in failures[0]["message"]
    # Leftovers of the moment when ssh broke are removed at the end, like everything else.
    lab.nothing_is_left(before)
    check_cells(lab, 20_000_000, 0)


def value(end: kit.Namespace) -> int:
    """The setting that campaigns raise."""
    return int(processes.run([*end.enter, "cat", f"/proc/sys/{SETTING.replace('.', '/')}"]).stdout)


def a_campaign_where_only_we_can_be_reached(pair: Hosts, folder: Path) -> None:
    """Different schemes in both directions at once."""
    lab = Lab(pair, folder, TOGETHER)
    before = footprint(pair)
    with pair.blocked(*(pair.to_there(port) for port in (5001, 5002))), slow(pair):
        plan = lab.run("--dry-run")
        assert plan.returncode == 0, plan.stderr
        assert f"this machine listens at {kit.HERE}:5001" in plan.stdout
        assert "the real path from here to there" in plan.stdout
        done = lab.run("--json", "--no-report")
    assert done.returncode in DONE, (done.stdout, done.stderr)
    results = json.loads(done.stdout)
    assert {row["flow"] for row in results["rows"]} == {1, 2, 3, None}
    assert all(row["metrics"]["goodput_bps"] > 0 for row in results["rows"])
    lab.nothing_is_left(before)


# -- at random -------------------------------------------------------------------------------------

#: How many campaigns are disturbed at random; each takes about a minute, so run this by hand:
#: NARROWS_CHAOS=30 pytest -k disturbed. (The tests above contain two kinds of disturbance.)
CHAOS = int(os.environ.get("NARROWS_CHAOS", "0"))
SHORT = f"""{SCENARIO}
real_path: {{{{other: {NAME}, sender: {{sender}}, ports: 5001-5002, retries: 2}}}}
schemes: [copa, 'linux:cubic', 'bpf:westwood']
flows: {{{{count: 2, interval: 100 ms}}}}
duration: 1200 ms
runs: 2
"""


@pytest.mark.parametrize("number", range(CHAOS))
def test_disturbed_campaigns_leave_nothing_and_can_be_completed(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, number: int
) -> None:
    with hosts(tmp_path_factory) as pair:
        disturbed(pair, tmp_path, number)


def disturbed(pair: Hosts, tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    sender = chance.choice(("here", "there"))
    lab = Lab(pair, tmp_path, SHORT.format(sender=sender))
    before = footprint(pair)
    victim = chance.choice(("ssh", "agent there", "agent here", "path", "campaign"))
    with slow(pair):
        started = lab.start("--no-report", "--prepare", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        with processes.running(started):
            time.sleep(chance.uniform(0.5, 20))
            finished = lab.finished_files()
            what = disturb(lab, victim, started, chance)
            _, complaints = processes.finish(started, seconds=300)
        assert "Traceback" not in complaints, complaints
        lab.nothing_is_left(before, folders=victim != "campaign")
        finished |= lab.finished_files()
        done = lab.run("--no-report", "--prepare")
    story = (what, complaints, done.stdout, done.stderr)
    assert done.returncode in DONE, story
    assert set(lab.states()) == {"finished"} and len(lab.states()) in (4, 6), story
    assert finished.items() <= lab.finished_files().items(), story
    lab.nothing_is_left(before)


def disturb(lab: Lab, victim: str, campaign: subprocess.Popen[str], chance: random.Random) -> str:
    """Kills a running process, or cuts the path for a while; returns a description."""
    if victim == "path":
        seconds = chance.uniform(1, 30)
        with lab.pair.blocked("iif near", "iif far"):
            time.sleep(seconds)
        return f"no path for {seconds:.1f} s"
    found = {
        "ssh": lab.masters(),
        "campaign": [campaign.pid],
        "agent there": lab.agents_at("there"),
        "agent here": lab.agents_at("here"),
    }[victim]
    if not found:
        return f"no {victim}"
    words = dict(lab.processes())
    pid = chance.choice(found)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    return f"{victim}: {' '.join(words.get(pid, []))}"
