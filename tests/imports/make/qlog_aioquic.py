#!/usr/bin/env python3
"""Qlogs of both ends of a connection of aioquic: `qlog_aioquic.py FOLDER`, in a venv with aioquic 1.x.

Both ends run in one event loop: the client fetches BYTES over loopback, and each end writes its trace as
aioquic's `QuicFileLogger` does (JSON, 0.3)."""

from __future__ import annotations

import asyncio
import datetime
import ssl
import sys
from pathlib import Path

import aioquic
from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicFileLogger
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BYTES = 400_000
PORT = 44_330


class Server(QuicConnectionProtocol):
    """Answers a request with BYTES."""

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(BYTES), end_stream=True)
            self.transmit()


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(form))
    plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(form, *plain))
    return folder / "cert.pem", folder / "key.pem"


async def _main(folder: Path) -> None:
    ends = {}
    for end in ("client", "server"):
        (folder / end).mkdir(parents=True, exist_ok=True)
        ends[end] = QuicConfiguration(
            is_client=end == "client", alpn_protocols=["x"], quic_logger=QuicFileLogger(str(folder / end))
        )
    ends["server"].load_cert_chain(*_certificate(folder))
    ends["client"].verify_mode = ssl.CERT_NONE
    server = await serve("127.0.0.1", PORT, configuration=ends["server"], create_protocol=Server)
    async with connect("127.0.0.1", PORT, configuration=ends["client"]) as client:
        reader, writer = await client.create_stream()
        writer.write(b"GET /\r\n")
        writer.write_eof()
        assert len(await reader.read()) == BYTES
    await asyncio.sleep(0.5)
    server.close()


if __name__ == "__main__":
    print("aioquic", aioquic.__version__)
    asyncio.run(_main(Path(sys.argv[1])))
