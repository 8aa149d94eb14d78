"""Runs that are shown while they are under way: `narrows run --live`, and changed with `--interactive`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from narrows.campaign.live_view import LiveView
from narrows.campaign.plan import Plan, make_plan
from narrows.campaign.progress import ProgressView
from narrows.campaign.store import CampaignFolder
from narrows.documents.agent import Facts
from narrows.errors import UsageError
from narrows.live.as_run import portable
from narrows.live.orders import Desk
from narrows.live.watch import Watch

#: The scenario that repeats a run with its changes, in the folder of the campaign.
AS_RUN = "as-run.yaml"


@dataclass
class Showing:
    """How the runs of a campaign are shown; with a desk they take orders."""

    #: True if the terminal shows them.
    on_terminal: bool = True
    desk: Desk | None = None
    watch: Watch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(self.desk)

    @property
    def view(self) -> Callable[..., ProgressView]:
        """Creates the view of a campaign from the arguments of `ProgressView`."""
        return partial(LiveView, watch=self.watch, draws=self.on_terminal)

    def check(self, plan: Plan, folder: Path | None) -> None:
        """Checks that a campaign can be shown in this way; `folder` has one already."""
        if self.desk is None:
            return
        if len(plan.cells) != 1:
            raise UsageError(
                f"--interactive changes a single run, and this campaign has {len(plan.cells)}; choose one"
                " with --schemes NAME --runs 1"
            )
        if folder is not None:
            raise UsageError(
                f"--interactive begins a campaign, and {folder} has one; remove it, or choose another folder"
                " with -o"
            )

    def keep_changes(self, folder: CampaignFolder, facts: Facts, say: Callable[[str], None]) -> None:
        """Makes the changes of the run part of its scenario, which is saved with it."""
        changed = self.desk.scenario_with_changes() if self.desk is not None else None
        if changed is None or not all(cell.is_finished for cell in folder.cells):
            return
        changed, copies = portable(changed)
        folder.replan(changed, make_plan(changed.scenario, facts))
        path: Path = folder.path / AS_RUN
        for name, content in copies.items():
            copy = folder.path / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        path.write_text(changed.text, encoding="utf-8")
        say(f"the changes are in the timeline of {path}; narrows run {path} repeats the run")
