"""`narrows extend`: queues, links, rates, schemes, traffic and metrics of your own crates."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import group, subcommand
from narrows.cli.common import Json, print_done, print_json
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.documents.extensions import ExtensionCrate
    from narrows.extend.sets import SetFolder

extend = group(
    "extend",
    "narrows extend add my-queue",
    "Your own queues, links, schemes and others, built into Narrows.",
)


class NewKind(StrEnum):
    """The kinds of entries that a crate may add."""

    QUEUE = "queue"
    LINK = "link"
    RATE = "rate"
    SCHEME = "scheme"
    TRAFFIC = "traffic"
    METRIC = "metric"


Project = Annotated[
    bool,
    option(
        "--project",
        help="The set of the project in this folder (.narrows), in place of the one in use here: that of the"
        " project around this folder, or else yours.",
    ),
]
CratePath = Annotated[
    Path, argument(metavar="FOLDER", help="The folder of a crate, or a .crate file of cargo package.")
]


def _set(project: bool) -> SetFolder:
    from narrows.extend.sets import project_set, set_in_use

    return project_set(Path()) if project else set_in_use()


def _entries(crate: ExtensionCrate) -> str:
    return ", ".join(f"{kind} {name}" for kind, names in crate.adds.items() for name in names)


def _members(crate: ExtensionCrate) -> dict[str, object]:
    """A crate as members of JSON answers."""
    return {"name": crate.name, "version": crate.version, "sha256": crate.sha256, "adds": crate.adds}


@subcommand(extend, example="narrows extend new queue mine")
def new(
    kind: Annotated[NewKind, argument(metavar="KIND", help="queue, link, rate, scheme, traffic or metric.")],
    name: Annotated[str, argument(metavar="NAME", help="The name for scenarios: small letters, digits, _.")],
    folder: Annotated[
        Path | None, argument(metavar="[FOLDER]", help="The new folder.  [default: NAME]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a crate to start from.

    It works as written: an example whose rule you replace, with its tests.
    """
    from narrows.extend.kinds import KINDS
    from narrows.extend.new import make

    place = folder or Path(name)
    files = make(KINDS[kind], name, place)
    text = f"{place}: {', '.join(files)}; test it with: narrows extend check {place}"
    print_done(text, as_json, "extension-new", folder=str(place), kind=str(kind), name=name, files=files)


@subcommand(extend, example="narrows extend check mine")
def check(place: CratePath, as_json: Json = False) -> None:
    """Run the conformance kit and the tests of a crate.

    Nothing is added. The first time compiles Narrows, for some minutes.
    """
    from narrows.extend import sets
    from narrows.extend.crates import open_folder, read

    with open_folder(place) as folder:
        crate = read(folder, str(place.resolve()))
        sets.check(crate)
    described = crate.described
    print_done(
        f"{described.label} passes: {_entries(described)}",
        as_json,
        "extension-check",
        **_members(described),
    )


@subcommand(extend, example="narrows extend add mine")
def add(place: CratePath, project: Project = False, as_json: Json = False) -> None:
    """Build a crate into Narrows, and use it from now on.

    Its tests run first. Scenarios then name its entries like all others, on all planes, and every record
    names the crate with its hash. Adding a crate again replaces it. An interruption leaves all as it was.
    """
    from narrows.extend import sets
    from narrows.extend.crates import open_folder, read

    where = _set(project)
    with open_folder(place) as folder:
        crate = read(folder, str(place.resolve()))
        replaced = sets.add(where, crate)
    described = crate.described
    verb = "replaced" if replaced else "added"
    print_done(
        f"{verb} {described.label} in {where.base}: {_entries(described)}",
        as_json,
        "extension-added",
        **_members(described),
        set=str(where.base),
        replaced=replaced,
    )


@subcommand(extend, "list", example="narrows extend list")
def list_(project: Project = False, as_json: Json = False) -> None:
    """List the extensions that are in use here."""
    from narrows.console import Listing, say
    from narrows.documents.data import to_data
    from narrows.documents.extensions import ExtensionList

    where = _set(project)
    known = where.read()
    problem = where.problem
    if as_json:
        listed = ExtensionList(
            narrows=known.narrows, crates=known.crates, folder=str(where.base), problem=problem
        )
        print_json(to_data(listed))
        return
    if not known.crates:
        print(f"no extensions in {where.base}; narrows extend add FOLDER adds a crate")
        return
    made = Listing("extension", "version", "adds", "sha256", "from", whole=("extension", "version"))
    for crate in known.crates:
        made.add_row(crate.name, crate.version, _entries(crate), crate.sha256[:12], crate.origin)
    made.print()
    if problem:
        say(f"narrows: {where.base}: {problem}")


@subcommand(extend, example="narrows extend remove my-queue")
def remove(
    name: Annotated[str, argument(metavar="NAME", help="The crate's name.")],
    project: Project = False,
    as_json: Json = False,
) -> None:
    """Remove an extension, and with the last one everything that was built.

    Records that used it keep its name and hash, and can still be read.
    """
    from narrows.extend import sets

    where = _set(project)
    sets.remove(where, name)
    print_done(
        f"removed {name} from {where.base}", as_json, "extension-removed", name=name, set=str(where.base)
    )


@subcommand(extend, "build", example="narrows extend build")
def build_(project: Project = False, as_json: Json = False) -> None:
    """Build the extensions again, after an upgrade of Narrows."""
    from narrows.extend import sets

    where = _set(project)
    names = sets.rebuild(where)
    print_done(
        f"built {', '.join(names)} in {where.base}",
        as_json,
        "extensions-built",
        names=names,
        set=str(where.base),
    )
