"""The sources of Narrows in Rust: those of the source tree, or the archive that comes with an installed
package.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import shutil
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from narrows.errors import UnavailableError, reason
from narrows.files import data_folder, read_bytes

_PACKAGE = Path(__file__).resolve().parent.parent
#: The archive in an installed package; `pack` makes it.
ARCHIVE = "_sources.tar.xz"
#: The examples in an installed package.
EXAMPLES = "_examples"
_MOST_BYTES = 100_000_000
ROOT_MANIFEST = "Cargo.toml"
#: Files of the root without which nothing is compiled, or not as for a release.
_OF_ROOT = (ROOT_MANIFEST, "Cargo.lock", "rust-toolchain.toml", ".cargo/config.toml", ".ci/rustc")
#: Members of the workspace that only test the others.
_TESTS = ("tests", "tests/skips", "benches")
_SKIPPED = frozenset(("tests", "benches", "examples", "golden", "target"))


@lru_cache(maxsize=1)
def find_tree() -> Path | None:
    """The source tree that the package belongs to, if it is not installed."""
    tree = _PACKAGE.parent.parent
    return tree if (tree / "Cargo.toml").is_file() and (tree / "core" / "net").is_dir() else None


def members(manifest: str) -> list[str]:
    """The members of the workspace that programs consist of, by its manifest."""
    listed = re.search(r"^members = \[(.*?)\]", manifest, re.DOTALL | re.MULTILINE)
    assert listed is not None, "the workspace lists its members"
    return [path for path in re.findall(r'"([^"]+)"', listed[1]) if path not in _TESTS]


def read_sources() -> dict[str, bytes]:
    """The files by their paths. Raises `UnavailableError` if the package came without."""
    tree = find_tree()
    if tree is not None:
        return _read_tree(tree)
    archive = _PACKAGE / ARCHIVE
    try:
        plain = lzma.decompress(read_bytes(archive))
    except (OSError, lzma.LZMAError) as error:
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise UnavailableError(
            f"{archive}: the sources of Narrows can't be read ({why}); install a wheel that has"
            f" them, or use a"
            " source tree"
        ) from None
    with tarfile.open(fileobj=io.BytesIO(plain)) as files:
        return {
            member.name: stream.read()
            for member in files
            if member.isfile() and (stream := files.extractfile(member)) is not None
        }


def pack(place: Path) -> None:
    """Writes the archive of the source tree, the same bytes for the same sources."""
    tree = find_tree()
    assert tree is not None, "the archive is made in a source tree"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as files:
        for path, content in sorted(_read_tree(tree).items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(b"#!") else 0o644
            files.addfile(entry, io.BytesIO(content))
    place.write_bytes(lzma.compress(plain.getvalue(), preset=9))


def ship(package: Path) -> None:
    """Puts the archive and the examples into the folder of a package, for a wheel."""
    pack(package / ARCHIVE)
    tree = find_tree()
    assert tree is not None, "wheels are made in a source tree"
    shutil.rmtree(package / EXAMPLES, ignore_errors=True)
    for example in sorted((tree / "examples").glob("own-*")):
        skipped = shutil.ignore_patterns("target", "Cargo.lock", "rustfmt.toml")
        shutil.copytree(example, package / EXAMPLES / example.name, ignore=skipped)


def folder_for_crates() -> Path:
    """A folder of the sources that crates elsewhere may depend on: the source tree, or a copy of the
    archive in the folder of user data.
    """
    tree = find_tree()
    if tree is not None:
        return tree
    from narrows import __version__
    from narrows.extend.writing import write_files

    place = data_folder() / "sources" / __version__
    write_files(place, read_sources())
    return place


def _read_tree(tree: Path) -> dict[str, bytes]:
    manifest = (tree / "Cargo.toml").read_text(encoding="utf-8")
    paths = [tree / name for name in _OF_ROOT]
    paths += sorted((tree / "profiles").glob("*.profdata"))
    for member in members(manifest):
        paths += _files_in(tree / member)
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in paths if path.is_file()}


def _files_in(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        yield from (Path(base) / name for name in sorted(names))
