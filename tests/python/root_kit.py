"""Root file systems that tests make themselves: a program built against musl, and OCI archives by hand."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

#: The source of the probe.
PROBE = Path(__file__).with_name("root_probe.c")


def musl_root(folder: Path) -> Path:
    """A root with musl and the program `probe`, which is linked to it; skips the test without musl-gcc."""
    compiler = shutil.which("musl-gcc")
    if compiler is None:
        pytest.skip("musl-gcc is not installed (musl-tools)")
    loader = Path(f"/lib/ld-musl-{platform.machine()}.so.1")
    (folder / "usr" / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "etc").mkdir()
    (folder / "etc" / "os-release").write_text("ID=probe\n")
    (folder / "bin").symlink_to("usr/bin")
    shutil.copy(loader.resolve(), folder / "lib" / loader.name)
    place = folder / "usr" / "bin" / "probe"
    subprocess.run([compiler, "-O1", "-w", "-D_GNU_SOURCE", "-o", str(place), str(PROBE)], check=True)
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.name.startswith(("probe", "ld-")) else 0o644)
    return folder


Member = tuple[str, str, bytes | str]


def layer(*entries: Member) -> bytes:
    """A tar stream of (name, kind, content): kinds are file, program, folder, link (symbolic), name (hard),
    block and pipe.
    """
    kinds = {"folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "name": tarfile.LNKTYPE,
             "block": tarfile.BLKTYPE, "pipe": tarfile.FIFOTYPE}  # fmt: skip
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type = kinds.get(kind, tarfile.REGTYPE)
            member.mode = 0o755 if kind in ("program", "folder") else 0o600
            if isinstance(content, str):
                member.linkname = content
                tar.addfile(member)
            else:
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def layer_of(folder: Path) -> bytes:
    """A layer with all that is in a folder, by Python's own writer."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(folder, arcname=".")
    return stream.getvalue()


def zstd(content: bytes) -> bytes:
    import pyarrow

    with pyarrow.BufferOutputStream() as sink:
        with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(content)
        result: bytes = sink.getvalue().to_pybytes()
    return result


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def here() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


class Image:
    """An OCI archive by hand; its parts can be changed before it is written."""

    def __init__(self, *layers: bytes, packed: Any = gzip.compress) -> None:
        self.config: dict[str, Any] = {
            "architecture": here(), "os": "linux", "config": {"Env": ["IMAGE=yes", "PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        }  # fmt: skip
        self.layers = [packed(layer) for layer in layers]
        self.blobs: dict[str, bytes] = {}
        self.index: list[dict[str, Any]] | None = None

    def add(self, content: bytes, **more: Any) -> dict[str, Any]:
        self.blobs[digest(content)] = content
        return {"mediaType": "x", "digest": digest(content), "size": len(content), **more}

    def manifest(self) -> dict[str, Any]:
        config = self.add(json.dumps(self.config).encode())
        layers = [self.add(content) for content in self.layers]
        text = json.dumps({"schemaVersion": 2, "config": config, "layers": layers})
        return self.add(text.encode(), mediaType="application/vnd.oci.image.manifest.v1+json")

    def write(self, path: Path) -> str:
        """Writes it, and returns the digest of its manifest."""
        manifest = self.manifest()
        index = json.dumps({"schemaVersion": 2, "manifests": self.index or [manifest]}).encode()
        members: list[Member] = [("oci-layout", "file", b'{"imageLayoutVersion":"1.0.0"}')]
        members += [("index.json", "file", index)]
        members += [(f"blobs/{name.replace(':', '/')}", "file", blob) for name, blob in self.blobs.items()]
        path.write_bytes(layer(*members))
        result: str = manifest["digest"]
        return result
