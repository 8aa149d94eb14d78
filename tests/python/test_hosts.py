"""Other hosts: an sshd in one namespace, this process in another, and a router with a firewall
between them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hosts_kit as kit
import processes
from hosts_kit import NAME, THERE, Hosts
from narrows.agent.location import ROOT, Location, find_agent
from narrows.documents.agent import Exchange, MachineFacts
from narrows.errors import UnavailableError, UsageError
from narrows.hosts import agent_binary, path_probe, sysctls
from narrows.hosts.check import their_address
from narrows.hosts.deploy import deploy
from narrows.hosts.path_probe import PathFacts
from narrows.hosts.prober import Prober
from narrows.hosts.ssh import Ssh
from processes import eventually

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("own_cache")]

#: Nothing else uses them in new namespaces.
PORTS = [5001, 5002, 5003]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with kit.hosts(tmp_path_factory.mktemp("hosts")) as made:
        yield made


# -- the whole command -----------------------------------------------------------------------------


def rows_of(document: dict[str, Any]) -> dict[str, dict[str, str]]:
    (host,) = document["hosts"]
    return {row["name"]: row for row in host["rows"]}


def test_a_host_is_checked_over_ssh(pair: Hosts) -> None:
    done = pair.narrows("check", NAME, "--ports", "5001-5002", "--json")
    assert done.returncode == 0, (done.stdout, done.stderr)
    document = json.loads(done.stdout)
    rows = rows_of(document)
    assert document["ok"] and "failed" not in rows
    assert rows["agent"]["there"].startswith("copied")
    assert (rows["rights"]["here"], rows["rights"]["there"]) == ("root", "root")
    assert rows["system"]["here"] == rows["system"]["there"], "both namespaces are of one machine"
    assert rows["UDP port 5001"] == {
        "name": "UDP port 5001",
        "state": "ok",
        "here": "from it: arrives",
        "there": "to it: arrives",
        "remedy": None,
    }
    assert rows["who listens"]["there"] == "either side may wait for the other"
    assert rows["packets to it"]["there"] == rows["packets back"]["there"] == "up to 1500 bytes"
    way = document["hosts"][0]["way"]
    assert (way["our_address"], way["their_address"], way["translated"]) == (kit.HERE, THERE, False)
    # Only the agent and the loader beside it exist there, unreadable for other users and identical to the
    # sent ones.
    copies = {file.name: file for file in pair.remote_folder.rglob("*") if file.is_file()}
    loader = find_agent().with_name(agent_binary.LOADER)
    assert set(copies) == {agent_binary.AGENT} | ({agent_binary.LOADER} if loader.is_file() else set())
    assert {copy.stat().st_mode & 0o777 for copy in copies.values()} == {0o700}
    copy = copies[agent_binary.AGENT]
    assert agent_binary.examine(copy).sha256 == copy.parent.name
    for name, file in copies.items():
        sent = agent_binary.strip_symbols(agent_binary.examine(find_agent().with_name(name)))
        assert agent_binary.examine(file).sha256 == sent.sha256
    bpf = rows["programs for the kernel"]
    assert bpf["here"] == bpf["there"], "both are of one kernel"
    # Nothing is left running, and no socket of the connection.
    assert not list(pair.folder.glob("narrows-*"))
    eventually("no agent runs there any more", lambda: str(copy) not in _running())

    # The second time it already exists; the table says so, and that the verdict is good.
    done = pair.narrows("check", NAME, "--ports", "5001")
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "was there already" in done.stdout
    assert f"{NAME}: runs between this machine and it would work" in done.stdout

    # Damaged copies are detected and replaced.
    hashes = {name: agent_binary.examine(one).sha256 for name, one in copies.items()}
    for one in copies.values():
        with one.open("r+b") as stream:
            stream.seek(5000)
            stream.write(b"damage")
    with pair.ssh() as connection:
        again = deploy(connection, None, str(pair.remote_folder))
    assert again.copied
    assert {name: agent_binary.examine(one).sha256 for name, one in copies.items()} == hashes

    # Files that are not ours stay, in whatever folder the user has named.
    others = [pair.remote_folder / "thesis.tex", pair.remote_folder / "runs" / "results" / "table.csv"]
    left = pair.remote_folder / "runs" / f"{'0123456789abcdef'}-reno-r1-deadbeef"
    left.mkdir(parents=True)
    for other in others:
        other.parent.mkdir(parents=True, exist_ok=True)
        other.write_text("work of years")
    done = pair.narrows("clean", NAME)
    assert (done.returncode, [path.exists() for path in (*others, left)]) == (0, [True, True, False])
    assert {path.name for path in pair.remote_folder.iterdir()} == {"runs", "thesis.tex"}
    for other in others:
        other.unlink()
    others[1].parent.rmdir()
    with pair.ssh() as connection:
        deploy(connection, None, str(pair.remote_folder))
    done = pair.narrows("clean", NAME)
    assert (done.returncode, done.stdout) == (
        0,
        f"{NAME}: 1 copy removed with {pair.remote_folder}\n",
    ), done.stderr
    assert not pair.remote_folder.exists()


def _running() -> str:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def test_nothing_is_left_of_a_killed_command(pair: Hosts) -> None:
    # Nothing passes, so the examination is still waiting when its processes exist.
    with pair.blocked(pair.to_there(5001), pair.to_here(5001)):
        started = subprocess.Popen(
            pair.words("check", NAME, "--ports", "5001"),
            env=pair.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with processes.running(started):
            agent = f"{pair.remote_folder}/"
            eventually(
                "both ends examine",
                lambda: sum("\0probe\0" in line and agent in line for line in _running().splitlines()) > 0,
                seconds=60,
            )
            started.kill()
            started.wait()
    # The remote agent, the local one and ssh all notice the end of a pipe.
    marks = (agent, f"\0{pair.configuration}\0")
    eventually("nothing runs any more", lambda: not any(mark in _running() for mark in marks))
    assert not list(pair.folder.glob("narrows-*"))


def test_an_unreachable_host_is_reported_as_such(pair: Hosts) -> None:
    port = 5001
    with pair.blocked(pair.to_there(port), pair.to_here(port)):
        done = pair.narrows("check", NAME, "--ports", str(port), "--json")
    assert done.returncode == 4, (done.stdout, done.stderr)
    rows = rows_of(json.loads(done.stdout))
    assert rows["who listens"]["state"] == "no"
    assert "open one of these UDP ports" in rows["who listens"]["remedy"]


# -- ssh -------------------------------------------------------------------------------------------


def refusal(*words: str, pair: Hosts) -> str:
    with pytest.raises(UnavailableError) as caught, pair.ssh(*words):
        pytest.fail("the connection stands")
    return str(caught.value)


def test_host_keys_are_checked_whatever_the_configuration_says(pair: Hosts) -> None:
    told = refusal("-o", "UserKnownHostsFile=/dev/null", pair=pair)
    assert f"the host key of {NAME} is not known here" in told and "by hand" in told
    key = (pair.folder / "other_host_key.pub").read_text()
    others = pair.folder / "known_others"
    others.write_text(f"{THERE} {key}")
    told = refusal("-o", f"UserKnownHostsFile={others}", pair=pair)
    assert "another host key" in told


def test_failed_logins_are_reported_with_a_remedy(pair: Hosts) -> None:
    assert "refuses the login" in refusal("-o", "PubkeyAuthentication=no", pair=pair)
    assert "Connection refused" in refusal("-p", "9", pair=pair)
    # The whole command turns it into a row.
    done = pair.narrows("check", "no-such-host.invalid", "--json")
    assert done.returncode == 4, done.stderr
    rows = rows_of(json.loads(done.stdout))
    assert list(rows) == ["failed"] and "no-such-host.invalid" in rows["failed"]["there"]


def test_host_key_checks_cannot_be_disabled() -> None:
    with pytest.raises(UsageError, match="always checked"):
        Ssh("host", ["true", "-o", "stricthostkeychecking=no"])


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch"])
def test_options_are_no_hosts(host: str) -> None:
    with pytest.raises(UsageError, match="is not a host"):
        Ssh(host, ["true"])


def test_a_missing_ssh_is_reported() -> None:
    with pytest.raises(UnavailableError, match="no-such-ssh"):
        Ssh("host", ["no-such-ssh"])


def test_a_broken_connection_is_reported(pair: Hosts) -> None:
    with pair.ssh() as connection:
        master = connection._master
        assert master is not None
        master.kill()
        master.wait()
        with pytest.raises(UnavailableError, match=NAME):
            connection.run("echo still here")


def test_the_address_for_datagrams_is_the_one_of_ssh_unless_it_goes_through_another_host(
    pair: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pair.ssh() as connection:
        deployment = deploy(connection, None, str(pair.remote_folder))
        assert deployment.connection[0] == kit.HERE
        assert their_address(connection, deployment, None) == THERE
        assert their_address(connection, deployment, kit.THERE_6) == kit.THERE_6
        with pytest.raises(UnavailableError, match="--address"):
            their_address(connection, deployment, "no..name")
    with pair.ssh(name=kit.BEHIND) as connection:
        assert connection.configuration()["proxyjump"] == NAME
        deployment = deploy(connection, None, str(pair.remote_folder))
        assert deployment.connection[0] == THERE, "the host between is who the other one sees"
        # The name given to ssh may be known only to the host in between.
        monkeypatch.setattr(connection, "configuration", lambda: {"hostname": "inside", "proxyjump": NAME})
        assert their_address(connection, deployment, None) == THERE


# -- the way ---------------------------------------------------------------------------------------


def examine(
    pair: Hosts, *, ports: list[int] = PORTS, far: Location | None = None, address: str = THERE
) -> PathFacts:
    return path_probe.probe_path(pair.near(), far or pair.far(), address, ports)


def passes(way: PathFacts) -> list[tuple[bool | None, ...]]:
    return [(one.there, one.there_answered, one.here, one.here_answered) for one in way.ports]


def test_ports_and_directions_are_distinguished(pair: Hosts) -> None:
    # 5001 is open, 5002 only towards us, and answers from 5003 are lost on the way back.
    rules = (pair.to_there(5002), "iif far ipproto udp sport 5003")
    with pair.blocked(*rules):
        way = examine(pair)
    assert passes(way) == [
        (True, True, True, True),
        (False, False, True, True),
        (True, False, True, True),
    ]
    assert (way.they_may_listen, way.we_may_listen) == ([5001], PORTS)
    assert (way.mtu_there, way.mtu_back) == (1500, 1500)


@pytest.mark.parametrize("reachable", ["there", "here"])
def test_one_side_that_can_be_reached_is_enough(pair: Hosts, reachable: str) -> None:
    block = pair.to_here if reachable == "there" else pair.to_there
    with pair.blocked(*(block(port) for port in PORTS)):
        way = examine(pair)
    assert way.they_may_listen == (PORTS if reachable == "there" else [])
    assert way.we_may_listen == (PORTS if reachable == "here" else [])
    assert way.rtt_ns is not None and (way.mtu_there, way.mtu_back) == (1500, 1500)


def test_an_interface_that_is_named_is_the_one_that_is_examined(pair: Hosts) -> None:
    by = {"here": "eth0", "there": "eth0"}
    way = path_probe.probe_path(pair.near(), pair.far(), THERE, [5001], interfaces=by)
    assert (way.our_address, way.they_may_listen, way.we_may_listen) == (kit.HERE, [5001], [5001])
    with Prober(pair.near(), "0" * 32, "wwan7") as prober:
        with pytest.raises(UnavailableError, match=f"there is no route to {THERE} by wwan7: no such device"):
            prober.source(THERE)
        assert all(one.index is None for one in prober.open("0.0.0.0", [0]))
    for end, told in (("here", f"no route to {THERE} by wwan7"), ("there", "on the interface wwan7")):
        with pytest.raises(UnavailableError, match=rf"{told}.*no such device.*real_path\.interface\.{end}"):
            path_probe.probe_path(pair.near(), pair.far(), THERE, [5001], interfaces={end: "wwan7"})


def test_clocks_are_compared_again_over_a_port_that_passes(pair: Hosts) -> None:
    way = examine(pair, ports=[5001])
    far = pair.far("env", "NARROWS_CLOCK_SHIFT_NS=2500000000")
    apart = path_probe.compare_clocks(pair.near(), far, way)
    assert apart is not None and abs(apart.offset_ns - 2_500_000_000) <= apart.bound_ns
    assert apart.error_ns() > apart.bound_ns
    with pair.blocked(pair.to_there(5001)):
        assert path_probe.compare_clocks(pair.near(), pair.far(), way) is None


def test_the_largest_packet_is_found_exactly_in_both_protocols(pair: Hosts) -> None:
    # A tunnel somewhere on the path: 1400 bytes fit, and the router answers with ICMP, which is not needed.
    pair.router.do("ip link set far mtu 1400")
    pair.there.do("ip link set eth0 mtu 1400")
    try:
        way = examine(pair, ports=[5001])
        assert (way.mtu_there, way.mtu_back) == (1400, 1400)
        # IPv6, and a larger interface only at our end.
        pair.here.do("ip link set eth0 mtu 9000")
        pair.router.do("ip link set near mtu 9000")
        way = examine(pair, ports=[5001], address=kit.THERE_6)
        assert (way.our_address, way.mtu_there, way.mtu_back) == (kit.HERE_6, 1400, 1400)
        assert way.they_may_listen == way.we_may_listen == [5001]
    finally:
        for end, device in (
            (pair.router, "near"),
            (pair.router, "far"),
            (pair.here, "eth0"),
            (pair.there, "eth0"),
        ):
            end.do(f"ip link set {device} mtu 1500")


@pytest.mark.parametrize(
    ("shift_ns", "blocked"), [(2_500_000_000, False), (-40_000_000, True)], ids=["we ask", "they ask"]
)
def test_the_error_bound_of_the_other_clock_contains_the_truth(
    pair: Hosts, shift_ns: int, blocked: bool
) -> None:
    far = pair.far("env", f"NARROWS_CLOCK_SHIFT_NS={shift_ns}")
    # If only we can be reached, the other end asks.
    with pair.blocked(*([pair.to_there(5001)] if blocked else [])):
        way = examine(pair, ports=[5001], far=far)
    assert way.they_may_listen == ([] if blocked else [5001])
    assert way.rtt_ns is not None and way.offset_ns is not None
    assert abs(way.offset_ns - shift_ns) <= way.rtt_ns / 2


def test_offset_and_round_trip_follow_from_four_stamps() -> None:
    # The other clock is 1000 ahead; 30 there, 10 back, 5 in between.
    exchange = Exchange(asked_ns=100, arrived_ns=1130, answered_ns=1135, back_ns=145, seen="192.0.2.1:5")
    assert exchange.rtt_ns == 40
    assert exchange.offset_ns == 1010, "half of the asymmetry is taken for offset"


@contextlib.contextmanager
def taken(end: kit.Namespace, *ports: int, seconds: float = 600) -> Iterator[None]:
    """Makes a program use these ports for this long."""
    taker = subprocess.Popen(
        [*end.enter, sys.executable, "-c", _TAKE, str(seconds), *map(str, ports)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with processes.running(taker):
        assert taker.stdout and taker.stdout.readline() == "taken\n"
        yield


def test_a_port_that_is_taken_is_not_called_blocked(pair: Hosts) -> None:
    with taken(pair.there, 5002):
        way = examine(pair, ports=[5001, 5002])
    one = way.ports[1]
    assert (one.there, one.here) == (None, True)
    assert one.why_there is not None and "in use" in one.why_there


def test_ports_that_another_campaign_examines_are_waited_for(
    pair: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(path_probe, "_AGAIN_S", 0.2)
    with taken(pair.here, *PORTS, seconds=2), taken(pair.there, *PORTS, seconds=2):
        way = examine(pair)
    # One end is enough, and the two are not released at the same moment.
    assert PORTS in (way.they_may_listen, way.we_may_listen)
    with taken(pair.there, PORTS[0], seconds=2):
        assert path_probe.compare_clocks(pair.near(), pair.far(), way) is not None


def test_ports_that_stay_in_use_are_reported_as_such(pair: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_probe, "_BUSY_S", 1.0)
    monkeypatch.setattr(path_probe, "_AGAIN_S", 0.2)
    with taken(pair.there, 5001), pair.blocked(pair.to_here(5001)):
        way = examine(pair, ports=[5001])
    assert way.in_use == ["there"] and not way.we_may_listen
    with taken(pair.there, 5001):
        assert examine(pair, ports=[5001]).we_may_listen == [5001], "one end is enough"


_TAKE = """
import select, socket, sys
held = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in sys.argv[2:]]
for one, port in zip(held, sys.argv[2:]):
    one.bind(("0.0.0.0", int(port)))
