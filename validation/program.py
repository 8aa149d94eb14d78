"""The commands of `python -m validation`."""

from __future__ import annotations

from narrows.cli.app import CONTEXT_SETTINGS, Group
from validation.identify import command as identify
from validation.schemes import command as schemes
from validation.tunnel import command as tunnel

program = Group(
    name="validation",
    example="python -m validation schemes reno --quick --simulate-only",
    help="Checks of Narrows itself, from its source tree.",
    no_args_is_help=True,
    context_settings=CONTEXT_SETTINGS,
)
schemes.register(program)
tunnel.register(program)
identify.register(program)
