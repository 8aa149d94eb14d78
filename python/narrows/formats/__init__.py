"""Files of other tools: exports of campaigns, and imports of their measurements as campaigns.

A format is one module and one line here. An export (`narrows/formats/exports/NAME.py`) has
`export_campaign(folder, target, say, version)`; most use `narrows.formats.cells.export_cells` and only define
how to write one cell. An import (`narrows/formats/imports/NAME.py`) has `read(files, scheme)`, which returns
`narrows.formats.runs.MeasuredRun`s, and `PATTERNS`, the names of its files in folders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from narrows.formats.cells import ExportedCell
    from narrows.formats.importing import ImportedRuns
    from narrows.formats.imports._choice import Choice


#: Exports, each with its output and audience.
EXPORTS = {
    "csv": "every table of every run as comma-separated values",
    "flent": "one .flent.gz per run, for flent's plots",
    "pantheon": "a data folder of Pantheon: merged logs, stats files, metadata",
    "pcapng": "captures of both ends of every run, for Wireshark and tshark",
    "qlog": "one qlog 0.4 (JSON-SEQ) per flow, for qvis and other tools of QUIC",
    "qlog-0.3": "the same as qlog 0.3, the newest version that some releases of qvis read",
}

#: Imports, each with its input.
IMPORTS = {
    "qlog": "qlog files of any QUIC stack",
    "ss": "logs of repeated 'ss -tin'",
    "iperf3": "JSON documents of iperf3 (-J)",
    "pcapng": "captures (pcapng or pcap) of one or both ends",
    "mahimahi": "logs of mahimahi's mm-link",
}

#: An example for each import.
EXAMPLES = {
    "qlog": "narrows import qlog client.sqlog -o from-quic",
    "ss": "narrows import ss ss.log -o from-ss",
    "iperf3": "narrows import iperf3 cubic-1.json cubic-2.json bbr-1.json -o from-iperf3",
    "pcapng": "narrows import pcapng run-sender.pcapng run-receiver.pcapng -o from-captures",
    "mahimahi": "narrows import mahimahi uplink.log downlink.log -o from-mahimahi",
}


def module_name(kind: str, name: str) -> str:
    """The module of a format; `kind` is `exports` or `imports`."""
    return f"narrows.formats.{kind}.{name.partition('-')[0]}"


def export(
    folder: Path, form: str, target: Path, say: Callable[[str], None] | None = None
) -> list[ExportedCell]:
    """Writes the campaign in `folder` for other tools, as one of `EXPORTS`, into the new or empty folder
    `target`; returns facts about each cell that was written, including its `files`.

    Raises `UsageError` for an unknown format, `DataError` if a record is damaged or has no packets.
    """
    import importlib

    from narrows.campaign.store import CampaignFolder
    from narrows.errors import UsageError

    if form not in EXPORTS:
        raise UsageError(f'unknown format "{form}"; known: {", ".join(EXPORTS)}')
    module = importlib.import_module(module_name("exports", form))
    cells: list[ExportedCell] = module.export_campaign(
        CampaignFolder.read(folder), target, say or _silent, form.partition("-")[2]
    )
    return cells


def import_files(
    tool: str,
    files: list[Path],
    target: Path | None = None,
    *,
    scheme: str | None = None,
    choice: Choice | None = None,
    argv: list[str] | None = None,
    say: Callable[[str], None] | None = None,
) -> ImportedRuns:
    """Makes a campaign from measurements in one of the formats `IMPORTS`. `files` may be folders; `scheme`
    overrides the names in the files; `choice` selects connections of captures; without `target` the campaign
    goes under results/.

    Raises `DataError` if a file is damaged or of another kind.
    """
    import importlib

    from narrows.campaign.imported import default_folder
    from narrows.errors import UsageError
    from narrows.formats.importing import files_of, import_runs, name_of
    from narrows.progress import progress

    if tool not in IMPORTS:
        raise UsageError(f'unknown format "{tool}"; known: {", ".join(IMPORTS)}')
    module = importlib.import_module(module_name("imports", tool))
    paths = files_of(files, module.PATTERNS, tool)
    name = name_of(tool, paths)
    with progress("reading"):
        runs = module.read(paths, scheme) if choice is None else module.read(paths, scheme, choice)
    return import_runs(tool, runs, target or default_folder(name), name=name, argv=argv or [], say=say)


def _silent(_text: str) -> None:
    """Says nothing."""
