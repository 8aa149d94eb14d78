"""What other tools measured, as a campaign of ours: records, results, and everything that reads them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from narrows import __version__
from narrows.campaign.imported import Imported, fill_campaign, imported_document, imported_entry
from narrows.campaign.store import CampaignFolder
from narrows.errors import DataError
from narrows.formats.cells import said, working
from narrows.formats.runs import MOST_BINS, MeasuredRun, bins_of
from narrows.imported import WHERE
from narrows.scenario.slugs import slug_of

#: What cells say about one end.
_ONE_END = (
    "Only one end of the flows was measured: throughput is what was acknowledged there, and losses and"
    " one-way delays are not known."
)


def files_of(given: list[Path], patterns: tuple[str, ...], tool: str) -> list[Path]:
    """The files to read: those that were named, and in folders all with a name of the format."""
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            own = {one for pattern in patterns for one in path.rglob(pattern) if one.is_file()}
            if not own:
                raise DataError(f"{path}: has no files called {' or '.join(patterns)}; name them one by one")
            found += sorted(own)
        elif not path.exists():
            raise DataError(f"{path}: there is no such file")
        else:
            found.append(path)
    if not found:
        raise DataError(f"no files of {tool} were named")
    return list(dict.fromkeys(found))


def name_of(tool: str, files: list[Path]) -> str:
    """The name of a campaign that is made of these files."""
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
) -> Imported:
    """Makes a campaign of the runs in the folder `target`, which must be new or empty."""
    if not runs:
        raise DataError("the files hold no run that could be imported")
    schemes = [f"{tool}:{run.scheme}" for run in runs]
    count: Counter[str] = Counter()
    taken: set[str] = set()
    entries = []
    for run, scheme in zip(runs, schemes, strict=True):
        count[scheme] += 1
        entries.append(imported_entry(scheme, count[scheme], taken, run.started_at))
    files = sorted({str(file) for run in runs for file in run.files})
    document = imported_document(
        name,
        f"What did {tool} measure? (imported)",
        list(dict.fromkeys(schemes)),
        file=files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more",
        written="",
        cells=entries,
        argv=argv,
    )

    def read_all(folder: CampaignFolder) -> None:
        with working("writing", len(runs)) as advance:
            for run, entry in zip(runs, folder.cells, strict=True):
                _write(tool, run, entry, folder.cell_dir(entry["id"]))
                folder.finish(entry["id"])
                advance()
        if say and len(runs) > 1:
            for run, entry in zip(runs, folder.cells, strict=True):
                say(f"{entry['id']}: {', '.join(file.name for file in run.files)}")

    return fill_campaign(target, document, read_all)


def _write(tool: str, run: MeasuredRun, entry: dict[str, Any], target: Path) -> None:
    """Writes the record of one run."""
    from narrows import _native

    both = run.data is not None
    if run.data is None:
        last = max(int(one.time_ns[-1]) for one in run.progress)
        run.bin_ns = max(run.bin_ns, -(-last // MOST_BINS))
    document = _document(tool, run, entry, both)
    with said():
        if run.data is not None:
            _native.import_packets(json.dumps(document), target, run.data, run.back, run.states)
        else:
            _native.import_bins(json.dumps(document), target, bins_of(run.progress, run.bin_ns), run.states)


def _document(tool: str, run: MeasuredRun, entry: dict[str, Any], both: bool) -> dict[str, Any]:
    """run.json but for what follows from the packets or bins."""
    flows = [
        {
            "flow": flow.number,
            "scheme": f"{tool}:{flow.scheme}",
            "direction": "forward",
            "traffic": {"kind": "bulk"},
            **({"label": flow.label} if flow.label else {}),
        }
        for flow in run.flows
    ]
    paths = {direction: [{"name": f"{direction}.0", "kind": "path"}] for direction in ("forward", "backward")}
    reasons = list(run.reasons)
    if not both:
        reasons.insert(0, {"code": "one_end", "severity": "note", "text": _ONE_END})
    return {
        "format": "narrows/run/1",
        "cell": {
            "format": "narrows/cell/1",
            "id": entry["id"],
            "scheme": entry["scheme"],
            "run": entry["run"],
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
            **run.facts,
        },
    }


def _verdict(reasons: list[dict[str, str]]) -> str:
    worst = {reason["severity"] for reason in reasons}
    return "invalid" if "invalid" in worst else "degraded" if "degraded" in worst else "ok"
