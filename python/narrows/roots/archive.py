"""Images in OCI archives (`podman save --format oci-archive`, `skopeo copy ... oci-archive:FILE`), unpacked
once into the cache folder under the digest of their manifest (OCI image specification 1.1).
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
from msgspec import field

from narrows.errors import DataError, reason
from narrows.files import cache_folder, open_regular, read_bytes
from narrows.roots import layers
from narrows.roots.binary import IMAGES, this_machine
from narrows.roots.digest import digest_of
from narrows.roots.inside import make_folder
from narrows.text import shorten

_INDEX = "application/vnd.oci.image.index.v1+json"
_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: Documents of an image are small.
_MOST_DOCUMENT = 4_000_000
_MOST_MEMBERS = 10_000
_MOST_NESTED = 4
_BLOCK = 1 << 20
_ABOUT = "unpacked.json"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Platform(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = ""


class _Descriptor(msgspec.Struct, frozen=True):
    digest: str
    media_type: str = field(name="mediaType", default="")
    platform: _Platform | None = None


class _Index(msgspec.Struct, frozen=True):
    manifests: list[_Descriptor]


class _Manifest(msgspec.Struct, frozen=True):
    config: _Descriptor
    layers: list[_Descriptor]


class _Settings(msgspec.Struct, frozen=True):
    env: list[str] | None = field(name="Env", default=None)


class _Layers(msgspec.Struct, frozen=True):
    diff_ids: list[str]


class _Config(msgspec.Struct, frozen=True):
    architecture: str
    os: str
    rootfs: _Layers
    config: _Settings | None = None


class _About(msgspec.Struct, frozen=True):
    """The unpacked content: written last, so that a folder without it is not complete."""

    image: str
    tree: str


@dataclass(frozen=True)
class Unpacked:
    """An unpacked image."""

    folder: Path
    #: `sha256:` and the digest of its manifest.
    digest: str
    #: Variables that it sets for its programs.
    env: dict[str, str]


_Document = TypeVar("_Document")


class _Archive:
    """An open archive."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._members: dict[str, tarfile.TarInfo] = {}
        for count, member in enumerate(layers.members(tar)):
            if count > _MOST_MEMBERS:
                raise DataError(f"has more than {_MOST_MEMBERS} members, so it is not an OCI archive")
            if member.isreg() and not member.issparse():
                self._members[member.name.removeprefix("./")] = member

    def open(self, name: str) -> IO[bytes]:
        """A member."""
        member = self._members.get(name)
        stream = None if member is None else self._tar.extractfile(member)
        if stream is None:
            raise DataError(f"is damaged: it has no {shorten(name, 90)}")
        return stream

    def index(self) -> _Index:
        if "index.json" not in self._members:
            old = "manifest.json" in self._members
            how = "; it is one of docker, so save it again with --format oci-archive" if old else ""
            raise DataError(f"is not an OCI archive: it has no index.json{how}")
        return _decode(self.open("index.json").read(_MOST_DOCUMENT + 1), _Index, "index.json")

    def document(self, descriptor: _Descriptor, kind: type[_Document], what: str) -> _Document:
        content = self.open(_place(descriptor)).read(_MOST_DOCUMENT + 1)
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != descriptor.digest:
            raise DataError(f"is damaged: its {what} is not that of its digest")
        return _decode(content, kind, what)

    def image(self) -> _Descriptor:
        """The only image, or the only one for this machine."""
        known = self.index().manifests
        for _ in range(_MOST_NESTED):
            if len(known) > 1:
                known = [item for item in known if _is_ours(item)]
            if len(known) != 1:
                raise DataError(f"has no single image for {_here()}; save one image alone")
            if known[0].media_type not in (_INDEX, _LIST):
                return known[0]
            known = self.document(known[0], _Index, "index").manifests
        raise DataError("is damaged: its index leads nowhere")


def _is_ours(descriptor: _Descriptor) -> bool:
    of = descriptor.platform
    return of is not None and (of.os, of.architecture) == ("linux", _here())


def _here() -> str:
    machine = this_machine()
    return IMAGES.get(machine, machine)


def _place(descriptor: _Descriptor) -> str:
    if not _DIGEST.fullmatch(descriptor.digest):
        raise DataError(f'is damaged: "{shorten(descriptor.digest)}" is not a digest of SHA-256')
    return f"blobs/sha256/{descriptor.digest.removeprefix('sha256:')}"


