"""`narrows programs`: external programs as schemes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from click.exceptions import Exit
from msgspec.structs import replace

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.programs import ListedProgram
    from narrows.programs.trial import Trial
    from narrows.scenario.programs.program import Program


def _list_or_continue(
    context: click.Context,
    reference: Annotated[
        bool, option("--reference", help="Print the reference of manifests as Markdown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the programs that can be schemes, build the shipped ones, and check that a program runs."""
    if context.invoked_subcommand is not None:
        return
    if reference:
        from narrows.scenario.programs.reference import markdown

        print(markdown(), end="")
        return
    from narrows.cli.common import print_json
    from narrows.console import Listing, stdout_console
    from narrows.documents.data import to_data
    from narrows.scenario.programs.store import user_folder

    entries = _list()
    if as_json:
        print_json({"format": "narrows/programs/1", "programs": to_data(entries)})
        return
    if not entries:
        print(f"there are no programs; put a manifest into {user_folder()}")
        return
    made = Listing("program", "variants", "from", "what it is", whole=("program", "from"))
    for entry in entries:
        made.add_row(entry.name, ", ".join(entry.variants), entry.origin, entry.what)
    console = stdout_console()
    console.print(made)
    for entry in entries:
        if entry.root is not None:
            console.print(f"{entry.name}: runs in the root {entry.root}", soft_wrap=True)
        if why := entry.problem or entry.missing:
            console.print(f"{entry.name}: {why}", soft_wrap=True)


def _list() -> list[ListedProgram]:
    """Every manifest, with its program or the error in it."""
    from narrows.documents.programs import ListedProgram
    from narrows.errors import DataError
    from narrows.scenario.programs.missing import why_missing
    from narrows.scenario.programs.scheme import defaults, plan
    from narrows.scenario.programs.store import list_programs, load

    entries = []
    for item in list_programs():
        entry = ListedProgram(name=item.name, origin=item.origin, path=str(item.path))
        try:
            program = load(item.path)
        except DataError as error:
            entries.append(replace(entry, problem=str(error).split("\n", maxsplit=1)[0]))
            continue
        first = next(iter(program.variants.values()))
        entries.append(
            replace(
                entry,
                what=program.what,
                source=program.source,
                licence=program.licence,
                variants=list(program.variants),
                data=program.data,
                root=None if program.root is None else str(program.root.path),
                missing=why_missing(plan(program, first, defaults(program, first))),
            )
        )
    return entries


programs = group(
    "programs",
    "narrows programs check iperf3:cubic",
    "Programs of others that can be schemes.",
    run=_list_or_continue,
)


