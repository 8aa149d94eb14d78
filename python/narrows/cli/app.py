"""The program and its commands. Each command's help starts with an example."""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from narrows import __version__
from narrows.errors import Interrupted


class _ExampleFirst:
    """Writes the example before the usage line."""

    example = ""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Called by the command line library to compose the help."""
        formatter.write(f"Example:  {self.example}\n\n")
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def invoke(self, ctx: Any) -> Any:
        """Called by the command line library, which would end at Ctrl-C without a word, and at other signals
        without removing what it has begun."""
        from narrows.campaign.signals import interruptible

        try:
            with interruptible("interrupted", (signal.SIGTERM, signal.SIGHUP)):
                return super().invoke(ctx)  # type: ignore[misc]
        except KeyboardInterrupt:
            raise Interrupted("interrupted", signal.SIGINT) from None


class _Group(_ExampleFirst, TyperGroup):
    example = "narrows run first-look"

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Called by the command line library to list the commands, which stand in sections here."""
        width = max(map(len, self.commands))
        for section, names in _sections.items():
            with formatter.section(section):
                # Written in columns of one width, so that sections stand below each other.
                texts = ((name, self.commands[name].get_short_help_str(formatter.width)) for name in names)
                formatter.write_dl([(name.ljust(width), text) for name, text in texts])


#: Names of commands by the section of the help that they stand in.
_sections: dict[str, list[str]] = {}


app = typer.Typer(
    name="narrows",
    cls=_Group,
    help="Narrows: an open laboratory for Internet congestion control.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _listed(name: str) -> None:
    """Puts a command into the section that is being filled."""
    next(reversed(_sections.values())).append(name)


def group(name: str, example: str, text: str, parent: typer.Typer | None = None) -> typer.Typer:
    """Registers a group of commands (`narrows NAME COMMAND`), with the example that its help starts with."""
    made = typer.Typer(
        name=name,
        cls=type("Group", (_ExampleFirst, TyperGroup), {"example": example}),
        help=text,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    (parent or app).add_typer(made)
    if parent is None:
        _listed(name)
    return made


def subcommand(
    parent: typer.Typer,
    name: str | None = None,
    *,
    example: str,
    context_settings: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a command of a group, with the example that its help starts with."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        shape = type("Command", (_ExampleFirst, TyperCommand), {"example": example})
        parent.command(name, cls=shape, context_settings=context_settings)(function)
        if parent is app:
            _listed(name or function.__name__.replace("_", "-"))
        return function

    return register


def command(
    example: str, context_settings: dict[str, Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a command, with the example that its help starts with."""
    return subcommand(app, example=example, context_settings=context_settings)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --version: everything known, as JSON.")
    ] = False,
) -> None:
    if version:
        print(json.dumps(_versions(), indent=1) if as_json else f"narrows {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise typer.Exit(2)


def _versions() -> dict[str, Any]:
    import platform

    from narrows.agent import schema
    from narrows.agent.location import this_machine
    from narrows.errors import NarrowsError

    found: dict[str, Any] = {
        "narrows": __version__,
        "python": platform.python_version(),
        "native": None,
        "agent": None,
    }
    try:
        from narrows import _native

        found["native"] = _native.version()
    except ImportError:
        pass
    try:
        agent = this_machine()
        found["agent"] = {"path": agent.prefix[-1], **agent.ask(schema.VERSION, "version")}
    except NarrowsError:
        pass
    return found


#: Commands, by the section of the help and the module that registers them.
_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "Run": {
        "run": ("run",),
        "sweep": ("sweep",),
        "hunt": ("hunt",),
        "calibrate": ("calibrate",),
        "scenarios": ("scenarios", "init", "schema"),
        "schemes": ("schemes",),
        "programs": ("programs",),
        "lab": ("lab",),
        "shell": ("shell",),
    },
    "Look": {
        "show": ("show",),
        "report": ("report",),
        "plot": ("plot",),
        "compare": ("compare",),
        "query": ("query",),
        "ls": ("ls", "note", "tag", "merge"),
        "site": ("site",),
        "check": ("check",),
    },
    "Data": {
        "importing": ("import",),
        "exporting": ("export",),
        "trace": ("trace",),
        "models": ("models",),
    },
    "System": {
        "doctor": ("doctor",),
        "hosts": ("hosts",),
        "verify_schemes": ("verify-schemes",),
        "verify_tunnel": ("verify-tunnel",),
        "manual": ("man",),
    },
}


def load(word: str | None = None) -> None:
    """Registers the command of this name, or all of them if there is none.

    To describe them all to the library takes longer than most of them run.
    """
    known = any(word in names for modules in _MODULES.values() for names in modules.values())
    for section, modules in _MODULES.items():
        _sections[section] = []
        for module, names in modules.items():
            if word in names or not known:
                importlib.import_module(f"narrows.cli.{module}")
