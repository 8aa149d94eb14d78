"""Makes or updates a site.

    SITE/
      index.html                    all campaigns, the latest first, and the ranking
      site.json                     narrows/site/1: says whose folder this is, and what each page is made of
      assets/NAME-DIGEST.js, .css   what pages share
      campaigns/ID/index.html       the page of a campaign; its address stays
      campaigns/ID/MARK/            its files: numbers of runs, downloads
      sweeps/ID/index.html          the page of a sweep, with its figures in it

Everything is written under a temporary name and renamed. Files exist before a page names them, and files
without references are deleted last: whenever the work is interrupted, each page finds its files.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from narrows import __version__, scratch
from narrows.campaign import journal, notes, own_metrics, sealing
from narrows.campaign.gathering import Gathered, gather
from narrows.campaign.json_files import read_rewritable, write_atomically
from narrows.documents.data import to_data
from narrows.documents.site import FORMAT, CampaignPage, MadePage, Site, SiteMade, SiteProblem, SweepPage
from narrows.documents.site import Page as SitePage
from narrows.errors import EXIT_FAILURE, DataError, NarrowsError, UsageError, reason
from narrows.files import read_bytes
from narrows.site import campaigns, pages, sweeps
from narrows.site.campaigns import Page
from narrows.site.page_workers import Failure, draw
from narrows.sweep.store import folders as sweep_folders
from narrows.text import distinct_names, shorten

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,90}")
#: Files whose change changes a page, in addition to its downloads.
_READ = ("campaign.json", journal.FILE, notes.FILE)


def make(
    places: Iterable[Path],
    target: Path,
    prune: bool,
    progress: Callable[[int, int, str], None] | None,
    processes: int = 1,
) -> SiteMade:
    """See `narrows.site.build`."""
    places = list(places)
    result = list({item.path.resolve(): item for item in gather(places)}.values())
    with _open(target) as site:
        known = site.campaigns
        assets = pages.write_assets(target)
        (target / "campaigns").mkdir(exist_ok=True)
        ids = _ids(result, known, target)
        problems = [
            SiteProblem(id=ids.get(item.path), folder=str(item.path), problem=item.note, busy=item.busy)
            for item in result
            if item.note
        ]
        fine = [item for item in result if item.note is None]
        made, drawn = _campaigns(fine, ids, known, target, assets, problems, progress, processes)
        seen = set(ids.values())
        kept = {
            name: entry for name, entry in known.items() if name not in made and (name in seen or not prune)
        }
        removed = [name for name in known if name not in made and name not in kept]
        listed = kept | made
        swept = _sweeps(places, site.sweeps or {}, target, assets, prune)
        problems += swept.problems
        write_atomically(target / "index.html", pages.index(listed, swept.listed, problems, assets))
        _save(target, listed, swept.listed)
        _tidy(target, {"campaigns": listed, "sweeps": swept.listed}, assets)
    return SiteMade(
        site=str(target),
        index=str(target / "index.html"),
        campaigns=[
            MadePage(
                id=name,
                folder=str(item.path),
                page=str(target / "campaigns" / name / "index.html"),
                drawn=name in drawn,
            )
            for item in fine
            if (name := ids[item.path]) in made
        ],
        sweeps=swept.made,
        kept=[name for name in kept if name not in seen],
        removed=removed,
        problems=problems,
    )


def _campaigns(
    gathered: Sequence[Gathered],
    ids: dict[Path, str],
    known: dict[str, CampaignPage],
    target: Path,
    assets: dict[str, str],
    problems: list[SiteProblem],
    progress: Callable[[int, int, str], None] | None,
    processes: int,
) -> tuple[dict[str, CampaignPage], set[str]]:
    """Draws the pages of changed campaigns; returns the entries of all by page name, and the names of the
    drawn ones. Unreadable campaigns are added to `problems`.
    """
    entries: dict[str, CampaignPage] = {}
    changed: list[Page] = []
    failed: list[tuple[Path, str]] = []
    folders = distinct_names([campaign.path.resolve() for campaign in gathered])
    for campaign, folder in zip(gathered, folders, strict=True):
        name = ids[campaign.path]
        home = target / "campaigns" / name
        try:
            mark = _mark(campaign.path, folder)
        except DataError as error:
            failed.append((campaign.path, str(error)))
            continue
        source = _source(campaign.path, target)
        if name in known and known[name].mark == mark and (home / "index.html").is_file():
            entries[name] = replace(known[name], source=source)
        else:
            changed.append(Page(campaign.path, folder, home, mark, assets, source))
    drawn: set[str] = set()
    unchanged = len(entries) + len(failed)
    for number, (page, entry) in enumerate(draw(changed, processes), unchanged + 1):
        if progress:
            progress(number, len(gathered), page.campaign.name)
        if isinstance(entry, Failure):
            if entry.exit_code == EXIT_FAILURE:
                # The campaign is not at fault: the site can't be written.
                raise NarrowsError(entry.message)
            failed.append((page.campaign, entry.message))
            continue
        name = ids[page.campaign]
        drawn.add(name)
        entries[name] = entry
    problems += [
        SiteProblem(id=ids[path], folder=str(path), problem=problem, busy=False) for path, problem in failed
    ]
    order = [ids[campaign.path] for campaign in gathered if ids[campaign.path] in entries]
    return {name: entries[name] for name in order}, drawn


@contextmanager
def _open(target: Path) -> Iterator[Site]:
    """The content of site.json, locked against other processes; a new one in an empty folder."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        lock = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NarrowsError(
            f"{target}: can't be written: {reason(error)}; choose another folder with -o"
        ) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NarrowsError(f"{target}: another narrows is writing this site; wait for it") from None
        file = target / "site.json"
        if not file.exists():
            if any(not name.name.startswith(".site.json.") for name in target.iterdir()):
                raise UsageError(f"{target}: is not empty and holds no site; choose another folder with -o")
            _save(target, {})
        site = read_rewritable(file, FORMAT, Site)
        for name in (*site.campaigns, *(site.sweeps or ())):
            if not _ID.fullmatch(name):
                raise DataError(f"{file}: is damaged: {shorten(name)!r} is not a name of a page")
        yield site
    finally:
        os.close(lock)


