"""Parts of campaigns between two hosts: scenarios, the listening side, the senders' requirements, the two
agents of a cell, rounds and retries. The whole of it, over ssh, is in test_real_path_runs.py."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import processes
import shell_kit
from narrows.agent.cell import CellOutcome
from narrows.agent.location import ROOT, Location, find_agent
from narrows.analysis.prose import network_in_words
from narrows.campaign import peers
from narrows.campaign.execute import Executor
from narrows.campaign.peers import ARGUMENTS, Peer, PeerFailure, PeerPair, Stopped
from narrows.campaign.plan import Plan, Sender, make_plan
from narrows.campaign.planes import Progress, Run
from narrows.campaign.run import _check_sizes
from narrows.campaign.store import CampaignFolder, read_document
from narrows.documents.agent import Ability, MachineFacts
from narrows.documents.campaign import Versions
from narrows.errors import NarrowsError, ScenarioError, UnavailableError
from narrows.hosts.path_probe import ClockOffset, PathFacts, Port
from narrows.hosts.remote_host import _LEAST_MTU, RemoteHost, RemoteOptions, Rendezvous, rendezvous_of
from narrows.hosts.ssh import _DEAF
from narrows.scenario import Cell, Loaded, Scenario, cells_of, loads
from narrows.scenario.overrides import Override, apply
from narrows.scenario.real_path import quote_host, sender_is_local
from narrows.scenario.yaml_tree import parse

FAKE = Path(__file__).resolve().parent / "fake_side.py"
PATH = "path: {forward: [{rate: 12 Mbit/s, queue: {droptail: 1 bdp}}, {delay: 20 ms}]}\n"
BASE = """\
schema: narrows/scenario/1
question: Does it work?
where: hosts
schemes: [cubic, "linux:bbr"]
duration: 10 s
runs: 2
"""

pytestmark = pytest.mark.usefixtures("fixed_registry")


def scenario(more: str = "real_path: {other: me@there}\n") -> Scenario:
    return loads(BASE + more)


# -- what scenarios say ----------------------------------------------------------------------------


def test_nothing_is_known_of_a_real_path() -> None:
    found = scenario()
    assert found.to_json()["network"] == {
        "kind": "dumbbell",
        "forward": [{"name": "forward.0", "kind": "real", "from": "here", "to": "me@there"}],
        "backward": [{"name": "backward.0", "kind": "real", "from": "me@there", "to": "here"}],
    }
    assert all(cell.to_json()["where"] == "hosts" for cell in cells_of(found))
    words = network_in_words(found)
    assert "  forward   the real path from here to me@there" in words
    assert not any("round trip" in line for line in words)
    # The description of other planes is read, but has no effect.
    assert scenario(f"real_path: {{other: me@there}}\n{PATH}").hash == found.hash
    with pytest.raises(ScenarioError, match=r"path\.forward\.0"):
        scenario(f"real_path: {{other: me@there}}\n{PATH.replace('droptail', 'dripfeed')}")


def test_the_same_scenario_is_another_one_elsewhere() -> None:
    text = BASE.replace("where: hosts", "where: emulate") + PATH
    plain, told = loads(text), loads(text + "real_path: {other: me@there}\n")
    assert plain.hash == told.hash, "who the other host is means nothing where there is none"
    assert told.real_path is None and "real_path" not in told.to_json()
    assert scenario().hash != scenario("real_path: {other: me@elsewhere}\n").hash
    retries = scenario("real_path: {other: me@there, retries: 5, vanished: stop}\n")
    assert retries.hash == scenario().hash and retries.real_path and retries.real_path.retries == 5


def test_both_directions_have_separate_rows() -> None:
    found = scenario("real_path: {other: me@there, sender: both}\n")
    assert [row.label for row in found.schemes] == [
        "cubic (sender here)",
        "linux:bbr (sender here)",
        "cubic (sender there)",
        "linux:bbr (sender there)",
    ]
    here = [sender_is_local(cell) for cell in cells_of(found)]
    assert here == [True] * 4 + [False] * 4
    assert len({cell.hash for cell in cells_of(found)}) == 8
    more = scenario("real_path: {other: me@there, sender: both}\nmatrix: {flows.count: [1, 2]}\n")
    assert len(more.schemes) == 8


def test_the_command_line_names_the_host() -> None:
    # `path` is close enough to `real_path` to be taken for a typo.
    tree = apply(parse(BASE + PATH, "x.yaml"), [Override("--host", "real_path.other", quote_host("it's:me"))])
    assert repr(tree.entries["real_path"]).count("it's:me") == 1


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "needs the other host; name it with --host"),
        ("real_path: there\n", "must be keys with values"),
        ("real_path: {other: -oProxyCommand=x}\n", "must be a host as ssh takes it"),
        ("real_path: {other: a b}\n", "must be a host as ssh takes it"),
        ("real_path: {other: a, sender: left}\n", '"left" is not one of here, there or both'),
        ("real_path: {other: a, tunnel: off, mtu: 1400 B}\n", "is a setting of the tunnel"),
        ("real_path: {other: a, tunnel: off, listener: there}\n", "is a setting of the tunnel"),
        ("real_path: {other: a, tunnel: off, address: 'fd00::1'}\n", "addresses of IPv4"),
        (
            "real_path: {other: a, tunnel: off}\nhosts: {sender: {tcp_sack: 0}}\n",
            "only with a tunnel",
        ),
        ("real_path: {other: a, ports: 5-4}\n", "is neither a port nor a range"),
        ("real_path: {other: a, ports: [443, 1-100]}\n", "more than 60 ports"),
        ("real_path: {other: a, ports: 1-4000000000}\n", "is neither a port nor a range"),
        ("real_path: {other: a, mtu: 1000 B}\n", "must be between 1.28 kB and 9 kB"),
        ("real_path: {other: a, address: there.example}\n", "is not an address"),
        ("real_path: {other: a, address: 192.0.2.1, our_address: '2001:db8::1'}\n", "versions of IP"),
        ("real_path: {other: a, interface: {left: eth0}}\n", "unknown key"),
        ("real_path: {other: a, interface: {here: ../x}}\n", "name of a network interface"),
        ("real_path: {other: a, colour: blue}\n", "unknown key; allowed here: other, sender"),
        ("real_path: {other: a}\ntopology: {star: {}}\n", "two real hosts have one path between them"),
        ("real_path: {other: a}\ntimeline: [{at: 1 s, cut: path}]\n", "cannot be changed"),
        ("real_path: {other: a}\nflows: {count: 2, extra_rtt: 5 ms}\n", "round-trip time that it has"),
        ("real_path: {other: a}\nmatrix: {real_path.other: [a, b]}\n", "only sender can be varied"),
        (f"real_path: {{other: a}}\n{PATH}matrix: {{path.forward.1.delay: [1 ms]}}\n", "cannot be changed"),
        (
            "real_path: {other: a, sender: both}\nmatrix: {real_path.sender: [here]}\n",
            "real_path says both for it already",
        ),
    ],
)
def test_mistakes_are_reported(more: str, told: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(more)
    assert told in str(caught.value)


# -- who sends what --------------------------------------------------------------------------------

HERE_FACTS = MachineFacts(kernel="6.1-here", congestion_controls=["reno", "cubic"])
THERE_FACTS = MachineFacts(kernel="6.2-there", congestion_controls=["reno", "bbr"])


def skipped(more: str) -> dict[str, str]:
    plan = make_plan(loads(BASE + more), HERE_FACTS, Sender("me@there", THERE_FACTS))
    return {one.scheme: one.reason for one in plan.skipped}


def test_the_kernel_of_the_side_that_sends_decides() -> None:
    assert skipped("real_path: {other: me@there, sender: there}\n") == {}
    found = skipped("real_path: {other: me@there, sender: both}\n")
    assert list(found) == ["linux:bbr (sender here)"]
    assert "here: this kernel (6.1-here) does not offer bbr" in found["linux:bbr (sender here)"]
    # The other host sends the data of a backward flow.
    assert skipped("real_path: {other: me@there}\nflows: {direction: backward}\n") == {}


def test_programs_for_the_kernel_are_sent_from_where_they_can_be_loaded() -> None:
    text = BASE.replace('"linux:bbr"', '"bpf:gentle"')
    unable = MachineFacts(bpf=Ability(ok=False, why="no rights"))
    no = {"bpf:gentle": "me@there: no rights"}
    for sender, facts, expected in (("here", unable, {}), ("there", THERE_FACTS, {}), ("there", unable, no)):
        loaded = loads(f"{text}real_path: {{other: me@there, sender: {sender}}}\n")
        plan = make_plan(loaded, HERE_FACTS, Sender("me@there", facts))
        assert {one.scheme: one.reason for one in plan.skipped} == expected


# -- who waits for whom ----------------------------------------------------------------------------


def way(there: list[int], here: list[int], mtu: tuple[int | None, int | None] = (1500, 1500)) -> PathFacts:
    ports = [
        Port(port, there=port in there, there_answered=port in there, here=port in here, here_answered=True)
        for port in (443, 5201)
    ]
    for one in ports:
        one.here_answered = one.here
    return PathFacts("10.0.0.1", "192.0.2.7", "198.51.100.9", ports, mtu[0], mtu[1], 40_000_000)


def wishes(**more: Any) -> Any:
    return replace(scenario().real_path, ports=[443, 5201], **more)  # type: ignore[type-var]


def test_the_other_host_waits_if_it_can_be_reached() -> None:
    found = rendezvous_of(way([443, 5201], [443]), "there", wishes())
    assert (found.listener, found.port, found.address, found.mtu) == ("there", 443, "192.0.2.7", 1500)
    tunnel = found.tunnel("here", "ab", {"here": "wwan0"})
    assert (tunnel["bind"], tunnel["dial"], tunnel["interface"]) == ("0.0.0.0:0", "192.0.2.7:443", "wwan0")
    tunnel = found.tunnel("there", "ab", {"here": "wwan0"})
    assert (tunnel["bind"], tunnel["dial"], tunnel["interface"]) == ("0.0.0.0:443", None, None)


def test_otherwise_we_wait_where_our_packets_come_from() -> None:
    found = rendezvous_of(way([], [5201], mtu=(1400, 9000)), "there", wishes())
    assert (found.listener, found.port, found.address, found.mtu) == ("here", 5201, "198.51.100.9", 1400)
    found = rendezvous_of(way([443], [5201]), "there", wishes(listener="here", our_address="2001:db8::1"))
    assert found.tunnel("there", "ab", {})["dial"] == "[2001:db8::1]:5201"
    assert found.tunnel("here", "ab", {})["bind"] == "[::]:5201"


@pytest.mark.parametrize(
    ("found", "wished", "told"),
    [
        (way([], []), {}, "no datagram passes between here and there at any of the UDP ports 443, 5201"),
        (way([], [443]), {"listener": "there"}, "datagrams do not reach there.*write listener: auto"),
        (way([443], []), {"listener": "here"}, "do not reach this machine.*write listener: auto"),
        (way([443], [], mtu=(1500, 1200)), {}, "packets of 1280 bytes do not pass"),
        (way([443], [], mtu=(1500, None)), {}, "back: none"),
    ],
)
def test_blocked_ports_are_reported(found: PathFacts, wished: dict[str, Any], told: str) -> None:
    with pytest.raises(UnavailableError, match=told):
        rendezvous_of(found, "there", wishes(**wished))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_agent_reckons_with_the_same_sizes(tmp_path: Path, address: str) -> None:
    if shell_kit.refusal():
        pytest.skip(shell_kit.refusal())

    def said(mtu: int) -> list[dict[str, Any]]:
        found = Rendezvous("there", 0, address, mtu)
        plan = found.tunnel("there", "ab" * 32, {}) | {
            "format": "narrows/tunnel/1",
            "folder": str(tmp_path / "end"),
            "patience_ns": 10**8,  # nobody will call
        }
        words = [str(find_agent()), "tunnel", "--plan", "-"]
        done = processes.run(words, text=f"{json.dumps(plan)}\n")
        return [json.loads(line) for line in done.stdout.splitlines()]

    least = said(_LEAST_MTU)[0]
    assert least["inner_mtu"] == Rendezvous("there", 0, address, _LEAST_MTU).inner_mtu
    (refused,) = said(_LEAST_MTU - 1)
    assert f"it must be from {_LEAST_MTU} to" in refused["message"]


# -- the two agents --------------------------------------------------------------------------------


class Pair:
    """Two stand-ins, each with its kind of failure."""

    def __init__(self, folder: Path, near: str = "well", far: str = "well") -> None:
        self.folder = folder
        self.log = io.BytesIO()
        self.shares: list[float] = []
        self.is_stopped: Callable[[], bool] = lambda: False
        self.stands = True
        self.near, self.far = (self._peer(name, how) for name, how in (("near", near), ("far", far)))

    def _peer(self, name: str, how: str) -> Peer:
        words = ["env", f"FAKE_SIDE={how}", f"FAKE_SIDE_LOG={self.folder / name}.told"]
        location = Location(name, [*words, sys.executable, str(FAKE)], ROOT)
        return Peer(location, self.log, *ARGUMENTS)

    def run(self, offset: ClockOffset | None = None) -> None:
        plans = tuple(
            # Larger than a pipe's buffer, like models.
            {"host": host, "folder": str(self.folder / name), "files": {"model": "A" * 300_000}}
            for host, name in enumerate(("near", "far"))
        )
        pair = PeerPair(self.near, self.far, self.is_stopped, lambda: self.stands, self.shares.append)
        with pair:
            pair.run((plans[0], plans[1]), 500, offset)

    def told(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / f"{name}.told").read_text())
        return found


def test_both_agents_receive_the_start_time(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.run()
    assert pair.told("near")[1:] == [{"order": "start", "in_ns": 500}]
    assert pair.told("far")[1:] == [{"order": "start", "at_ns": 12345}]
    assert pair.shares[-1] == 1.0 and pair.log.getvalue() == b"a complaint\n" * 2
    assert [peer.process.returncode for peer in (pair.near, pair.far)] == [0, 0]


def test_datagrams_that_do_not_fit_into_the_tunnel_are_refused_before() -> None:
    more = "real_path: {other: a}\nbackground: [{traffic: {cbr: {rate: 1 Mbit/s}}}]\n"
    plan = make_plan(scenario(more), MachineFacts(congestion_controls=[]))
    _check_sizes(plan, Rendezvous("there", 443, "192.0.2.7", 1556))
    with pytest.raises(UnavailableError, match=r"flow 2 \(cbr\) sends packets of 1500 B.* packet: 1424 B"):
        _check_sizes(plan, Rendezvous("there", 443, "fd77::1", 1500))


def test_without_a_tunnel_something_must_pass_to_compare_clocks() -> None:
    remote = RemoteHost(wishes(other="there"), RemoteOptions(), lambda _: None)
    remote.path = way([], [])
    with pytest.raises(UnavailableError, match=r"no datagram passes .*; without a tunnel the clocks are"):
        remote.check_bare()
    remote.path.their_address = "2001:db8::7"
    with pytest.raises(UnavailableError, match="without a tunnel flows need IPv4"):
        remote.check_bare()


def test_without_a_tunnel_both_start_by_their_own_clocks(tmp_path: Path) -> None:
    pair = Pair(tmp_path)
    pair.run(ClockOffset(offset_ns=-7, bound_ns=100))
    (near,), (far,) = (pair.told(name)[1:] for name in ("near", "far"))
    assert far == {**near, "real_ns": near["real_ns"] - 7}
    # Clocks drift apart between their comparison and the start.
    assert near["order"] == "start" and near["error_ns"] > 100


@pytest.mark.parametrize(
    ("near", "far", "kind", "told"),
    [
        ("error", "well", "unavailable", "near: error of host 0"),
        ("well", "error", "unavailable", "far: error of host 1"),
        ("error", "late error", "unavailable", "near: error of host 0; far: late error of host 1"),
        ("well", "dies", "internal", "far: the agent ended without giving a reason (killed by signal 9)"),
        ("well", "babbles", "internal", "far: the agent sent a line without an end"),
        ("well", "raves", "internal", "far: the agent failed without giving a reason"),
        ("silent end", "well", "internal", "near: the agent ended without giving a reason (exit code 0)"),
    ],
)
def test_failures_of_agents_are_reported(tmp_path: Path, near: str, far: str, kind: str, told: str) -> None:
    pair = Pair(tmp_path, near, far)
    with pytest.raises(PeerFailure) as caught:
        pair.run()
    assert (caught.value.kind, caught.value.message) == (kind, told)
    assert all(peer.process.poll() is not None for peer in (pair.near, pair.far))


def test_a_connection_that_breaks_is_a_host_that_vanished(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "mute", "mute")
    # The far one counts as reached by ssh here.
    pair.far.location.ssh = object()  # type: ignore[assignment]
    pair.stands = False
    with pytest.raises(PeerFailure, match="far has vanished") as caught:
        pair.run()
    assert caught.value.kind == "vanished"


def test_agents_that_say_nothing_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_SILENCE_S", 0.5)
    pair = Pair(tmp_path, "well", "mute")
    with pytest.raises(PeerFailure, match=r"far: no output for 0\.5 s"):
        pair.run()
    assert all(peer.process.poll() is not None for peer in (pair.near, pair.far))


def test_agents_are_stopped_by_the_end_of_their_input(tmp_path: Path) -> None:
    pair = Pair(tmp_path, "mute", "mute")
    pair.is_stopped = lambda: all((tmp_path / f"{name}.told").exists() for name in ("near", "far"))
    with pytest.raises(Stopped):
        pair.run()
    assert [len(pair.told(name)) for name in ("near", "far")] == [1, 1]
    assert [peer.process.returncode for peer in (pair.near, pair.far)] == [0, 0]


# -- rounds and tries ------------------------------------------------------------------------------


class FakePlane:
    """A plane whose cells behave as prescribed, in the order in which they run."""

    def __init__(self, folder: Path, retries: int, outcomes: dict[str, list[CellOutcome]]) -> None:
        self.folder = folder
        self.retries = retries
        self.outcomes = outcomes
        self.order: list[str] = []
        self.end = ""

    def workers(self, _cells: int) -> int:
        return 1

    def run_of(self, cell: Cell, _file: Path, out: Path, log_file: Path, _progress: Progress) -> Run:
        plane = self

        class Runner:
            def run(self) -> CellOutcome:
                plane.order.append(cell.id)
                log_file.write_text("")
                left = plane.outcomes.get(cell.id)
                outcome = left.pop(0) if left else CellOutcome("finished")
                if outcome.state == "finished":
                    out.mkdir()
                    run = {"format": "narrows/run/1", "cell": cell.to_json(), "verdict": "ok"}
                    (out / "run.json").write_text(json.dumps(run))
                return outcome

            def stop(self, kill: bool = False) -> None:
                pass

        return Runner()

    def around_round(self, number: int, when: str) -> dict[str, Any]:
        self.order.append(f"{when} {number}")
        if when == "after" and number == 1:
            raise OSError("not to be asked")
        return {"round": number, "when": when, "here": {"load": [0.5]}}

    def ends_campaign(self, outcome: CellOutcome) -> bool:
        return outcome.kind == self.end


class Quiet:
    """Nobody watches."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_: None


