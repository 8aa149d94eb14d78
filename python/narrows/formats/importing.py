"""Measurements of other tools as campaigns: records and results for all commands."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from narrows import __version__
from narrows.campaign.imported import Imported, fill_campaign, new_import_document, new_import_entry
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import CellEntry
from narrows.errors import DataError
from narrows.files import COMPRESSED_ENDINGS
from narrows.formats.cells import raise_as_data_errors
from narrows.formats.runs import MOST_BINS, MeasuredRun, Unread, bins_of, note
from narrows.imported import WHERE
from narrows.progress import progress
from narrows.scenario.slugs import slug_of


@dataclass(frozen=True)
class ImportedRuns(Imported):
    """A campaign of another tool's runs, with the parts of its files that were not read, summed over all
    runs.
    """

    unread: tuple[Unread, ...] = ()


def sum_unread(parts: Iterable[Unread]) -> list[Unread]:
    """Sums the parts of equal kind, in the order in which the kinds first appear; a kind that matters in one
    part matters in the sum.
    """
    sums: dict[str, Unread] = {}
    for part in parts:
        before = sums.get(part.kind, Unread(part.kind, 0))
        sums[part.kind] = Unread(part.kind, before.count + part.count, before.matters or part.matters)
    return [part for part in sums.values() if part.count > 0]


def describe_unread(parts: Iterable[Unread]) -> list[str]:
    """Sentences about parts that were not read, the important ones first; none if everything was read."""
    parts = sum_unread(parts)
    matter = [part for part in parts if part.matters]
    rest = [part for part in parts if not part.matters]
    sentences = []
    if matter:
        sentences.append(f"The numbers rest on a part of what was logged; not read: {_list_files(matter)}.")
    if rest:
        sentences.append(f"Not read, without effect on the numbers: {_list_files(rest)}.")
    return sentences


def _list_files(parts: list[Unread]) -> str:
    return ", ".join(f"{part.kind} ({part.count})" for part in parts)


def _unread_reasons(run: MeasuredRun) -> list[dict[str, str]]:
    """Reasons of a run for unread parts: degraded if its numbers rest on the rest of the file for lack of
    them.
    """
    return [
        note("partly_read" if matters else "unread", sentence, "degraded" if matters else "note")
        for matters in (True, False)
        for sentence in describe_unread(part for part in run.unread if part.matters == matters)
    ]


def files_of(given: list[Path], patterns: tuple[str, ...], tool: str) -> list[Path]:
    """The files to read: the named ones, and in folders all with a name of the format."""
    paths: list[Path] = []
    for path in given:
        if path.is_dir():
            names = [f"{pattern}{ending}" for pattern in patterns for ending in ("", *COMPRESSED_ENDINGS)]
            own = {place for name in names for place in path.rglob(name) if place.is_file()}
            if not own:
                raise DataError(f"{path}: has no files called {' or '.join(patterns)}; name them one by one")
            paths += sorted(own)
        elif not path.exists():
            raise DataError(f"{path}: does not exist")
        else:
            paths.append(path)
    if not paths:
        raise DataError(f"no files of {tool} were named")
    return list(dict.fromkeys(paths))


def name_of(tool: str, files: list[Path]) -> str:
    """The name of a campaign made from these files."""
    first = files[0]
    title = first.resolve().parent.name if len(files) > 1 else first.name.partition(".")[0]
    return slug_of(f"{tool}-{title}") or tool


def import_runs(
    tool: str,
    runs: list[MeasuredRun],
    target: Path,
    *,
    name: str,
    argv: list[str],
    say: Callable[[str], None] | None = None,
) -> ImportedRuns:
    """Makes a campaign of the runs in the folder `target`, which must be new or empty. `say` receives its
    files and their unread parts.
    """
    if not runs:
        raise DataError("the files hold no run that could be imported")
    schemes = [f"{tool}:{run.scheme}" for run in runs]
    count: Counter[str] = Counter()
    taken: set[str] = set()
    entries = []
    for run, scheme in zip(runs, schemes, strict=True):
        count[scheme] += 1
        entries.append(new_import_entry(scheme, count[scheme], taken, run.started_at))
    files = sorted({str(file) for run in runs for file in run.files})
    document = new_import_document(
        name,
        f"What did {tool} measure? (imported)",
        list(dict.fromkeys(schemes)),
        file=files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more",
        written="",
        cells=entries,
        argv=argv,
    )

    def read_all(folder: CampaignFolder) -> None:
        with progress("writing", len(runs)) as bar:
            for run, entry in zip(runs, folder.cells, strict=True):
                _write(tool, run, entry, folder.cell_dir(entry.id))
                folder.finish(entry.id)
                bar.advance()
        if say and len(runs) > 1:
            for run, entry in zip(runs, folder.cells, strict=True):
                say(f"{entry.id}: {', '.join(file.name for file in run.files)}")

    done = fill_campaign(target, document, read_all)
    unread = tuple(sum_unread(part for run in runs for part in run.unread))
    if say:
        for sentence in describe_unread(unread):
            say(sentence)
    return ImportedRuns(done.folder, done.results, unread)


def _write(tool: str, run: MeasuredRun, entry: CellEntry, target: Path) -> None:
    """Writes the record of one run."""
    from narrows import _native

    both = run.data is not None
    if run.data is None:
        last = max(int(progress.time_ns[-1]) for progress in run.progress)
        run.bin_ns = max(run.bin_ns, -(-last // MOST_BINS))
    document = _document(tool, run, entry, both)
    with raise_as_data_errors():
        if run.data is not None:
            _native.import_packets(json.dumps(document), target, run.data, run.back, run.states)
        else:
            _native.import_bins(json.dumps(document), target, bins_of(run.progress, run.bin_ns), run.states)


def _document(tool: str, run: MeasuredRun, entry: CellEntry, both: bool) -> dict[str, object]:
    """run.json without the members that follow from the packets or bins."""
    starts = {each.flow: int(each.time_ns[0]) for each in run.progress if len(each.time_ns)}
    flows = [
        {
            "flow": flow.number,
            "scheme": f"{tool}:{flow.scheme}",
            "direction": flow.direction,
            "traffic": {"kind": "bulk"},
            **({"label": flow.label} if flow.label else {}),
            **({"start_ns": starts[flow.number]} if flow.number in starts else {}),
        }
        for flow in run.flows
    ]
    paths: dict[str, list[dict[str, object]]] = {
        direction: [{"name": f"{direction}.0", "kind": "path"}] for direction in ("forward", "backward")
    }
    for direction, delay in run.propagation_ns.items():
        paths[direction][0]["propagation_ns"] = delay
    reasons = [*run.reasons, *_unread_reasons(run)]
    unread = sum_unread(run.unread)
    if not both:
        reasons.insert(0, {"code": "one_end", "severity": "note", "text": run.limits})
    return {
        "format": "narrows/run/1",
        "cell": {
            "format": "narrows/cell/1",
            "id": entry.id,
            "scheme": entry.scheme,
            "run": entry.run,
            "where": WHERE,
            "bin_ns": run.bin_ns,
            "record": "packets" if both else "bins",
            "network": {"kind": "dumbbell", **paths},
            "timeline": [],
            "flows": flows,
        },
        "plane": WHERE,
        "versions": {"narrows": __version__, "git": None},
        "host": None,
        "started_at": run.started_at,
        "ended_at": None,
        "flows": [
            {
                "flow": flow.number,
                "scheme": f"{tool}:{flow.scheme}",
                "fingerprint": {"kind": tool, "name": flow.scheme},
                "sender": flow.sender,
                "receiver": flow.receiver,
                **({"facts": flow.facts} if flow.facts else {}),
            }
            for flow in run.flows
        ],
        "lateness": None,
        "cpu": None,
        "verdict": _verdict(reasons),
        "reasons": reasons,
        "import": {
            "tool": tool,
            "files": [file.name for file in run.files],
            "ends": "both" if both else "one",
            **({"unread": [asdict(part) for part in unread]} if unread else {}),
            **run.facts,
        },
    }


def _verdict(reasons: list[dict[str, str]]) -> str:
    worst = {reason["severity"] for reason in reasons}
    return "invalid" if "invalid" in worst else "degraded" if "degraded" in worst else "ok"