def _decode(content: bytes, kind: type[_Document], what: str) -> _Document:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"is damaged: its {what} can't be read ({shorten(str(error))})") from None


def unpack(path: Path) -> Unpacked:
    """The image of an archive, unpacked now or earlier. Raises `DataError`, without its path."""
    try:
        with open_regular(path) as stream, _open_archive(stream) as archive:
            found = archive.image()
            manifest = archive.document(found, _Manifest, "manifest")
            config = archive.document(manifest.config, _Config, "configuration")
            if (config.os, config.architecture) != ("linux", _here()):
                image = f"{config.os} on {config.architecture}"
                raise DataError(f"is an image for {shorten(image)}, and this machine is linux on {_here()}")
            if len(manifest.layers) != len(config.rootfs.diff_ids):
                raise DataError("is damaged: its manifest and its configuration have other layers")
            place = cache_folder() / "roots" / "images" / found.digest.removeprefix("sha256:")
            if not (place / _ABOUT).is_file():
                _unpack(archive, manifest, config, place, found.digest)
    except layers.DAMAGED as error:
        raise DataError(f"is damaged: {shorten(str(error))}") from None
    except OSError as error:
        raise DataError(f"can't be unpacked: {reason(error)}") from None
    root = place / "root"
    about = _decode(read_bytes(place / _ABOUT), _About, _ABOUT)
    if about.image != found.digest or about.tree != digest_of(root):
        raise DataError(f"was unpacked to {place}, where something has changed since; remove that folder")
    return Unpacked(root, found.digest, _variables(config))


def _variables(config: _Config) -> dict[str, str]:
    written = (config.config and config.config.env) or []
    pairs = (text.partition("=") for text in written if "\0" not in text)
    return {name: value for name, _, value in pairs if _VARIABLE.fullmatch(name)}


@contextmanager
def _open_archive(stream: IO[bytes]) -> Iterator[_Archive]:
    try:
        tar = layers.open_tar(stream)
    except tarfile.ReadError:
        raise DataError("is not an OCI archive: it is not a tar file without compression") from None
    with tar:
        yield _Archive(tar)


def _unpack(archive: _Archive, manifest: _Manifest, config: _Config, place: Path, digest: str) -> None:
    """Unpacks all layers next to `place`, and moves the result there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=place.parent))
    try:
        draft.chmod(0o755)
        root = draft / "root"
        make_folder(root)
        budget = layers.Budget()
        for number, (layer, whole) in enumerate(zip(manifest.layers, config.rootfs.diff_ids, strict=True), 1):
            try:
                with tempfile.TemporaryFile(dir=draft) as plain:
                    _decompress(archive, layer, plain, whole, budget)
                    layers.apply(plain, root, budget)
            except DataError as error:
                raise DataError(f"can't be unpacked: layer {number} {error}") from None
        about = _About(digest, digest_of(root))
        (draft / _ABOUT).write_bytes(msgspec.json.encode(about))
        # Another process may have been faster.
        with suppress(OSError):
            draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _decompress(
    archive: _Archive, layer: _Descriptor, plain: IO[bytes], whole: str, budget: layers.Budget
) -> None:
    """Writes a layer without its compression, and checks both digests."""
    name = _place(layer)
    with archive.open(name) as packed:
        start = packed.read(4)
        if f"sha256:{_hash_rest(packed, start)}" != layer.digest:
            raise DataError("does not have the content that the manifest names")
    digest = hashlib.sha256()
    left = budget.bytes
    with archive.open(name) as packed, _reader(packed, start) as reader:
        while block := reader.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise DataError(f"holds more than {layers.MOST_BYTES // 1_000_000_000} GB when unpacked")
            digest.update(block)
            plain.write(block)
    if f"sha256:{digest.hexdigest()}" != whole:
        raise DataError("does not have the content that the configuration names")


def _hash_rest(stream: IO[bytes], start: bytes) -> str:
    digest = hashlib.sha256(start)
    while block := stream.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def _reader(packed: IO[bytes], start: bytes) -> Any:
    if start.startswith(b"\x1f\x8b"):
        import gzip

        return gzip.GzipFile(fileobj=packed)
    if start == b"\x28\xb5\x2f\xfd":
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, mode="r"), "zstd")
    return packed