@subcommand(programs, example="narrows programs check iperf3:cubic")
def check(
    name: Annotated[
        str,
        argument(
            metavar="NAME[:VARIANT] | FILE | pantheon:PATH",
            help="A program, one of its variants, a manifest, or a wrapper of Pantheon.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Run a program for two seconds over an emulated path (10 Mbit/s, 20 ms), and report the observations.

    Without a variant, all variants run, one after the other. The exit code is 6 if one of them is not fit for
    a campaign.
    """
    from narrows.cli.common import print_json
    from narrows.console import stdout_console
    from narrows.errors import EXIT_SOME_INVALID
    from narrows.programs.trial import in_words

    trials = _try(*_find_program(name), quiet=as_json)
    if as_json:
        print_json({"format": "narrows/program-check/1", "checks": [item.to_json() for item in trials]})
    else:
        console = stdout_console()
        for trial in trials:
            for line in in_words(trial):
                console.print(line, soft_wrap=True)
    if any(item.verdict in ("invalid", "failed") for item in trials):
        raise Exit(EXIT_SOME_INVALID)


@subcommand(programs, example="narrows programs build quinn")
def build(
    names: Annotated[
        list[str], argument(metavar="NAME|FILE...", help="Programs, or manifests with the key build.")
    ],
    as_json: Json = False,
) -> None:
    """Build programs from the registries of their languages, in the versions that their sources have locked.

    Only the first time needs the network and a compiler: builds are kept in ~/.local/share/narrows/programs
    (NARROWS_PROGRAMS names another folder), and repeated only if the sources change. Packages of Debian
    (build: {debian: ...}) are installed for the whole machine, which only root can.

    Exit codes: 1 a compiler failed, 4 a compiler, a registry or a right is missing.
    """
    from narrows.cli.common import print_json
    from narrows.programs.build import FORMAT, in_words
    from narrows.programs.build import build as build_one
    from narrows.progress import progress
    from narrows.text import shorten

    named = [_find_program(name)[0] for name in names]
    done = []
    for program in named:
        with progress(f"building {program.name}", quiet=as_json) as bar:
            done.append(build_one(program, lambda line, bar=bar: bar.update(note=shorten(line))))  # type: ignore[misc]
        if not as_json:
            print(in_words(done[-1]), flush=True)
    if as_json:
        print_json({"format": FORMAT, "programs": [item.to_json() for item in done]})


def _find_program(name: str) -> tuple[Program, list[str]]:
    """The program that the user has named, and its variants."""
    from narrows.errors import DataError
    from narrows.scenario.programs import wrapper
    from narrows.scenario.programs.store import find, is_name, load
    from narrows.text import shorten, suggest

    if wrapper.is_wrapper(name):
        result = wrapper.load(wrapper.find(name, Path()))
        return result, list(result.variants)
    program, _, variant = name.partition(":") if is_name(name) else (name, "", "")
    result = load(find(program, Path()))
    if not variant:
        return result, list(result.variants)
    if variant not in result.variants:
        hint = suggest(variant, result.variants, "variant")
        raise DataError(f'{result.name} has no variant "{shorten(variant)}"{hint}')
    return result, [variant]


def _try(program: Program, variants: list[str], *, quiet: bool) -> list[Trial]:
    from narrows.programs.trial import check as trial_of
    from narrows.progress import progress

    trials = []
    with progress("checking", len(variants), quiet=quiet) as bar:
        for done, variant in enumerate(variants):
            bar.update(note=f"{program.name}:{variant}")
            trials.append(
                trial_of(program, variant, lambda share, done=done: bar.update(done + share))  # type: ignore[misc]
            )
    return trials


@subcommand(programs, example="narrows programs setup pantheon:src/wrappers/cubic.py")
def setup(
    name: Annotated[str, argument(metavar="pantheon:PATH", help="A wrapper of Pantheon.")],
    after_reboot: Annotated[
        bool, option("--after-reboot", help="Only what is to be done after each start of the machine.")
    ] = False,
) -> None:
    """Prepare a wrapper of Pantheon: name missing packages, then run its setup and setup_after_reboot.

    Packages are not installed for you. The wrapper builds and downloads with your rights, as it did for
    Pantheon's setup.py.
    """
    from narrows.console import stderr_console
    from narrows.errors import UnavailableError, UsageError
    from narrows.programs.setup import AFTER_REBOOT, ONCE, needs, set_up
    from narrows.scenario.programs import wrapper

    if not wrapper.is_wrapper(name):
        raise UsageError(f"{name} is not a wrapper of Pantheon; name it pantheon:PATH")
    program = wrapper.load(wrapper.find(name, Path()))
    if program.unavailable:
        raise UnavailableError(program.unavailable)
    if missing := needs(program).missing:
        packages = " ".join(missing)
        text = f"{program.path.name} needs packages that are not installed: {packages}"
        text += f" (apt-get install {packages})"
        raise UnavailableError(text)
    set_up(program, (AFTER_REBOOT,) if after_reboot else (ONCE, AFTER_REBOOT))
    stderr_console().print(f"{name} is set up; narrows programs check {name} tries it", soft_wrap=True)