def campaign(folder: Path) -> tuple[CampaignFolder, list[Cell]]:
    cells = sorted(cells_of(found := scenario()), key=lambda cell: cell.run)
    plan, loaded = Plan(found, cells, []), Loaded(found, Path("x.yaml"), "", [])
    return CampaignFolder.create(folder / "out", loaded, plan, MachineFacts(), Versions(), ["narrows"]), cells


def test_failed_cells_are_tried_again_at_the_end_of_their_round(tmp_path: Path) -> None:
    made, cells = campaign(tmp_path)
    failed = CellOutcome("failed", "io", "the path was cut", 1)
    plane = FakePlane(tmp_path, 2, {"cubic-r1": [failed], "linux-bbr-r2": [failed, failed, failed]})
    Executor(made, plane, Quiet()).run(cells)
    assert plane.order == [
        "before 1",
        *("cubic-r1", "linux-bbr-r1", "cubic-r1"),
        "after 1",
        "before 2",
        *("cubic-r2", "linux-bbr-r2", "linux-bbr-r2", "linux-bbr-r2"),
        "after 2",
    ]
    entries = {entry.id: entry for entry in made.cells}
    assert (entries["cubic-r1"].state, entries["cubic-r1"].attempts) == ("finished", 2)
    assert [failure.message for failure in entries["cubic-r1"].failures] == ["the path was cut"]
    assert (entries["linux-bbr-r2"].state, entries["linux-bbr-r2"].attempts) == ("failed", 3)
    assert "failures" not in made.content_of("cubic-r2")
    stored = read_document(made.path)
    assert [(one["round"], one["when"], "error" in one) for one in stored["rounds"]] == [
        (1, "before", False),
        (1, "after", True),
        (2, "before", False),
        (2, "after", False),
    ]


