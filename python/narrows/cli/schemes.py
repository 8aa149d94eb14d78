"""`narrows schemes`: the list of schemes, or the page of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import command
from narrows.cli.common import Json
from narrows.cli.completion import scheme_names
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.schemes.page_content import Page
    from narrows.schemes.status import Status

#: Longer lines of prose are hard to read, so text is wrapped at this width.
WIDTH_OF_TEXT = 100


@command(example="narrows schemes cubic")
def schemes(
    name: Annotated[str | None, argument(help="Explain this one.", complete=scheme_names)] = None,
    kind: Annotated[
        str | None,
        option(
            "--kind", metavar="KIND", help="Only native, bpf, linux or program schemes.", show_default=False
        ),
    ] = None,
    status: Annotated[
        str | None,
        option(
            "--status",
            metavar="STATUS",
            help="Only those that are verified, unverified or reference.",
            show_default=False,
        ),
    ] = None,
    runs_on: Annotated[
        str | None,
        option(
            "--runs-on",
            metavar="PLANE",
            help="Only those that run here on this plane: simulate or emulate.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the schemes, or describe one.

    The list has their origin, the planes on which they run, and the requirements that are missing here. With
    a name, prints its page, with its parameters and the checks behind its status.
    """
    from narrows.cli.common import print_json
    from narrows.console import Listing, stdout_console
    from narrows.errors import UsageError
    from narrows.schemes.listing import KINDS, list_schemes
    from narrows.schemes.status import MARKS

    if name is not None:
        if kind or status or runs_on:
            raise UsageError("name a scheme or filter the list, not both")
        from narrows.schemes.page import page_of

        page = page_of(name)
        if as_json:
            print_json({"format": "narrows/scheme/1", **page.to_json()})
        else:
            _print_page(stdout_console(), page)
        return
    _check_choice("--kind", kind, KINDS)
    _check_choice("--status", status, tuple(MARKS))
    _check_choice("--runs-on", runs_on, ("simulate", "emulate"))
    scheme_infos = [
        scheme
        for scheme in list_schemes()
        if kind in (None, scheme.kind)
        and status in (None, scheme.status)
        and (runs_on is None or runs_on in scheme.planes)
    ]
    if as_json:
        print_json(
            {
                "format": "narrows/schemes/1",
                "schemes": [scheme_info.to_json() for scheme_info in scheme_infos],
            }
        )
        return
    listed = Listing("scheme", "runs on", "status", "what it is", "source", whole=("scheme", "status"))
    for scheme_info in scheme_infos:
        shown = f"{MARKS[scheme_info.status]} {scheme_info.status}"
        listed.add_row(
            scheme_info.name,
            ", ".join(scheme_info.planes) or "-",
            shown,
            scheme_info.summary,
            scheme_info.source,
        )
    listed.print()
    for item in scheme_infos:
        if item.models:
            print(f"{item.name}: installed models: {', '.join(item.models)}")
    _print_missing([(info.name, info.missing) for info in scheme_infos if info.missing])


def _check_choice(option: str, value: str | None, choices: tuple[str, ...]) -> None:
    from narrows.errors import UsageError

    if value is not None and value not in choices:
        raise UsageError(f"{option} {value} is not known; choose one of {', '.join(choices)}")


def _print_missing(missing: list[tuple[str, str]]) -> None:
    """Prints why schemes do not run here; those with the same reason share a line."""
    reasons: dict[str, list[str]] = {}
    for name, reason in missing:
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        print(f"{', '.join(names)}: {reason}")


def _print_page(console: Console, page: Page) -> None:
    from rich.markdown import Markdown
    from rich.text import Text

    from narrows.console import Listing

    info = page.info
    console.print(Text(f"{info.name}  {page.header.first or info.summary}", style="bold"))
    console.print(f"source: {info.source}")
    console.print(f"runs on: {', '.join(info.planes) or 'nothing here'}")
    if info.missing:
        console.print(f"missing here: {info.missing}", soft_wrap=True)
    if info.media:
        load = "the frames of an encoder" if info.frames else "as much as it lets through"
        console.print(f"real-time: both ends of a flow, which sends {load}")
    if page.model:
        console.print(Text(f"default model: {page.model}"), soft_wrap=True)
    if info.models:
        console.print(f"installed models: {', '.join(info.models)}", soft_wrap=True)
    if page.ecn:
        meanings = {
            "none": "none; packets carry no ECN codepoint",
            "classic": "classic (ECT(0), RFC 3168), where the transport has it on",
            "scalable": "scalable (ECT(1), RFC 9331), where the transport has it on",
        }
        console.print(f"ECN: {meanings.get(page.ecn, page.ecn)}")
    if page.transport:
        listed = ", ".join(f"{name}: {value}" for name, value in page.transport.items())
        console.print(f"defined with these settings of the transport: {listed}")
    for name, text in page.profiles.items():
        console.print(f"profile: {name}: {text}", soft_wrap=True)
    for counterpart in page.counterparts:
        text = f"see also: {counterpart.name}, {counterpart.what}" + (
            f" ({counterpart.missing})" if counterpart.missing else ""
        )
        console.print(text, soft_wrap=True)
    console.print()
    prose = Markdown("\n\n".join(page.header.paragraphs))
    console.print(prose, width=min(console.width, WIDTH_OF_TEXT))
    console.print()
    if page.params:
        titles = ("parameter", "unit", "default", "allowed", "meaning", "source")
        params = Listing(*titles, whole=("parameter", "default"))
        for row in page.params:
            cells = (row.name, row.unit, row.default, row.allowed, row.doc, row.source)
            params.add_row(*cells)
        console.print(params)
    else:
        console.print("no parameters")
    console.print()
    _print_status(console, page.status)


def _print_status(console: Console, status: Status) -> None:

    from narrows.console import Listing

    when = f" ({status.date}, Narrows {status.version})" if status.date else ""
    why = f": {status.reason}" if status.reason else ""
    console.print(f"status: {status.word}{when}{why}", soft_wrap=True)
    if not status.checks:
        return
    titles = ("check", "expected", "found", "tolerance", "outcome")
    checks = Listing(*titles, right=titles[1:4])
    for check in status.checks:
        checks.add_row(*_check_cells(check))
    console.print(checks)


def _check_cells(check: dict[str, object]) -> tuple[str, ...]:
    return tuple(str(check.get(key) or "") for key in ("what", "expected", "found", "tolerance", "outcome"))
