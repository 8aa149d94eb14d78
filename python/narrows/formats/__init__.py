"""Files of other tools: campaigns of ours written for them, and what they measured as campaigns of ours.

A format is one module and one line here. An export (`narrows/formats/exports/NAME.py`) has
`export_campaign(folder, target, say, version)`; most use `narrows.formats.cells.export_cells` and only say
how one cell is written. An import (`narrows/formats/imports/NAME.py`) has `read(files, scheme)`, which
gives `narrows.formats.runs.MeasuredRun`s, and `PATTERNS`, the names of its files in folders."""

from __future__ import annotations

#: Exports, with what is written for whom.
EXPORTS = {
    "csv": "every table of every run as comma-separated values",
    "flent": "one .flent.gz per run, for flent's plots",
    "pantheon": "a data folder of Pantheon: merged logs, stats files, metadata",
    "pcapng": "captures of both ends of every run, for Wireshark and tshark",
    "qlog": "one qlog 0.4 (JSON-SEQ) per flow, for qvis and other tools of QUIC",
    "qlog-0.3": "the same as qlog 0.3, the newest version that some releases of qvis read",
}

#: Imports, with what is read.
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
