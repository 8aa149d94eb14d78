"""A campaign from its scenario to results: plan, run missing cells, measure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from narrows.agent.location import Location, this_machine
from narrows.campaign import results as result_files
from narrows.campaign import signals
from narrows.campaign.bpf import check_programs
from narrows.campaign.entries import new_versions
from narrows.campaign.events import Tell, ignore_event
from narrows.campaign.execute import Executor
from narrows.campaign.expectations import FAILS
from narrows.campaign.plan import Plan, Sender, make_plan
from narrows.campaign.planes import LocalPlane, Means, Plane
from narrows.campaign.progress import ProgressView
from narrows.campaign.real_path import RealPathPlane
from narrows.campaign.showing import Showing
from narrows.campaign.store import CampaignFolder, check_same
from narrows.documents.agent import Facts, MachineFacts
from narrows.documents.campaign import Header
from narrows.documents.data import to_data
from narrows.documents.results import Outcome, Results
from narrows.errors import (
    EXIT_EXPECTATION,
    EXIT_OK,
    EXIT_SOME_INVALID,
    DataError,
    Interrupted,
    NarrowsError,
    UnavailableError,
)
from narrows.hosts.remote_host import RemoteHost, RemoteOptions, Rendezvous
from narrows.progress import show_time
from narrows.scenario import Cell, Loaded, Scenario
from narrows.scenario.real_path import LOCAL, OFF, REMOTE
from narrows.text import plural, shorten

#: The parent folder of campaigns without a named folder.
RESULTS = Path("results")
#: Seconds of a real-time cell in addition to its duration: setting up, writing and judging the record;
#: between hosts also fetching the other host's logs.
OVERHEAD_S = {"emulate": 2.0, "hosts": 8.0}


@dataclass(frozen=True)
class Finished:
    """A campaign that has ended."""

    folder: CampaignFolder
    results: Results

    @property
    def failed(self) -> list[Outcome]:
        """The expectations that do not hold."""
        return [outcome for outcome in self.results.expect if outcome.outcome == FAILS]

    @property
    def exit_code(self) -> int:
        """5 if an expectation fails, 6 if some cell failed or is invalid, so that scripts notice."""
        if self.failed:
            return EXIT_EXPECTATION
        usable = all(cell.is_usable for cell in self.folder.cells)
        return EXIT_OK if usable else EXIT_SOME_INVALID


@dataclass(frozen=True)
class Planned:
    """The plan of a campaign, and the facts about the machines."""

    plan: Plan
    facts: Facts
    #: For campaigns between two hosts: the other host, and which side listens.
    remote: RemoteHost | None = None
    rendezvous: Rendezvous | None = None


@contextlib.contextmanager
def plan_campaign(
    loaded: Loaded, agent: Location, reach: RemoteOptions, say: Callable[[str], None]
) -> Iterator[Planned]:
    """The plan on this machine; between two hosts with the other one, which stays connected inside the
    context.
    """
    scenario = loaded.scenario
    real_path = scenario.real_path
    if real_path is None:
        facts = agent.doctor()
        plan = make_plan(scenario, facts)
        if scenario.where == "emulate":
            _check_namespaces(facts)
            check_programs(plan, agent)
        yield Planned(plan, facts)
        return
    say(f"{real_path.other}: connecting")
    with RemoteHost(real_path, reach, say) as remote:
        ours, theirs = remote.facts[LOCAL], remote.facts[REMOTE]
        plan = make_plan(scenario, ours, Sender(remote.name, theirs))
        tunnel = real_path.tunnel != OFF
        for host, where in ((ours, "here"), (theirs, f"on {remote.name}")) if tunnel else ():
            _check_namespaces(host, where, _RIGHTS)
        check_programs(plan, agent, remote.remote)
        say(f"{remote.name}: looking which datagrams pass")
        remote.probe()
        rendezvous = remote.rendezvous() if tunnel else None
        if rendezvous is None:
            remote.check_bare()
        else:
            _check_sizes(plan, rendezvous)
        yield Planned(plan, ours, remote, rendezvous)


def _check_sizes(plan: Plan, rendezvous: Rendezvous) -> None:
    """Checks that datagrams of applications fit into the tunnel, whose size is known only now."""
    for cell in plan.cells:
        for flow in cell.flows:
            size = (flow.traffic and flow.traffic.integer("packet")) or 0
            if size > rendezvous.inner_mtu:
                raise UnavailableError(
                    f"flow {flow.number} ({flow.traffic_kind}) sends packets of {size} B, and the tunnel"
                    f" takes {rendezvous.inner_mtu} B at most; write packet: {rendezvous.inner_mtu} B in its"
                    " traffic"
                )


#: Remedy where a real path needs namespaces.
_RIGHTS = "log in as root, allow sudo without a password, or allow unprivileged user namespaces"


def _check_namespaces(
    facts: Facts,
    where: str = "here",
    otherwise: str = "run as root, or simulate with --where simulate",
) -> None:
    namespaces = facts.namespaces
    if namespaces is not None and not namespaces.ok:
        checks = facts.checks if isinstance(facts, MachineFacts) else ()
        remedy = next((check.remedy for check in checks if not check.ok and check.remedy), otherwise)
        raise UnavailableError(
            f"network namespaces can't be made {where}: {namespaces.obstacle}; {remedy.rstrip('.')}"
        )


def choose_folder(loaded: Loaded, output: Path | None, resume: bool) -> Path:
    """The folder of the campaign: the one named, the newest of the same scenario, or a new one."""
    scenario = loaded.scenario
    if output is not None:
        if resume and not (output / "campaign.json").exists():
            raise DataError(f"{output}: there is no campaign to resume; leave out --resume to start one")
        return output
    pattern = re.compile(rf"\d{{8}}T\d{{6}}Z-{re.escape(scenario.name)}-{scenario.hash[:6]}(\.\d+)?")
    if resume:
        same = sorted(
            path
            for path in RESULTS.glob("*")
            if pattern.fullmatch(path.name) and (path / "campaign.json").exists()
        )
        if not same:
            raise DataError(
                f"there is no campaign of this scenario in {RESULTS}/ to resume; leave out --resume to"
                " start one"
            )
        return same[-1]
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    base = RESULTS / f"{stamp}-{scenario.name}-{scenario.hash[:6]}"
    path, number = base, 2
    while path.exists():
        path = base.with_name(f"{base.name}.{number}")
        number += 1
    return path


@signals.interruptible("interrupted; nothing was run")
def run_campaign(
    loaded: Loaded,
    output: Path | None,
    *,
    resume: bool,
    argv: list[str],
    console: Console,
    quiet: bool = False,
    reach: RemoteOptions | None = None,
    means: Means | None = None,
    tell: Tell = ignore_event,
    runner: Location | None = None,
    wanted: Callable[[Cell], bool] | None = None,
    showing: Showing | None = None,
) -> Finished:
    """Runs (or completes) a campaign and writes its results; with `wanted` only these cells run, and the
    others stay pending. `reach` says how to reach the other host; runs on this machine may use `means`, and
    `runner` runs them in place of the agent. `tell` receives events. `showing` shows runs while they
    are under way.
    """

    def say(text: str) -> None:
        if not quiet:
            console.print(text, highlight=False, soft_wrap=True)

    agent = this_machine()
    versions = new_versions(agent)
    path = choose_folder(loaded, output, resume)
    # The folder is checked first, because the result is the same on any machine.
    again = (path / "campaign.json").exists()
    changed = _find_changed_words(check_same(path, loaded.scenario)[1], loaded.scenario) if again else {}
    with plan_campaign(loaded, agent, reach or RemoteOptions(), say) as result:
        if showing is not None:
            showing.check(result.plan, path if again else None)
        if again:
            remove = result.remote.local.remove if result.remote is not None else None
            folder = CampaignFolder.resume(path, result.plan, argv, remove)
            if changed:
                _keep_words(folder, loaded, changed, say)
        else:
            folder = CampaignFolder.create(path, loaded, result.plan, result.facts, versions, argv)
        try:
            runner, means = runner or agent, means or Means()
            return _run_in(folder, result, runner, console, quiet, again, means, tell, wanted, showing)
        except (Interrupted, signals.Signalled) as error:
            folder.end_session("interrupted")
            done = sum(cell.is_finished for cell in folder.cells)
            raise Interrupted(
                f"interrupted; {done} of {len(folder.cells)} cells are finished and kept in {path}; run the"
                f" same command with -o {path} to complete it",
                error.number,
            ) from None
        except NarrowsError as error:
            # The disk may be full; the first reason is the one that matters.
            with contextlib.suppress(NarrowsError):
                folder.end_session(f"stopped: {error}")
            raise
        finally:
            folder.close()


#: Texts for people may change between sessions: they are not part of a campaign's identity.
_WORDS = ("name", "title", "question")


def _find_changed_words(header: Header, scenario: Scenario) -> dict[str, str]:
    """The texts that differ between a campaign.json and the scenario: a sentence about each."""
    before = header.scenario.resolved
    return {
        key: f"the {key} was {_in_quotes(before.get(key))} and is now {_in_quotes(getattr(scenario, key))}"
        for key in _WORDS
        if (before.get(key) or "") != (getattr(scenario, key) or "")
    }


def _in_quotes(text: str | None) -> str:
    return f'"{shorten(text)}"' if text else "not given"


def _keep_words(
    folder: CampaignFolder, loaded: Loaded, changed: dict[str, str], say: Callable[[str], None]
) -> None:
    """Stores the new texts in campaign.json, with the scenario that contains them, and reports that."""
    folder.reword(loaded, {key: getattr(loaded.scenario, key) for key in changed})
    folder.note_session(changed=changed)
    for sentence in changed.values():
        say(f"{folder.path}: {sentence}; the runs are of the same experiment and are kept")


def _run_in(
    folder: CampaignFolder,
    planned: Planned,
    agent: Location,
    console: Console,
    quiet: bool,
    again: bool,
    means: Means,
    tell: Tell,
    wanted: Callable[[Cell], bool] | None = None,
    showing: Showing | None = None,
) -> Finished:
    plan = planned.plan
    scenario = plan.scenario
    plane = _plane(folder, planned, agent, means, showing)
    states = {cell.id: cell.state for cell in folder.cells}
    unfinished = [cell for cell in plan.cells if states[cell.id] != "finished"]
    missing = [cell for cell in unfinished if wanted is None or wanted(cell)]
    finished = sum(state == "finished" for state in states.values())
    workers = plane.workers(len(missing))
    overhead = OVERHEAD_S.get(scenario.where)
    guess = scenario.duration_ns / 1e9 + overhead if overhead is not None else None
    make = showing.view if showing is not None else ProgressView
    view = make(console, finished, len(missing), workers, guess, quiet, tell)
    tell(
        "campaign",
        path=str(folder.path),
        name=scenario.name,
        hash=scenario.hash,
        where=scenario.where,
        cells=len(states),
        finished=finished,
        skipped=to_data(folder.header.skipped),
    )
    for note in plan.notes:
        view.message(f"note: {note}")
    for warning in [*scenario.warnings, *plan.memory]:
        view.message(f"warning: {warning}")
    for row in folder.header.skipped:
        view.message(f"skipped {row.scheme}: {row.reason}")
    if again:
        view.message(
            f"resuming {folder.path}: {finished} of {len(states)} cells are finished"
            + ("" if missing else ", nothing is left to run")
        )
    elif missing:
        time_left = f", about {show_time(guess * len(missing))}" if guess else ""
        cells = plural(len(missing), "cell")
        view.message(f"{scenario.name}: {cells} ({scenario.where}{time_left}) into {folder.path}")
    if missing:
        if planned.remote is not None:
            planned.remote.claim(folder.path)
            folder.note_session(hosts=planned.remote.document())
            view.message(planned.remote.describe(planned.rendezvous))
            if planned.remote.settings.prepare:
                planned.remote.prepare()
        with view:
            Executor(folder, plane, view).run(missing)
        if showing is not None:
            showing.keep_changes(folder, planned.facts, view.message)
    view.message("measuring")
    tell("measure")
    results = result_files.compute(folder)
    result_files.write(folder, results)
    folder.end_session("done" if len(missing) == len(unfinished) else "part")
    return Finished(folder, results)


def _plane(
    folder: CampaignFolder, planned: Planned, agent: Location, means: Means, showing: Showing | None
) -> Plane:
    """The plane on which the cells run."""
    watch = showing.watch if showing is not None else None
    if planned.remote is None:
        return LocalPlane(planned.plan.scenario.where, agent, folder.files_dir, means, watch)
    return RealPathPlane(planned.remote, planned.rendezvous, agent, folder.path, watch)
