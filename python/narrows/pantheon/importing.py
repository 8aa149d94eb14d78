"""Imports a data folder of Pantheon as a campaign, which every command can then read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from narrows.campaign.imported import Imported, fill_campaign, new_import_document, new_import_entry
from narrows.campaign.imported import default_folder as folder_under_results
from narrows.campaign.store import CampaignFolder
from narrows.documents.campaign import CellEntry
from narrows.documents.data import Part, to_data
from narrows.errors import DataError, NarrowsError
from narrows.names import PANTHEON
from narrows.pantheon.prose import PATHS, clocks, git_rows, question
from narrows.pantheon.source import DATA, Logs, Run, Source
from narrows.scenario.slugs import slug_of

_WITHOUT_ACK = "; --lenient reads the run without its acknowledgements"


class _Pair(Part, frozen=True, kw_only=True):
    """The raw logs of a flow in one direction, and the offsets of the clocks of their ends."""

    flow: int
    egress: str
    ingress: str
    sender_offset_ns: int
    receiver_offset_ns: int


class _Files(Part, frozen=True, kw_only=True):
    """The logs of one direction: a merged one, or raw ones."""

    merged: str | None = None
    raw: list[_Pair] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        if self.merged is not None:
            return [self.merged]
        return [name for pair in self.raw or () for name in (pair.egress, pair.ingress)]


def default_folder(source: Source) -> Path:
    """The default folder of an imported campaign."""
    return folder_under_results(_name(source))


def import_folder(
    source: Source,
    target: Path,
    *,
    lenient: bool = False,
    raw: bool = False,
    argv: list[str] | None = None,
    say: Callable[[str], None] | None = None,
) -> Imported:
    """Reads all logs of a data folder into a new campaign; `raw` prefers the tunnel's raw logs.

    The folder appears when everything is complete. A damaged log ends the import, unless it is `lenient`.
    """
    document = _document(source, argv or [])
    return fill_campaign(target, document, lambda folder: _read_all(source, folder, lenient, raw, say))


def _name(source: Source) -> str:
    title = source.metadata.get("test-name") or source.path.resolve().name
    return slug_of(f"pantheon-{title}") or "pantheon"


def _document(source: Source, argv: list[str]) -> dict[str, object]:
    taken: set[str] = set()
    return new_import_document(
        _name(source),
        question(source),
        [PANTHEON + scheme for scheme in source.schemes],
        file=str(source.path),
        written=source.written,
        cells=[
            new_import_entry(
                PANTHEON + run.scheme, run.number, taken, run.stats.started_at, run.stats.ended_at
            )
            for run in source.runs
        ],
        argv=argv,
    )


def _read_all(
    source: Source,
    folder: CampaignFolder,
    lenient: bool,
    raw: bool,
    say: Callable[[str], None] | None,
) -> None:
    def read(run: Run, entry: CellEntry) -> str | None:
        return _read(source, run, entry.id, folder.cell_dir(entry.id), lenient, raw)

    # The core releases Python's lock while reading, so threads use all cores.
    with ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(read, source.runs, folder.cells))
    if all(outcomes):
        raise DataError(f"{source.path}: none of its runs can be used: {outcomes[0]}")
    for entry, why in zip(folder.cells, outcomes, strict=True):
        if why is None:
            folder.finish(entry.id)
        else:
            folder.fail(entry.id, "import", why)
            if say:
                say(f"{entry.id}: {why}")


def _read(source: Source, run: Run, cell: str, target: Path, lenient: bool, raw: bool) -> str | None:
    """Writes the record of one run; returns the reason if it cannot."""
    from narrows import _native

    if not run.data:
        return f"there is no {run.scheme}_{DATA}_run{run.number}.log, so the run left nothing to measure"
    data = _logs(source, run, run.data, raw, to_receiver=True)
    if isinstance(data, str):
        return data
    ack = _logs(source, run, run.ack, raw, to_receiver=False) if run.ack else None
    reasons, clock = clocks(source, run)
    if isinstance(ack, str):
        text = f"The acknowledgements are not in the record: {ack}."
        reasons.append({"code": "acklink", "severity": "note", "text": text})
        ack = None
    task = {
        "id": cell,
        "scheme": PANTHEON + run.scheme,
        "run": run.number,
        "flows": source.flows,
        "runtime_ns": source.runtime_ns,
        "paths": {
            direction: {key: source.metadata[key] for key in keys if source.metadata.get(key)}
            for direction, keys in PATHS.items()
        },
        "fingerprint": {"kind": "pantheon", "name": run.scheme, "git": git_rows(source).get("pantheon")},
        "started_at": run.stats.started_at,
        "ended_at": run.stats.ended_at,
        "clock": clock,
        "printed": run.stats.printed,
        "two_hosts": source.remote,
        "reasons": reasons,
        "source": {
            "git": git_rows(source),
            "offsets_ns": dict(run.stats.offsets_ns),
        },
    }
    logs = to_data({"lenient": lenient, "data": data, "ack": ack})
    try:
        _, void = _native.import_pantheon(json.dumps(task), json.dumps(logs), str(target))
    except ValueError as error:
        if lenient:
            return str(error)  # Not even its first line can be read.
        raise DataError(f"{error}{_remedy(str(error), ack)}") from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
    return void


def _remedy(problem: str, ack: _Files | None) -> str:
    """The remedy for a log: none if not even its first line can be read."""
    in_a_line = re.search(r":([0-9]+): ", problem)
    if in_a_line and int(in_a_line[1]) > 1:
        return "; --lenient reads up to there"
    return _WITHOUT_ACK if ack is not None and problem.startswith(tuple(ack.names)) else ""


def _logs(source: Source, run: Run, logs: Logs, raw: bool, *, to_receiver: bool) -> _Files | str:
    """The logs to read for one direction, or the reason why there are none."""
    if logs.merged is not None and not (raw and logs.raw):
        return _Files(merged=str(logs.merged))
    offsets = run.stats.offsets or {"local": 0, "remote": 0}
    sides = ("remote", "local") if source.sender_is_remote == to_receiver else ("local", "remote")
    pairs = []
    for flow, pair in sorted(logs.raw.items()):
        missing = next((side for side in ("egress", "ingress") if side not in pair), None)
        if missing:
            there = next(iter(pair.values()))
            return f"there is no {missing} log beside {there.name}"
        pairs.append(
            _Pair(
                flow=flow,
                **{side: str(path) for side, path in pair.items()},
                sender_offset_ns=offsets[sides[0]],
                receiver_offset_ns=offsets[sides[1]],
            )
        )
    return _Files(raw=pairs)
