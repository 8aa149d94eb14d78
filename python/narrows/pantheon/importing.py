"""From a data folder of Pantheon to a campaign of ours, with everything that reads campaigns then at hand."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from narrows import __version__
from narrows.campaign import results as result_files
from narrows.campaign.store import CampaignFolder, new_document, new_entry, now
from narrows.errors import EXIT_OK, EXIT_SOME_INVALID, DataError, NarrowsError
from narrows.pantheon import PREFIX, WHERE
from narrows.pantheon.prose import PATHS, clocks, git_rows, question
from narrows.pantheon.source import ACK, DATA, Logs, Run, Source
from narrows.pantheon.target import filled
from narrows.scenario.hashes import content_hash
from narrows.scenario.slugs import free_slug, slug_of

_WITHOUT_ACK = "; --lenient reads the run without its acknowledgements"


@dataclass(frozen=True)
class Imported:
    """A campaign that was made out of logs."""

    folder: CampaignFolder
    results: dict[str, Any]

    @property
    def exit_code(self) -> int:
        """6 when a run is missing or does not count."""
        bad = [c for c in self.folder.cells if c["state"] != "finished" or c["verdict"] == "invalid"]
        return EXIT_SOME_INVALID if bad else EXIT_OK


def default_folder(source: Source) -> Path:
    """Where a campaign goes that was given no folder: under results/, like all others."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    base = Path("results") / f"{stamp}-{_name(source)}"
    return base.with_name(free_slug(base.name, [one.name for one in base.parent.glob(f"{base.name}*")]))


def import_folder(
    source: Source,
    target: Path,
    *,
    lenient: bool = False,
    raw: bool = False,
    argv: list[str] | None = None,
    say: Callable[[str], None] | None = None,
) -> Imported:
    """Reads all logs of a data folder into a new campaign; `raw` prefers the tunnel's own logs.

    The folder is filled when all is complete. A log with a flaw ends the import, unless it is `lenient`.
    """
    with filled(target, last="campaign.json") as partial:
        (partial / "cells").mkdir()
        document = _document(source, argv or [])
        _read_all(source, partial, document, lenient, raw, say)
        folder = CampaignFolder(partial, document)
        document["scenario"]["resolved"].update(_settings(folder))
        document["hash"] = content_hash(document["scenario"]["resolved"])
        folder.end_session("done")
        found = result_files.compute(folder)
        result_files.write(folder, found)
    return Imported(CampaignFolder(target, document), found)


def _name(source: Source) -> str:
    title = source.metadata.get("test-name") or source.path.resolve().name
    return slug_of(f"pantheon-{title}") or "pantheon"


def _document(source: Source, argv: list[str]) -> dict[str, Any]:
    """campaign.json; what the cells have in common is added when they are there."""
    resolved = {
        "name": _name(source),
        "question": question(source),
        "where": WHERE,
        "schemes": [{"label": PREFIX + scheme, "flows": []} for scheme in source.schemes],
        "expect": [],
    }
    taken: set[str] = set()
    scenario = {"file": str(source.path), "written": source.written, "overrides": [], "resolved": resolved}
    versions = {"narrows": __version__, "python": platform.python_version()}
    cells = [_entry(run, taken) for run in source.runs]
    session = {"argv": argv, "started_at": now(), "ended_at": None, "outcome": None}
    return new_document(_name(source), WHERE, scenario, versions, cells) | {"sessions": [session]}


def _entry(run: Run, taken: set[str]) -> dict[str, Any]:
    cell = free_slug(f"{slug_of(run.scheme) or 'scheme'}-r{run.number}", taken)
    taken.add(cell)
    times = {"started_at": run.stats.started_at, "ended_at": run.stats.ended_at}
    return new_entry(cell, PREFIX + run.scheme, run.number, attempts=1, **times)


