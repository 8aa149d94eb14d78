"""Runs the probes with a scheme, and finds the runs of schemes in folders."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from narrows.documents.identify import Card
from narrows.errors import DataError, UnavailableError, UsageError
from narrows.identify import next_probe
from narrows.identify.card import Measured, Runs, join_lines, make_card, measure_lines
from narrows.identify.features import PROBES
from narrows.identify.logs import Log, read_any
from narrows.identify.naming import Namer
from narrows.identify.probe_paths import UNCHANGED, PathFactors, load_probe

if TYPE_CHECKING:
    from narrows.hosts.remote_host import RemoteOptions
    from narrows.scenario import Override
    from narrows.scenario.loading import Loaded

SIMULATE, EMULATE, HOSTS = "simulate", "emulate", "hosts"
#: The file of the cards beside the folders of the probes.
DOCUMENT = "identify.json"
#: The page with their figures, in the same place.
PAGE = "identify.html"
#: Runs of each probe: four have an interval of their mean, emulated ones take their duration.
DEFAULT_RUNS = {SIMULATE: 4, EMULATE: 1, HOSTS: 1}
#: The probability of a name from which on no further probe starts.
DEFAULT_CERTAINTY = 0.95


def _tell_nothing(_number: int, _probe: str) -> None:
    pass


@dataclass(frozen=True)
class OtherHost:
    """The host to which a sender sends over a real path."""

    name: str
    reach: RemoteOptions


@dataclass(frozen=True)
class Order:
    """How probes are run."""

    where: str
    runs: int
    seed: int = 1
    #: Seconds after which no further probe starts.
    budget_s: float | None = None
    #: The budget as it was written.
    budget: str = ""
    probes: tuple[str, ...] = PROBES
    #: The probability of a name from which on no further probe starts; None runs them all in order.
    certainty: float | None = None
    #: Called before each probe with its number and its name.
    tell: Callable[[int, str], object] = _tell_nothing
    #: By how much the paths differ from the probes'.
    factors: PathFactors = UNCHANGED
    #: The other host and how it is reached; None unless `where` is `HOSTS`.
    host: OtherHost | None = None


def plane_of(scheme: str) -> str:
    """The plane on which a scheme is probed unless another is requested: our schemes are simulated.

    Raises `ScenarioError` for a scheme that scenarios do not accept, and `UsageError` for several.
    """
    from narrows.scenario import load, registry

    rows = load(PROBES[0], [_schemes(scheme)]).scenario.schemes
    if len(rows) != 1:
        raise UsageError(f"{scheme}: write each scheme as a separate argument")
    flows = [flow for flow in rows[0].flows if not flow.background]
    return SIMULATE if all(flow.scheme in registry.load().schemes for flow in flows) else EMULATE


def _schemes(scheme: str) -> Override:
    from narrows.scenario.overrides import Override, split_list

    # Parameters are written as in scenarios; a name alone is no YAML.
    return Override("WHAT", "schemes", f"[{scheme}]" if scheme.startswith("{") else split_list(scheme))


def run_probes(scheme: str, folder: Path, order: Order) -> Card:
    """Runs the probes with a scheme into folders below `folder`, or completes them, and returns the card.

    Raises `UnavailableError` if the scheme cannot run on the plane, and `DataError` if no run is valid.
    """
    from rich.console import Console

    from narrows.campaign.run import run_campaign
    from narrows.scenario.overrides import Override
    from narrows.scenario.real_path import KEY, quote_host

    quiet = Console(file=io.StringIO())
    began = time.monotonic()
    measured: list[Measured] = []
    records = 0
    why_not = "its probe did not run"
    changes = [
        Override("--where", "where", order.where),
        _schemes(scheme),
        Override("--runs", "runs", str(order.runs)),
        Override("--seed", "seed", str(order.seed)),
    ]
    if order.host is not None:
        changes.append(Override("--host", f"{KEY}.other", quote_host(order.host.name)))
        if order.budget:
            # Its only probe has no end but that of its time.
            changes.append(Override("--budget", "duration", order.budget))
    loaded, reasons = load_probes(order.probes, changes, order.factors)
    lengths = {probe: length_s(scenario) for probe, scenario in loaded.items()}
    remaining = list(loaded)
    while remaining:
        probe = remaining[0]
        if order.certainty is not None:
            # Records are read once, after their probe.
            card = join_lines(scheme, scheme, order.where, measured, why_not, reasons) if measured else None
            if card is not None and next_probe.is_certain(_namer(), card, order.certainty):
                why_not = "its probe was not needed for the name"
                break
            probe = next_probe.choose_probe(_namer(), card, remaining, lengths)
        remaining.remove(probe)
        expected = 0.0 if order.where == SIMULATE else lengths[probe] * order.runs
        spent = time.monotonic() - began
        if order.budget_s is not None and measured and spent + expected > order.budget_s:
            why_not = f"its probe did not run within {order.budget}"
            continue
        order.tell(len(loaded) - len(remaining) - 1, probe)
        finished = run_campaign(
            loaded[probe],
            folder / probe,
            resume=False,
            argv=["narrows", *sys.argv[1:]],
            console=quiet,
            quiet=True,
            reach=order.host.reach if order.host is not None else None,
        )
        if skipped := finished.folder.header.skipped:
            raise UnavailableError(f"{scheme}: {skipped[0].reason}")
        for _, group in _runs_of(folder / probe):
            measured.append(measure_lines(group))
            records += len(group.records)
    if not records:
        raise DataError(
            f"{folder}: no run of {scheme} is valid; narrows show {folder / order.probes[0]} explains"
        )
    return join_lines(scheme, scheme, order.where, measured, why_not, reasons)


def load_probes(
    probes: Sequence[str], changes: list[Override], factors: PathFactors = UNCHANGED
) -> tuple[dict[str, Loaded], dict[str, str]]:
    """The probes that a scheme can run, on paths multiplied by `factors`, and for the others the reason.

    Raises `ScenarioError` if it can run none.
    """
    from narrows.errors import ScenarioError
    from narrows.scenario import load

    loaded: dict[str, Loaded] = {}
    reasons: dict[str, str] = {}
    for probe in probes:
        try:
            is_shipped = factors == UNCHANGED
            loaded[probe] = load(probe, changes) if is_shipped else load_probe(probe, factors, changes)
        except ScenarioError:
            if len(reasons) + 1 == len(probes):
                raise
            # Programs and real-time schemes send what they like, without pauses on request.
            reasons[probe] = "its probe needs traffic that the sender can't be given"
    return loaded, reasons


def length_s(loaded: Loaded) -> float:
    """The duration of a probe in seconds, with one run of each of its cells."""
    points = {row.label for row in loaded.scenario.schemes}
    return loaded.scenario.duration_ns / 1e9 * len(points)


@cache
def _namer() -> Namer:
    from narrows.identify.reference_library import read_library

    return Namer(read_library())


def name_cards(cards: Sequence[Card]) -> list[Card]:
    """Cards with the names of their senders."""
    return [replace(card, naming=_namer().name(card)) for card in cards]


def read_cards(folder: Path, partner: Path | None = None, flow: int | None = None) -> list[Card]:
    """The cards of all schemes in a folder (a campaign, the cell of one, or the folder of an identification),
    or the card of a log, of which `partner` is a capture of the other end and `flow` the connection.

    Raises `DataError` if it has no records.
    """
    if folder.is_file():
        return [_card_of_log(Log((folder,) if partner is None else (folder, partner), flow))]
    if (folder / "run.json").is_file():
        return [_card_of_cell(folder)]
    campaigns = [folder] if (folder / "campaign.json").is_file() else _campaigns_below(folder)
    groups: dict[tuple[str, str], list[Runs]] = {}
    for campaign in campaigns:
        for key, group in _runs_of(campaign):
            groups.setdefault(key, []).append(group)
    several = len(groups) > 1
    cards = [
        make_card(f"{folder}: {scheme}" if several else str(folder), scheme, where, runs, "it was not run")
        for (scheme, where), runs in groups.items()
        if any(group.records for group in runs)
    ]
    if not cards:
        raise DataError(f"{folder}: has no valid runs; narrows show {folder} explains")
    return cards


def record_of(card: Card, probe: str, cell: str) -> Path | Log:
    """The folder of the record of a cell of a card, or its log.

    Raises `DataError` if it does not exist any more.
    """
    if card.folders and Path(card.folders[0]).is_file():
        return Log(tuple(map(Path, card.folders)), card.flow)
    for folder in map(Path, card.folders):
        if (folder / "run.json").is_file():
            return folder
        if (folder / "cells" / cell).is_dir() and _name_of(folder) == probe:
            return folder / "cells" / cell
    raise DataError(f"{', '.join(card.folders)}: the record of {cell} on {probe} does not exist any more")


def _card_of_log(log: Log) -> Card:
    from narrows.formats.runs import scheme_of

    read_any(log)
    file = log.files[0]
    card = make_card(str(file), scheme_of(file), "import", [Runs(file.name, file, [file], [1], log=log)], "")
    return replace(card, folders=[str(each) for each in log.files], flow=log.flow)


def _campaigns_below(folder: Path) -> list[Path]:
    below = sorted(place.parent for place in folder.glob("*/campaign.json"))
    if not below:
        raise DataError(f"{folder}: is neither a campaign, nor a cell, nor the folder of an identification")
    return below


def _card_of_cell(folder: Path) -> Card:
    from narrows.campaign.json_files import read_run
    from narrows.documents.resolved import read_cell

    cell = read_cell(read_run(folder).cell)
    campaign = folder.resolve().parent.parent
    runs = Runs(_name_of(campaign) or cell.id, folder, [folder], [cell.run])
    return make_card(str(folder), cell.scheme, cell.where, [runs], "it was not run")


def _name_of(campaign: Path) -> str | None:
    from narrows.campaign.store import CampaignFolder

    if not (campaign / "campaign.json").is_file():
        return None
    return CampaignFolder.read(campaign).header.name


def _runs_of(campaign: Path) -> list[tuple[tuple[str, str], Runs]]:
    """The runs of each scheme of a campaign, by scheme and plane."""
    from narrows.api.campaign import Campaign

    opened = Campaign(campaign)
    groups: dict[str, Runs] = {}
    places = {row: place for place, row in enumerate(opened.schemes)}
    for run in sorted(opened.runs, key=lambda run: places[run.row]):
        group = groups.setdefault(run.scheme, Runs(opened.name, campaign, [], []))
        if run.valid:
            group.records.append(run.path)
            group.numbers.append(run.number)
        else:
            group.notes.append(f"{run.path}: is {run.verdict or run.state}, and was not used")
    return [((scheme, opened.plane), group) for scheme, group in groups.items()]
