"""The options of `narrows run` that show runs while they are under way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from narrows.cli.parameters import option

if TYPE_CHECKING:
    from narrows.campaign.showing import Showing
    from narrows.scenario import Loaded

SIMULATE = "simulate"
#: Why simulated runs are not shown.
_WHY = (
    "--live is for runs on the machine's clock, and this scenario is simulated, which takes less time; add"
    " --where emulate"
)


@dataclass(frozen=True)
class LiveOptions:
    """How the runs are shown."""

    live: Annotated[
        bool,
        option(
            "--live",
            help="Show flows and queues on the terminal while runs are under way, emulated or between hosts.",
        ),
    ] = False
    live_page: Annotated[
        bool,
        option(
            "--live-page", help="Show them on a page in a browser on this machine; its address is printed."
        ),
    ] = False
    live_port: Annotated[
        int | None,
        option(
            "--live-port",
            metavar="PORT",
            min=1,
            max=65535,
            help="Port of the page; implies --live-page. [default: any that is free]",
        ),
    ] = None
    interactive: Annotated[
        bool,
        option(
            "--interactive",
            help='With --live or --live-page: take orders such as "rate 5 Mbit/s" or "delay 40 ms", which'
            " become part of the scenario that is saved with the run.",
        ),
    ] = False

    @property
    def on_page(self) -> bool:
        """True if there is a page."""
        return self.live_page or self.live_port is not None

    def check(self, *, as_json: bool, dry_run: bool) -> None:
        """Checks that the options fit together."""
        from narrows.errors import UsageError

        shows = self.live or self.on_page
        if self.interactive and not shows:
            raise UsageError("--interactive changes runs that are shown; add --live or --live-page")
        if shows and (as_json or dry_run):
            raise UsageError("--live follows a running campaign; leave out --json and --dry-run")

    @contextlib.contextmanager
    def showing(self, loaded: Loaded) -> Iterator[Showing | None]:
        """How the runs of a scenario are shown, inside the context; None if they are not."""
        from narrows.errors import UsageError

        if not (self.live or self.on_page):
            yield None
            return
        if loaded.scenario.where == SIMULATE:
            raise UsageError(_WHY)
        from narrows.campaign.showing import Showing
        from narrows.console import say

        desk = None
        if self.interactive:
            from narrows.live.orders import Desk

            desk = Desk(loaded)
        showing = Showing(self.live, desk)
        if not self.on_page:
            yield showing
            return
        from narrows.live_page.page import serve

        with serve(showing.watch, self.live_port or 0) as server:
            say(f"live: {server.url}")
            yield showing


#: Runs are not shown.
NOT_LIVE = LiveOptions()
