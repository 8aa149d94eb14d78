"""`narrows man`: the manual page, from the texts of `--help`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from narrows.cli.app import command

if TYPE_CHECKING:
    from collections.abc import Iterator


@command(example="narrows man | man -l -")
def man() -> None:
    """Print the manual page.

    \b
    narrows man | man -l -                                   read it
    narrows man > ~/.local/share/man/man1/narrows.1          install it
    """
    from narrows.cli.all_commands import app

    print("\n".join(_page(app)))


def _page(program: Any) -> Iterator[str]:
    from narrows import __version__

    yield f'.TH NARROWS 1 "" "narrows {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "narrows \\- an open laboratory for Internet congestion control"
    yield ".SH SYNOPSIS"
    yield ".B narrows\n[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]"
    yield ".SH OPTIONS"
    yield from _options(program)
    yield ".SH COMMANDS"
    for path, item in _commands(program, ""):
        yield f".SS {_text(path)}"
        usage = click.Context(item, info_name=f"narrows {path}").get_usage()
        yield f".B {_text(' '.join(usage.removeprefix('Usage: ').split()))}"
        yield from _paragraphs(item.help or "")
        yield f".PP\nExample: {_text(item.example)}"
        yield from _options(item)
    yield ".SH FILES"
    yield ".TP\n~/.config/narrows/metrics\nMetrics of your own, for every command."
    yield ".TP\nresults/\nCampaigns, unless -o names another folder."
    yield ".SH EXIT STATUS"
    yield "0 done, 1 failure, 2 usage, 3 bad scenario or data, 4 this machine can't, 5 an expectation fails,"
    yield "6 some runs failed or are invalid, 130 and 143 interrupted. narrows shell ends as its program"
    yield "does, with 126 if it can't be started and 127 if there is none."


def _commands(group: Any, before: str) -> Iterator[tuple[str, Any]]:
    """The commands below a group, each with its full name."""
    for name, item in sorted(group.commands.items()):
        path = f"{before} {name}".strip()
        if hasattr(item, "commands"):
            yield from _commands(item, path)
        else:
            yield path, item


def _options(item: Any) -> Iterator[str]:
    context = click.Context(item)
    for param in item.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            yield f".TP\n\\fB{_text(record[0])}\\fR\n{_text(record[1])}"


def _paragraphs(text: str) -> Iterator[str]:
    """The text of a help; paragraphs that begin with \\b keep their lines."""
    for paragraph in text.split("\n\n"):
        lines = paragraph.strip("\n").splitlines()
        if lines and lines[0].strip() == "\b":
            yield ".nf"
            yield from (_text(line) for line in lines[1:])
            yield ".fi"
        elif lines:
            yield f".PP\n{_text(' '.join(line.strip() for line in lines))}"


def _text(text: str) -> str:
    """Escapes text for troff: hyphens that can be copied, no accidental requests."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped
