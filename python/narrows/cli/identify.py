"""`narrows identify`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import REMOTE_FOLDER, SSH, Json
from narrows.cli.completion import scheme_names
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.identify import Card, Identification
    from narrows.identify.running import OtherHost


@command(example="narrows identify cubic --against reno")
def identify(
    what: Annotated[
        list[str],
        argument(
            metavar="WHAT...",
            help="Schemes (cubic, linux:bbr, '{scheme: cubic, beta: 0.8}', a program), which are probed; or"
            " folders: campaigns, cells, earlier identifications; or logs: captures"
            " of one end or both, qlogs of senders, logs of ss -tin.",
            complete=scheme_names,
        ),
    ],
    where: Annotated[
        str | None,
        option(
            "--where",
            metavar="PLANE",
            help="simulate, emulate or hosts. [default: simulate for our schemes, emulate for all others]",
        ),
    ] = None,
    host: Annotated[
        str | None,
        option(
            "--host",
            metavar="USER@HOST",
            help="Probe over the real path to this host (as ssh takes it); implies --where hosts.",
        ),
    ] = None,
    agent: Annotated[
        Path | None,
        option("--agent", metavar="FILE", help="A narrows-agent built for the other host's architecture."),
    ] = None,
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    against: Annotated[
        str | None,
        option(
            "--against",
            metavar="WHAT",
            help="A scheme or folder to compare with: which lines of the cards differ.",
            complete=scheme_names,
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        option(
            "--fail-on",
            metavar="LINE",
            help="With --against: exit with 5 if this line of the card differs (decrease, law, gain ...), or"
            " any. Repeatable.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        option(
            "--budget",
            metavar="TIME",
            help="Start no probe that would end after this time: '2 min'. With --host, the time of the flow.",
        ),
    ] = None,
    certainty: Annotated[
        float | None,
        option(
            "--certainty",
            metavar="SHARE",
            min=0.5,
            max=1,
            help="Start no probe once a name has this probability; 1 runs all probes."
            " [default: 0.95, or 1 with --against]",
        ),
    ] = None,
    flow: Annotated[
        int | None,
        option(
            "--flow",
            metavar="NUMBER",
            min=1,
            help="Measure the connection of a log that has this number. [default: the one that sent most]",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        option("--runs", min=1, max=1000, help="Runs of each probe. [default: 4 simulated, 1 emulated]"),
    ] = None,
    seed: Annotated[int, option("--seed", min=1, help="Seed of the runs.")] = 1,
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the runs, identify.json and identify.html; missing runs are completed."
            " [default: results/TIME-identify-SCHEME]",
        ),
    ] = None,
    no_report: Annotated[bool, option("--no-report", help="Write no identify.html.")] = False,
    markdown: Annotated[bool, option("--markdown", help="Print Markdown, for a pull request.")] = False,
    html: Annotated[bool, option("--html", help="Print one HTML page with a figure of each line.")] = False,
    as_json: Json = False,
) -> None:
    """Measure what a sender does: its behaviour card.

    \b
    narrows identify linux:cubic -o mine
    narrows identify mine --json
    narrows identify '{scheme: cubic, beta: 0.75}' --against cubic
    narrows identify server.pcap client.pcap

    The sender runs on eleven small paths, the probes (narrows scenarios lists them in the family identify).
    The card says, each with its interval and the seconds of the run: how slow start grows and what ends it,
    what is left of the window after a loss, by which law it grows back, the standing queue, the rhythm of
    probing, dips, bursts, and the response to random loss, marks, a step of the rate or of the round trip,
    and a flow of CUBIC. Only packets are measured, so a card can be made of any program. A feature
    that can't be measured is listed with the reason.

    --host probes between two machines: one flow of 40 s, and a card without a name.

    A log has the lines that its data hold: captures of one end, or of both (two files), of TCP, and of the
    sizes and times of QUIC; qlogs of senders; logs of ss -tin. The card says where it was taken and
    which connection it shows.

    --against compares card with card. A line differs if chance and the resolution of the method do not
    explain it; for equal senders any difference is claimed in at most 5 % of comparisons. Fewer than four
    runs are compared by the samples in them.

    Exit codes: 0 done, 2 usage, 3 nothing could be measured, 4 not possible on this machine, 5 a line of
    --fail-on differs, 130/143 interrupted with all finished runs kept.
    """
    from narrows.errors import EXIT_EXPECTATION, UsageError
    from narrows.identify.logs import find_partners, is_log

    if markdown + html + as_json > 1:
        raise UsageError("--json, --markdown and --html are different forms; write one of them")
    if fail_on and against is None:
        raise UsageError("--fail-on needs a card to compare with: --against cubic")
    if where not in (None, "simulate", "emulate", "hosts"):
        raise UsageError(f"--where {where}: probes can be simulated, emulated, or run between hosts")
    if (where or "hosts") != "hosts" and host is not None:
        raise UsageError(f"--where {where}: --host is for --where hosts")
    if where == "hosts" and host is None:
        raise UsageError("--where hosts needs the other host: --host user@server")
    _check_lines(fail_on or [])
    partners = find_partners(what)
    names = [name for name in what if name not in partners.values()]
    names += [against] if against is not None else []
    if flow is not None and not any(is_log(name) for name in names):
        raise UsageError("--flow chooses a connection of a log, and no WHAT is one")
    folders = _folders(names, output)
    quiet = as_json or markdown or html
    other = _other_host(host, ssh, remote_folder, agent)
    limits = _Limits(budget, certainty, runs, seed, flow, partners, other)
    made = _identify(names, folders, against is not None, where, limits, quiet=quiet)
    page = _write(made, output, folders, with_page=not no_report)
    _show(made, page, markdown=markdown, html=html, as_json=as_json)
    differing = {line.name for item in made.differences for line in item.lines}
    broken = [name for name in fail_on or [] if name in differing or (name == "any" and differing)]
    if broken:
        from narrows.console import say

        say(f"narrows: differs: {', '.join(sorted(differing) if 'any' in broken else broken)}")
        raise Exit(EXIT_EXPECTATION)


@dataclass(frozen=True, slots=True)
class _Limits:
    """Options that bound the probes, as they were written, and those of logs."""

    budget: str | None
    certainty: float | None
    runs: int | None
    seed: int
    #: The connection of logs.
    flow: int | None
    #: By the name of a capture, that of the other end.
    partners: dict[str, str]
    other: OtherHost | None


def _other_host(
    name: str | None, ssh: str, remote_folder: str | None, agent: Path | None
) -> OtherHost | None:
    if name is None:
        return None
    from narrows.cli.common import remote_options
    from narrows.identify.running import OtherHost

    return OtherHost(name, remote_options(ssh, remote_folder, agent))


def _check_lines(names: list[str]) -> None:
    from narrows.errors import UsageError
    from narrows.identify.features import COMBINED, FEATURES
    from narrows.text import suggest

    combined = [feature for feature, _ in COMBINED]
    known = ["any", *(feature.name for feature in (*FEATURES, *combined))]
    for name in names:
        if name not in known:
            hint = suggest(name, known, "line")
            raise UsageError(f'--fail-on: unknown line "{name}"{hint}')


def _identify(
    names: list[str],
    folders: list[Path],
    is_compared: bool,
    where: str | None,
    limits: _Limits,
    *,
    quiet: bool,
) -> Identification:
    from narrows import __version__
    from narrows.documents.identify import FORMAT, Identification
    from narrows.errors import UsageError
    from narrows.identify.differences import compare_cards
    from narrows.identify.running import name_cards

    cards: list[list[Card]] = [
        _cards(name, folder, where, limits, is_compared, quiet=quiet)
        for name, folder in zip(names, folders, strict=True)
    ]
    tested = [card for group in (cards[:-1] if is_compared else cards) for card in group]
    if not is_compared:
        tested = name_cards(tested)
    differences = []
    if is_compared:
        for card in tested:
            same = [base for base in cards[-1] if base.scheme == card.scheme]
            base = cards[-1] if len(cards[-1]) == 1 else same
            if len(base) != 1:
                schemes = ", ".join(other.scheme for other in cards[-1])
                raise UsageError(
                    f"--against {names[-1]}: has several schemes ({schemes}), none is {card.scheme}"
                )
            differences.append(compare_cards(base[0], card))
    return Identification(
        format=FORMAT,
        narrows=__version__,
        cards=[*tested, *(cards[-1] if is_compared else [])],
        differences=differences,
    )


def _is_recorded(name: str) -> bool:
    """True for a log and a folder; a folder that is called like a scheme is written ./cubic."""
    from narrows.scenario import registry

    if Path(name).is_dir():
        return "/" in name or name not in registry.load().schemes
    from narrows.identify.logs import is_log

    return is_log(name)


def _folders(names: list[str], output: Path | None) -> list[Path]:
    """Where each is probed, or has been."""
    from datetime import UTC, datetime

    from narrows.campaign.run import RESULTS
    from narrows.scenario.slugs import Slugs, slug_of

    schemes = list(dict.fromkeys(name for name in names if not _is_recorded(name)))
    slugs = Slugs()
    places = {scheme: slugs.add(slug_of(scheme)) for scheme in schemes}
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    root = output or RESULTS / f"{stamp}-identify-{next(iter(places.values()), '')}"
    return [
        Path(name) if _is_recorded(name) else root / places[name] if len(schemes) > 1 else root
        for name in names
    ]


def _cards(
    name: str,
    folder: Path,
    where: str | None,
    limits: _Limits,
    is_compared: bool,
    *,
    quiet: bool,
) -> list[Card]:
    from narrows.cli.common import positive
    from narrows.identify.features import PROBES, REAL_PATH
    from narrows.identify.running import (
        DEFAULT_CERTAINTY,
        DEFAULT_RUNS,
        HOSTS,
        Order,
        plane_of,
        read_cards,
        run_probes,
    )
    from narrows.progress import progress

    if _is_recorded(name):
        other = limits.partners.get(name)
        return read_cards(folder, None if other is None else Path(other), limits.flow)
    usual = plane_of(name)
    plane = HOSTS if limits.other is not None else where or usual
    probes = (REAL_PATH,) if plane == HOSTS else PROBES
    seconds = positive(limits.budget, "span", "--budget") / 1e9 if limits.budget else None
    certainty = limits.certainty or (None if is_compared else DEFAULT_CERTAINTY)
    with progress(f"probing {name}", len(probes), quiet=quiet) as bar:
        order = Order(
            plane,
            limits.runs or DEFAULT_RUNS[plane],
            limits.seed,
            seconds,
            limits.budget or "",
            probes,
            certainty=None if certainty == 1 or plane == HOSTS else certainty,
            tell=lambda number, probe: bar.update(number, len(probes), probe),
            host=limits.other,
        )
        return [run_probes(name, folder, order)]


def _write(made: Identification, output: Path | None, folders: list[Path], *, with_page: bool) -> Path | None:
    """Writes identify.json and the page beside the runs that were made, or into the folder of the option;
    returns the page."""
    import json

    from narrows.campaign.json_files import write_atomically
    from narrows.documents.data import to_data
    from narrows.identify.running import DOCUMENT, PAGE

    probed = [folder for folder, card in zip(folders, made.cards, strict=False) if card.what == card.scheme]
    place = output or (probed[0].parent if len(probed) > 1 else probed[0] if probed else None)
    if place is None:
        return None
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(to_data(made), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(place / DOCUMENT, text)
    if not with_page:
        return None
    from narrows.identify.page import render

    write_atomically(place / PAGE, render(made))
    return place / PAGE


def _show(made: Identification, page: Path | None, *, markdown: bool, html: bool, as_json: bool) -> None:
    if as_json:
        from narrows.cli.common import print_json
        from narrows.documents.data import to_data

        print_json(to_data(made))
        return
    if html:
        from narrows.files import read_text
        from narrows.identify.page import render

        print(read_text(page) if page else render(made), end="")
        return
    from narrows.identify import naming_text, text

    if markdown:
        for card in made.cards:
            if card.naming is not None:
                print(naming_text.markdown(card.naming))
        print(text.markdown(made.cards, made.differences), end="")
        return
    from narrows.console import stdout_console

    console = stdout_console()
    if made.differences:
        for item in made.differences:
            text.print_differences(console, item)
        _show_page(page)
        return
    for number, card in enumerate(made.cards):
        if number:
            console.print()
        text.print_card(console, card)
        if card.naming is not None:
            console.print()
            naming_text.print_naming(console, card.naming)
    _show_page(page)


def _show_page(page: Path | None) -> None:
    if page is not None:
        from narrows.console import say

        say(f"figures: {page}")