def test_invalid_cells_are_not_tried_again(tmp_path: Path) -> None:
    made, cells = campaign(tmp_path)
    plane = FakePlane(tmp_path, 5, {"cubic-r1": [CellOutcome("failed", "input", "no such model", 3)]})
    Executor(made, plane, Quiet()).run(cells)
    assert plane.order.count("cubic-r1") == 1
    # Until a cell has worked, missing files are reported immediately.
    made, cells = campaign(tmp_path / "other")
    plane = FakePlane(tmp_path, 5, {"cubic-r1": [CellOutcome("failed", "unavailable", "no namespaces", 4)]})
    with pytest.raises(UnavailableError, match="no namespaces"):
        Executor(made, plane, Quiet()).run(cells)
    assert plane.order[:2] == ["before 1", "cubic-r1"]


def test_a_campaign_stops_when_the_other_host_vanishes_if_asked(tmp_path: Path) -> None:
    made, cells = campaign(tmp_path)
    plane = FakePlane(tmp_path, 5, {"linux-bbr-r1": [CellOutcome("failed", "vanished", "it is gone", 1)]})
    plane.end = "vanished"
    with pytest.raises(NarrowsError, match="it is gone; run the same command again"):
        Executor(made, plane, Quiet()).run(cells)
    assert plane.order == ["before 1", "cubic-r1", "linux-bbr-r1"]
    assert [entry.state for entry in made.cells] == ["finished", "pending", "pending", "pending"]


