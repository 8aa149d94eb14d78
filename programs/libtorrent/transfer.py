"""A seed and a peer that downloads from it, over uTP only, with libtorrent.

`receive PORT FOLDER` downloads a torrent that both sides know, and `send ADDRESS PORT FOLDER` seeds it to
that peer, until SIGTERM. The torrent is 16 GiB of zeros: the seed has them as a sparse file, and the received
data is kept in FOLDER until the end. Trackers, the DHT, local discovery, port mapping and TCP are off;
everything else has the library's defaults. Every 100 ms the seed writes the library's statistics of its uTP
sockets to FOLDER/report.ndjson.
"""

import contextlib
import hashlib
import json
import shutil
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TextIO

import libtorrent as lt

USAGE = "usage: transfer.py --version | receive PORT FOLDER | send ADDRESS PORT FOLDER"
PIECE_BYTES = 1 << 20
PIECES = 16_384
NAME = "zeros"
REPORT_INTERVAL_S = 0.1


class Stopped(Exception):  # noqa: N818 - it is not an error of anybody
    """A stop was requested."""


def stop(_signal: int, _frame: FrameType | None) -> None:
    """Ends the wait of the main thread."""
    raise Stopped


def session(port: int) -> lt.session:
    """A session that uses only uTP and only the given peers."""
    return lt.session(
        {
            "listen_interfaces": f"0.0.0.0:{port}",
            "enable_incoming_tcp": False,
            "enable_outgoing_tcp": False,
            "enable_dht": False,
            "enable_lsd": False,
            "enable_upnp": False,
            "enable_natpmp": False,
            "alert_mask": lt.alert.category_t.stats_notification,
        }
    )


def add(where: lt.session, folder: Path, flags: int) -> lt.torrent_handle:
    """Adds the torrent that both sides know."""
    piece = hashlib.sha1(bytes(PIECE_BYTES)).digest()
    info = {
        b"length": PIECE_BYTES * PIECES,
        b"name": NAME.encode(),
        b"piece length": PIECE_BYTES,
        b"pieces": piece * PIECES,
    }
    params = lt.add_torrent_params()
    params.ti = lt.torrent_info({b"info": info})
    params.save_path = str(folder)
    params.flags = (params.flags | flags) & ~lt.torrent_flags.auto_managed & ~lt.torrent_flags.paused
    return where.add_torrent(params)


def receive(port: int, folder: Path) -> None:
    """Downloads from any peer that connects."""
    kept = folder / "received"
    kept.mkdir()
    try:
        ours = session(port)
        add(ours, kept, 0)
        while True:
            signal.pause()
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def send(address: str, port: int, folder: Path) -> None:
    """Seeds to one peer."""
    kept = folder / "sent"
    kept.mkdir()
    try:
        with (kept / NAME).open("wb") as file:
            file.truncate(PIECE_BYTES * PIECES)
        ours = session(0)
        seed = add(ours, kept, lt.torrent_flags.seed_mode)
        seed.connect_peer((address, port))
        with (folder / "report.ndjson").open("w") as lines:
            report(ours, seed, lines)
    finally:
        shutil.rmtree(kept, ignore_errors=True)


def report(ours: lt.session, seed: lt.torrent_handle, lines: TextIO) -> None:
    """Writes the library's statistics of its sockets, line by line."""
    started = time.monotonic()
    while True:
        ours.post_session_stats()
        ours.wait_for_alert(1000)
        for alert in ours.pop_alerts():
            # The first alert of this kind lists the names of the values.
            if isinstance(alert, lt.session_stats_alert):
                line = {
                    "time_s": round(time.monotonic() - started, 3),
                    "sent_bytes": seed.status().total_payload_upload,
                    "sent_packets": alert.values["utp.utp_packets_out"],
                    "lost_packets": alert.values["utp.utp_packet_loss"],
                }
                lines.write(json.dumps(line) + "\n")
        time.sleep(REPORT_INTERVAL_S)


def main(words: list[str]) -> None:
    """Executes the command line."""
    signal.signal(signal.SIGTERM, stop)
    match words:
        case ["--version"]:
            print(f"libtorrent {lt.__version__}, Python {sys.version.split()[0]}")
        case ["receive", port, folder]:
            receive(int(port), Path(folder))
        case ["send", address, port, folder]:
            send(address, int(port), Path(folder))
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    with contextlib.suppress(Stopped):
        main(sys.argv[1:])