print("taken", flush=True)
select.select([sys.stdin], [], [], float(sys.argv[1]))
for one in held:
    one.close()
sys.stdin.read()
"""


def test_the_death_of_an_agent_is_reported(pair: Hosts) -> None:
    with Prober(pair.far(), "0" * 32) as prober:
        assert prober._session
        prober._session.process.kill()
        with pytest.raises(UnavailableError, match="does not answer any more"):
            prober.source(kit.HERE)
    with pytest.raises(UnavailableError, match="32 hexadecimal digits"), Prober(pair.far(), "short"):
        pytest.fail("the token is taken")


# -- settings --------------------------------------------------------------------------------------

#: A setting that every namespace has for itself, and that does not matter to the tests.
SETTING = "net.ipv4.tcp_fin_timeout"


@pytest.fixture
def harmless(monkeypatch: pytest.MonkeyPatch, pair: Hosts) -> int:
    """Makes preparation raise this setting instead of the machine's; returns its value."""
    before = value_there(pair)
    monkeypatch.setattr(sysctls, "LEAST", {SETTING: before + 7})
    return before


def value_there(pair: Hosts) -> int:
    file = f"/proc/sys/{SETTING.replace('.', '/')}"
    return int(processes.run([*pair.there.enter, "cat", file]).stdout)