@dataclass
class _Sweeps:
    """Pages of sweeps: their entries in site.json, the work done, and problems."""

    listed: dict[str, SweepPage] = field(default_factory=dict)
    made: list[MadePage] = field(default_factory=list)
    problems: list[SiteProblem] = field(default_factory=list)


def _sweeps(
    places: list[Path], known: dict[str, SweepPage], target: Path, assets: dict[str, str], prune: bool
) -> _Sweeps:
    """Draws the pages of changed sweeps."""
    made = _Sweeps()
    homes = {entry.source: name for name, entry in known.items()}
    for path in sorted({folder.resolve() for folder in sweep_folders(places)}):
        source = _source(path, target)
        name = homes.get(source)
        try:
            mark = sweeps.mark(path)
            if name is None:
                plain = re.sub(r"[^a-z0-9]+", "-", f"{path.parent.name}-{path.name}".lower()).strip("-")[:60]
                told = hashlib.sha256(source.encode()).hexdigest()[:6]
                name = f"{plain}-{told}".lstrip("-")
            entry = known.get(name)
            home = target / "sweeps" / name
            drawn = entry is None or entry.mark != mark or not (home / "index.html").is_file()
            if entry is None or drawn:
                entry = sweeps.write(path, home, mark, assets, source)
        except NarrowsError as error:
            if error.exit_code == EXIT_FAILURE:
                raise
            made.problems.append(SiteProblem(id=name, folder=str(path), problem=str(error), busy=False))
            continue
        made.listed[name] = entry
        page = str(target / "sweeps" / name / "index.html")
        made.made.append(MadePage(id=name, folder=str(path), page=page, drawn=drawn))
    failed = {problem.id for problem in made.problems}
    left = {name: entry for name, entry in known.items() if name not in made.listed}
    made.listed |= {name: entry for name, entry in left.items() if name in failed or not prune}
    return made


def _save(target: Path, listed: dict[str, CampaignPage], swept: dict[str, SweepPage] | None = None) -> None:
    site = Site(made_by=f"Narrows {__version__}", campaigns=listed, sweeps=swept or UNSET)
    write_atomically(target / "site.json", sealing.seal(to_data(site), FORMAT))


def _mark(path: Path, shown: str) -> str:
    """A digest of all sources of a page; `shown` is the folder's name on the page."""
    own = json.dumps(to_data([own.description for own in own_metrics.list_registered()]))
    result = hashlib.sha256(f"{__version__} {pages.digest()} {shown} {own}".encode())
    try:
        for name in _READ:
            content = read_bytes(path / name) if (path / name).exists() else b""
            result.update(hashlib.sha256(content).digest())
        for name in campaigns.DOWNLOADS:
            state = (path / name).stat() if (path / name).exists() else None
            result.update(f"{name} {state and (state.st_size, state.st_mtime_ns)}".encode())
    except OSError as error:
        raise DataError(f"{path}: can't be read: {reason(error)}") from None
    return result.hexdigest()[:12]


def _source(path: Path, target: Path) -> str:
    return os.path.relpath(path.resolve(), target.resolve())


def _ids(gathereds: Sequence[Gathered], known: dict[str, CampaignPage], target: Path) -> dict[Path, str]:
    """The page name of each campaign. A campaign that the site already has keeps its name, even if its folder
    was moved.
    """
    sources = {entry.source: name for name, entry in known.items()}
    here = {_source(item.path, target) for item in gathereds}
    ids = {item.path: sources[own] for item in gathereds if (own := _source(item.path, target)) in sources}
    for item in gathereds:
        if item.path in ids or item.folder is None:
            continue
        origin, taken = campaigns.origin(item.folder), set(ids.values())
        moved = (
            name
            for name, entry in known.items()
            if entry.origin == origin and entry.source not in here and name not in taken
        )
        plain = re.sub(r"[^a-z0-9]+", "-", item.path.resolve().name.lower()).strip("-")[:60]
        base = f"{plain}-{origin[:6]}".lstrip("-")
        fresh = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
        free = (name for name in fresh if name not in known and name not in taken)
        ids[item.path] = next(moved, None) or next(free)
    return ids


def _tidy(target: Path, kinds: Mapping[str, Mapping[str, SitePage]], assets: dict[str, str]) -> None:
    """Removes files without references. Remaining pages of an older version keep its assets."""
    entries = [entry for listed in kinds.values() for entry in listed.values()]
    named = {*assets.values(), *(asset for entry in entries for asset in entry.assets)}
    for asset in (target / "assets").iterdir():
        if f"assets/{asset.name}" not in named:
            asset.unlink(missing_ok=True)
    scratch.remove_left(target)
    for kind, listed in kinds.items():
        _tidy_pages(target / kind, listed)


def _tidy_pages(folder: Path, listed: Mapping[str, SitePage]) -> None:
    for home in folder.iterdir() if folder.is_dir() else ():
        if home.name not in listed:
            shutil.rmtree(home, ignore_errors=True)
            continue
        for part in home.iterdir():
            if part.name not in ("index.html", listed[home.name].mark):
                shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