def _read_all(
    source: Source,
    partial: Path,
    document: dict[str, Any],
    lenient: bool,
    raw: bool,
    say: Callable[[str], None] | None,
) -> None:
    folder = CampaignFolder(partial, document)

    def read(run: Run, entry: dict[str, Any]) -> str | None:
        return _read(source, run, entry["id"], folder.cell_dir(entry["id"]), lenient, raw)

    # The core reads without holding Python's lock, so threads use all cores.
    with ThreadPoolExecutor() as pool:
        outcomes = list(pool.map(read, source.runs, document["cells"]))
    if all(outcomes):
        raise DataError(f"{source.path}: none of its runs can be used: {outcomes[0]}")
    for entry, why in zip(document["cells"], outcomes, strict=True):
        if why is None:
            folder.finish(entry["id"])
        else:
            folder.fail(entry["id"], "import", why)
            if say:
                say(f"{entry['id']}: {why}")


def _read(source: Source, run: Run, cell: str, target: Path, lenient: bool, raw: bool) -> str | None:
    """Makes the record of one run; gives the reason why there is none."""
    from narrows import _native

    if not run.data:
        return f"there is no {run.scheme}_{DATA}_run{run.number}.log, so the run left nothing to measure"
    used: dict[str, dict[str, Any] | str | None] = {
        DATA: _logs(source, run, run.data, raw, to_receiver=True),
        ACK: _logs(source, run, run.ack, raw, to_receiver=False) if run.ack else None,
    }
    if isinstance(used[DATA], str):
        return str(used[DATA])
    reasons, clock = clocks(source, run)
    if isinstance(used[ACK], str):
        text = f"The acknowledgements are not in the record: {used[ACK]}."
        reasons.append({"code": "acklink", "severity": "note", "text": text})
        used[ACK] = None
    task = {
        "id": cell,
        "scheme": PREFIX + run.scheme,
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
    logs = {"lenient": lenient, "data": used[DATA], "ack": used[ACK]}
    try:
        _, void = _native.import_pantheon(json.dumps(task), json.dumps(logs), str(target))
    except ValueError as error:
        if lenient:
            return str(error)  # not even its first line can be read
        raise DataError(f"{error}{_remedy(str(error), used[ACK])}") from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
    return void


def _remedy(problem: str, ack: dict[str, Any] | str | None) -> str:
    """The remedy for a log: none if not even its first line can be read."""
    in_a_line = re.search(r":([0-9]+): ", problem)
    if in_a_line and int(in_a_line[1]) > 1:
        return "; --lenient reads up to there"
    return _WITHOUT_ACK if isinstance(ack, dict) and problem.startswith(tuple(_files(ack))) else ""


def _logs(source: Source, run: Run, logs: Logs, raw: bool, *, to_receiver: bool) -> dict[str, Any] | str:
    """The logs to read for one direction, or why there is nothing to read."""
    if logs.merged is not None and not (raw and logs.raw):
        return {"merged": str(logs.merged)}
    offsets = run.stats.offsets or {"local": 0, "remote": 0}
    sides = ("remote", "local") if source.sender_is_remote == to_receiver else ("local", "remote")
    pairs = []
    for flow, pair in sorted(logs.raw.items()):
        missing = next((side for side in ("egress", "ingress") if side not in pair), None)
        if missing:
            there = next(iter(pair.values()))
            return f"there is no {missing} log beside {there.name}"
        pairs.append(
            {
                "flow": flow,
                "egress": str(pair["egress"]),
                "ingress": str(pair["ingress"]),
                "sender_offset_ns": offsets[sides[0]],
                "receiver_offset_ns": offsets[sides[1]],
            }
        )
    return {"raw": pairs}


def _files(logs: dict[str, Any]) -> list[str]:
    """The files of one direction."""
    if "merged" in logs:
        return [logs["merged"]]
    return [pair[side] for pair in logs["raw"] for side in ("egress", "ingress")]


def _settings(folder: CampaignFolder) -> dict[str, Any]:
    """The settings that the cells have in common, from the first that is there, as resolved scenarios have
    it."""
    first = next(entry for entry in folder.cells if entry["state"] == "finished")
    cell = json.loads((folder.cell_dir(first["id"]) / "run.json").read_text(encoding="utf-8"))["cell"]
    return {"duration_ns": cell["duration_ns"], "network": cell["network"]}