def journal(pair: Hosts) -> str:
    return str(pair.folder / "journal" / "settings.json")


def test_settings_are_held_and_put_back(pair: Hosts, harmless: int) -> None:
    with pair.ssh() as connection:
        place = deploy(connection, None, str(pair.remote_folder)).location
        with sysctls.SysctlOverride(place, journal(pair)) as held:
            assert value_there(pair) == harmless + 7
            (change,) = held.changed
            assert str(change) == f"{SETTING} from {harmless} to {harmless + 7}"
            with pytest.raises(UnavailableError, match="another run holds"):
                sysctls.SysctlOverride(place, journal(pair)).__enter__()
        assert held.restored == held.changed and not held.not_restored
        assert value_there(pair) == harmless
        assert not Path(journal(pair)).exists()


def test_settings_are_put_back_when_the_connection_breaks(pair: Hosts, harmless: int) -> None:
    with pair.ssh() as connection:
        place = deploy(connection, None, str(pair.remote_folder)).location
        with sysctls.SysctlOverride(place, journal(pair)) as held:
            assert value_there(pair) == harmless + 7
            assert connection._master
            connection._master.kill()
            eventually("the setting is put back", lambda: value_there(pair) == harmless)
        assert held.not_restored, "nobody could tell us"


def test_settings_left_by_a_killed_agent_are_restored_by_the_next(pair: Hosts, harmless: int) -> None:
    place = pair.far()
    held = sysctls.SysctlOverride(place, journal(pair)).__enter__()
    kill_agent(held)
    held.close()
    assert not held.is_held and value_there(pair) == harmless + 7
    with sysctls.SysctlOverride(place, journal(pair)) as again:
        assert [change.before for change in again.recovered] == [harmless]
    assert value_there(pair) == harmless

    # By the program that started it, if that still exists.
    with sysctls.SysctlOverride(place, journal(pair)) as held:
        kill_agent(held)
    assert held.restored == held.changed and value_there(pair) == harmless


