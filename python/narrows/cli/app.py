"""The program and its commands. Each command's help starts with an example."""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

import click
from click.exceptions import Exit

from narrows import __version__
from narrows.cli import completion
from narrows.cli.parameters import build, option
from narrows.errors import Interrupted

#: Options of every program.
CONTEXT_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "show_default": True}


class _ExampleFirst:
    """Writes the example before the usage line."""

    example = ""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Called by the command line library to compose the help."""
        formatter.write(f"Example:  {self.example}\n\n")
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def invoke(self, ctx: Any) -> Any:
        """Called by the command line library, which would silently exit at Ctrl-C, and at other signals
        without removing partial output.
        """
        from narrows.campaign.signals import interruptible

        try:
            with interruptible("interrupted", (signal.SIGTERM, signal.SIGHUP)):
                return super().invoke(ctx)  # type: ignore[misc]
        except KeyboardInterrupt:
            raise Interrupted("interrupted", signal.SIGINT) from None


class _Command(_ExampleFirst, click.Command):
    def __init__(self, *, example: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.example = example


class Group(_ExampleFirst, click.Group):
    """Commands below a word: `narrows NAME COMMAND`."""

    def __init__(self, *, example: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.example = example

    def list_commands(self, _ctx: Any) -> list[str]:
        """Called by the command line library; the order is that of registration, not of the alphabet."""
        return list(self.commands)


class _Program(Group):
    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Called by the command line library to list the commands by section."""
        width = max(map(len, self.commands))
        for section, names in _sections.items():
            with formatter.section(section):
                # All names have the same width, so that the texts of all sections are aligned.
                texts = ((name, self.commands[name].get_short_help_str(formatter.width)) for name in names)
                formatter.write_dl([(name.ljust(width), text) for name, text in texts])


#: Names of commands by section of the help.
_sections: dict[str, list[str]] = {}


def _add(parent: click.Group, command: click.Command) -> None:
    """Adds a command to a group, and to the current section of the help if the group is the program."""
    parent.add_command(command)
    if parent is app:
        next(reversed(_sections.values())).append(str(command.name))


def group(
    name: str,
    example: str,
    text: str,
    parent: click.Group | None = None,
    run: Callable[..., None] | None = None,
) -> Group:
    """Registers a group of commands (`narrows NAME COMMAND`), with the example that its help starts with.

    `run` is called first, with the options before the command, and also if no command follows.
    """
    settings: dict[str, Any] = {"example": example, "help": text, "no_args_is_help": run is None}
    made = (
        Group(name=name, **settings)
        if run is None
        else build(run, Group, name, invoke_without_command=True, **settings)
    )
    _add(app if parent is None else parent, made)
    return made


def subcommand(
    parent: click.Group,
    name: str | None = None,
    *,
    example: str,
    context_settings: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a command of a group, with the example that its help starts with."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        made = build(function, _Command, name, example=example, context_settings=context_settings)
        _add(parent, made)
        return function

    return register


def command(
    example: str, context_settings: dict[str, Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a command, with the example that its help starts with."""
    return subcommand(app, example=example, context_settings=context_settings)


def _root(
    context: click.Context,
    version: Annotated[bool, option("--version", help="Print the version and exit.")] = False,
    as_json: Annotated[
        bool, option("--json", help="With --version: the versions of all parts, as JSON.")
    ] = False,
    install: Annotated[
        bool, option("--install-completion", help="Install completion for the current shell.")
    ] = False,
    show: Annotated[
        bool,
        option(
            "--show-completion",
            help="Show completion for the current shell, to copy it or customize the installation.",
        ),
    ] = False,
) -> None:
    if version:
        print(json.dumps(_versions(), indent=1) if as_json else f"narrows {__version__}")
    elif install:
        print(completion.install(app))
    elif show:
        print(completion.script(app, completion.current_shell()))
    elif context.invoked_subcommand is None:
        print(context.get_help(), file=sys.stderr)
        raise Exit(2)
    else:
        return
    raise Exit()


def _versions() -> dict[str, object]:
    import platform

    from narrows.agent.location import this_machine
    from narrows.errors import NarrowsError

    versions: dict[str, object] = {
        "narrows": __version__,
        "python": platform.python_version(),
        "native": None,
        "agent": None,
    }
    try:
        from narrows import _native

        versions["native"] = _native.version()
    except ImportError:
        pass
    try:
        from narrows.documents.agent import Version
        from narrows.documents.data import to_data

        agent = this_machine()
        versions["agent"] = {"path": agent.prefix[-1], **to_data(agent.ask(Version, "version"))}
    except NarrowsError:
        pass
    return versions


app = build(
    _root,
    _Program,
    "narrows",
    example="narrows run first-look",
    help="Narrows: an open laboratory for Internet congestion control.",
    no_args_is_help=True,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings=CONTEXT_SETTINGS,
)


#: Commands, by the section of the help and the module that registers them.
_MODULES: dict[str, dict[str, tuple[str, ...]]] = {
    "Run": {
        "run": ("run",),
        "sweep": ("sweep",),
        "hunt": ("hunt",),
        "identify": ("identify",),
        "calibrate": ("calibrate",),
        "scenarios": ("scenarios", "init", "schema"),
        "schemes": ("schemes",),
        "programs": ("programs",),
        "lab": ("lab",),
        "learn": ("learn",),
        "shell": ("shell",),
    },
    "Look": {
        "show": ("show",),
        "report": ("report",),
        "plot": ("plot",),
        "compare": ("compare",),
        "query": ("query",),
        "cite": ("cite",),
        "ls": ("ls", "note", "tag", "merge"),
        "site": ("site",),
        "archive": ("archive",),
        "check": ("check",),
    },
    "Data": {
        "importing": ("import",),
        "exporting": ("export",),
        "trace": ("trace",),
        "models": ("models",),
        "extend": ("extend",),
    },
    "System": {
        "doctor": ("doctor",),
        "hosts": ("hosts",),
        "manual": ("man",),
    },
}


def load(word: str | None = None) -> None:
    """Registers the command of this name, or all commands if there is none.

    Registering all of them takes longer than most commands run.
    """
    known = any(word in names for modules in _MODULES.values() for names in modules.values())
    for section, modules in _MODULES.items():
        _sections[section] = []
        for module, names in modules.items():
            if word in names or not known:
                importlib.import_module(f"narrows.cli.{module}")
