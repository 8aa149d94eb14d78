"""The commands about `narrows identify`."""

from __future__ import annotations

from narrows.cli.app import Group, subcommand
from validation.identify import emulated, names, planted_changes, rebuild_library


def register(program: Group) -> None:
    """Adds the commands to the program."""
    subcommand(program, "identify-library", example="python -m validation identify-library")(
        rebuild_library.run
    )
    subcommand(program, "identify-names", example="python -m validation identify-names --seeds 3")(names.run)
    subcommand(program, "identify-changes", example="python -m validation identify-changes --seeds 2")(
        planted_changes.run
    )
    subcommand(
        program, "identify-emulated", example="python -m validation identify-emulated linux:cubic bpf:htcp"
    )(emulated.run)
