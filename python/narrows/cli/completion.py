"""Completion of words on the command line, and its installation into the user's shell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

#: For each shell: the script, its start-up file, and the line in that file that loads the script, all below
#: the home folder. Fish reads every script of its folder.
_PLACES = {
    "bash": (".bash_completions/narrows.sh", ".bashrc", "source ~/.bash_completions/narrows.sh"),
    "zsh": (".zfunc/_narrows", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/narrows.fish", None, ""),
}


def current_shell() -> str:
    """The shell that started this program, or else the user's login shell. Raises `UnavailableError` if it
    has no completion.
    """
    from narrows.errors import UnavailableError

    try:
        parent = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    except OSError:
        parent = ""
    login = Path(os.environ.get("SHELL", "")).name
    for name in (parent, login):
        if name in _PLACES:
            return name
    raise UnavailableError(
        f"completion supports {', '.join(_PLACES)}, not {login or parent}; set SHELL to the one you use"
    )


def script(program: click.Command, shell: str) -> str:
    """The script that makes a shell ask the program for completions."""
    from click.shell_completion import get_completion_class

    completion = get_completion_class(shell)
    assert completion is not None
    return completion(program, {}, "narrows", "_NARROWS_COMPLETE").source()


def install(program: click.Command) -> str:
    """Writes the script for the current shell to the place from which it loads scripts; returns a sentence
    about it.
    """
    shell = current_shell()
    file, start_file, line = _PLACES[shell]
    target = Path.home() / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(script(program, shell), encoding="utf-8")
    if start_file is not None:
        start = Path.home() / start_file
        text = start.read_text(encoding="utf-8") if start.exists() else ""
        if line not in text.splitlines():
            before = "" if text.endswith("\n") or not text else "\n"
            with start.open("a", encoding="utf-8") as stream:
                stream.write(f"{before}{line}\n")
    return f"{shell} completion is in {target}; it works in shells that are started from now on"


def scenario_names(incomplete: str) -> list[str]:
    """Names of shipped scenarios; files complete as usual if no name matches."""
    from narrows.scenario.shipped import list_scenarios

    return [scenario.name for scenario in list_scenarios() if scenario.name.startswith(incomplete)]


def scheme_names(incomplete: str) -> list[str]:
    """Names of schemes: ours, those of our BPF programs, and those of this kernel."""
    from narrows.scenario import registry
    from narrows.scenario.prefixes import KERNEL_PREFIX
    from narrows.scenario.programs import store

    known = registry.load()
    try:
        kernels = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    except OSError:
        kernels = []
    names = [*known.schemes, *known.bpf, *(KERNEL_PREFIX + name for name in kernels), *store.schemes()]
    return [name for name in names if name.startswith(incomplete)]


def scheme_lists(incomplete: str) -> list[str]:
    """Names of schemes, for the last word of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in scheme_names(last)]


def model_names(incomplete: str) -> list[str]:
    """Names of models; files complete as usual if no name matches."""
    from narrows.models.store import list_models

    names = dict.fromkeys(model.name for model in list_models())
    return [name for name in names if name.startswith(incomplete)]


def user_model_names(incomplete: str) -> list[str]:
    """Names of models in the user's folder."""
    from narrows.models.store import list_models

    names = [model.name for model in list_models() if not model.is_shipped]
    return [name for name in names if name.startswith(incomplete)]


def figure_names(incomplete: str) -> list[str]:
    """Names of figures."""
    from narrows.report import figures

    names = [
        word.replace("_", "-") for kind in figures.registry().values() for word in (kind.name, *kind.also)
    ]
    return [name for name in names if name.startswith(incomplete)]