class Together(FakePlane):
    """Two cells at once; a successful one finishes after the request to stop."""

    both = threading.Barrier(2)

    def workers(self, _cells: int) -> int:
        return 2

    def run_of(self, cell: Cell, *rest: Any) -> Run:
        plane, inner, stopped = self, super().run_of(cell, *rest), threading.Event()

        class Runner:
            def run(self) -> CellOutcome:
                plane.both.wait(10)
                assert cell.id in plane.outcomes or stopped.wait(10)
                return inner.run()

            def stop(self, kill: bool = False) -> None:
                stopped.set()

        return Runner()


def test_a_cell_that_is_finished_after_another_one_ended_the_campaign_stays_finished(tmp_path: Path) -> None:
    made, cells = campaign(tmp_path)
    full = CellOutcome("failed", "io", "no space left on device", 1)
    plane = Together(tmp_path, 0, {cells[0].id: [full]})
    with pytest.raises(NarrowsError, match="is full; make room"):
        Executor(made, plane, Quiet()).run(cells[:2])
    stored = read_document(made.path)["cells"]
    found = {entry["id"]: (entry["state"], entry["verdict"]) for entry in stored}
    assert found[cells[0].id] == ("pending", None)
    assert found[cells[1].id] == ("finished", "ok")


def test_the_last_save_of_another_process_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, cells = campaign(tmp_path)
    acquire = CampaignFolder._acquire

    def late(folder: CampaignFolder) -> None:
        made.note_session(outcome="done")
        made.close()
        acquire(folder)

    monkeypatch.setattr(CampaignFolder, "_acquire", late)
    again = CampaignFolder.resume(made.path, Plan(scenario(), cells, []), ["narrows"])
    again.close()
    stored = json.loads((made.path / "campaign.json").read_text())
    assert [one["outcome"] for one in stored["sessions"]] == ["done", None]


def test_ctrl_c_is_for_us_and_not_for_ssh() -> None:
    done = processes.run([*_DEAF, "sh", "-c", "kill -INT $$; echo still here"])
    assert (done.returncode, done.stdout) == (0, "still here\n")
