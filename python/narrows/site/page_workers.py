"""Pages of campaigns, drawn in this process or by several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass

from narrows.campaign.store import CampaignFolder
from narrows.documents.site import CampaignPage
from narrows.errors import NarrowsError
from narrows.site import campaigns
from narrows.site.campaigns import Page
from narrows.sweep.engines import processes as start_processes

FEW = 16
"""Pages that are drawn sooner than further processes start."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The sentence and the exit code of an error in another process."""

    message: str
    exit_code: int


def draw(pages: Sequence[Page], processes: int) -> Iterator[tuple[Page, CampaignPage | Failure]]:
    """Draws pages; yields each with its entry of site.json when it is finished."""
    if processes < 2 or len(pages) < FEW:
        for page in pages:
            yield page, _draw(page)
        return
    executor = start_processes(processes)
    try:
        waiting: dict[Future[CampaignPage | Failure], Page] = {
            executor.submit(_draw, page): page for page in pages
        }
        for future in as_completed(waiting):
            yield waiting.pop(future), future.result()
    finally:
        # After a signal only pages in progress are finished.
        executor.shutdown(cancel_futures=True)


def _draw(page: Page) -> CampaignPage | Failure:
    try:
        folder = CampaignFolder.read(page.campaign)
        return campaigns.write(folder, page)
    except NarrowsError as error:
        return Failure(str(error), error.exit_code)