def kill_agent(held: sysctls.SysctlOverride) -> None:
    assert held._session
    # nsenter has become the agent.
    held._session.process.kill()
    held._session.process.wait()


def test_settings_are_put_back_when_nothing_is_heard_any_more(
    monkeypatch: pytest.MonkeyPatch, pair: Hosts, harmless: int
) -> None:
    """As after a power cut here, which closes nothing."""
    monkeypatch.setattr(sysctls, "_PATIENCE_S", 1)
    with sysctls.SysctlOverride(pair.far(), journal(pair)) as held:
        # The first sign of life would come after two seconds.
        assert [change.before for change in held.changed] == [harmless]
        eventually("the setting is put back", lambda: value_there(pair) == harmless)
    assert held.restored == held.changed


def test_changes_of_settings_are_known_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysctls, "LEAST", {"a.b": 100, "c.d": 100, "e.f": 100})
    facts = MachineFacts(sysctls={"a.b": "99", "c.d": "100"})
    assert [str(change) for change in sysctls.plan_changes(facts)] == ["a.b from 99 to 100"]


def test_unchangeable_settings_of_the_machine_are_reported(pair: Hosts) -> None:
    """A namespace can read the machine's largest buffers but not change them."""
    place = Location("there", pair.far().prefix, ROOT)
    with pytest.raises(UnavailableError, match=r"there: .*core\.rmem_max cannot be (set|read)"):
        with_large = {"net.core.rmem_max": 2**31 - 1}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sysctls, "LEAST", with_large)
            sysctls.SysctlOverride(place, journal(pair)).__enter__()
