"""Files that are read whole, their paths as users write them, and the shipped files."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from narrows.errors import DataError, reason
from narrows.text import shorten

#: A trace of hours, or the largest published network, has some megabytes; a larger file was named by mistake.
MOST_BYTES = 200_000_000
#: Origins of items found by name.
SHIPPED, USERS = "shipped", "yours"
#: The first bytes of compressed files.
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
#: Usual suffixes of their names.
COMPRESSED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
_IRREGULAR = "is not a regular file; save its content in a file and name that"


def open_regular(path: Path) -> BufferedReader:
    """Opens a regular file for reading. Anything else (a pipe, a socket, a device, a folder) might block,
    never end, or have side effects when opened: it is refused unopened, with an `OSError`.
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise _irregular(path, mode)
    # The file may have been replaced since, and some files of /proc are regular in name only.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    stream = os.fdopen(handle, "rb")
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        stream.close()
        raise _irregular(path, mode)
    return stream


def _irregular(path: Path, mode: int) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, "it is not a regular file but a folder", str(path))
    return IrregularFileError(errno.EINVAL, "it is not a regular file", str(path))


class IrregularFileError(OSError):
    """A pipe, a socket or a device in the place of a file."""


def require_regular(path: Path) -> None:
    """Raises `OSError` unless this is a regular file that can be opened: for libraries that open files by
    name.
    """
    open_regular(path).close()


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file; raises `OSError`, also if it has more than `most` bytes."""
    with open_regular(path) as stream:
        content = stream.read(most + 1)
    if content is None:
        raise IrregularFileError(errno.EINVAL, "it has no end", str(path))
    if len(content) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """The content of a regular file in UTF-8; raises `OSError` or `UnicodeDecodeError`."""
    return read_bytes(path, most).decode("utf-8")


def read_whole(path: Path, what: str, most: int = MOST_BYTES) -> bytes:
    """The content of a regular file of at most `most` bytes; raises `DataError`, without the path, if it
    can't be read or be `what`. Another kind of file (a pipe, a device) might block, or never end.
    """
    try:
        return read_bytes(path, most)
    except IsADirectoryError:
        raise DataError("is a folder; name a file") from None
    except IrregularFileError as error:
        if error.strerror == "it has no end":
            raise unreadable(error) from None
        raise DataError(_IRREGULAR) from None
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise unreadable(error) from None
    except ValueError:
        raise DataError("can't be read: no path has the character NUL in it") from None
    raise DataError(f"is larger than {_size(most)}, so it is not {_article(what)} {what}")


def compression_of(path: Path) -> str | None:
    """The compression of a regular file, by its first bytes: gzip, bzip2, xz, zstd, or None. Raises
    `DataError`, without the path, if it can't be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(_IRREGULAR)
        with path.open("rb") as stream:
            return _form_of(stream.read(max(len(magic) for magic in _COMPRESSED)))
    except OSError as error:
        raise unreadable(error) from None


def _form_of(content: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSED.items() if content.startswith(magic)), None)


def read_decompressed(path: Path, what: str, most: int = MOST_BYTES) -> bytes:
    """The content of a file as in `read_whole`, decompressed if its first bytes (not its name) identify gzip,
    bzip2, xz or zstd. Raises `DataError`, without the path, also if the compressed data are damaged,
    truncated, or longer than `most` bytes when decompressed.
    """
    content = read_whole(path, what, most)
    form = _form_of(content)
    return content if form is None else _decompress(content, form, what, most)


def _decompress(content: bytes, form: str, what: str, most: int) -> bytes:
    import lzma
    import zlib

    try:
        with _decompressor(content, form) as stream:
            # The reader decompresses only the requested amount: a small file may expand to many gigabytes.
            plain: bytes = stream.read(most + 1)
    except EOFError:
        raise DataError(f"is {form} and cut off: it ends within its compressed data") from None
    except (OSError, ValueError, zlib.error, lzma.LZMAError, MemoryError) as error:
        text = f" ({shorten(str(error))})" if str(error) else ""
        raise DataError(f"is {form}, but its compressed data are damaged{text}") from None
    if len(plain) > most:
        raise DataError(
            f"is {form} and holds more than {_size(most)} when decompressed, the most that is read of"
            f" {_article(what)} {what}"
        )
    return plain


def _decompressor(content: bytes, form: str) -> Any:
    import io

    match form:
        case "gzip":
            import gzip

            return gzip.GzipFile(fileobj=io.BytesIO(content))
        case "bzip2":
            import bz2

            return bz2.BZ2File(io.BytesIO(content))
        case "xz":
            import lzma

            return lzma.LZMAFile(io.BytesIO(content))
        case _:
            import pyarrow

            return pyarrow.CompressedInputStream(pyarrow.BufferReader(content), "zstd")


def _size(most: int) -> str:
    return f"{most // 1_000_000} MB" if most >= 1_000_000 else f"{most // 1_000} kB"


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def unreadable(error: OSError) -> DataError:
    """Why a file can't be read, without its path."""
    return DataError(f"can't be read: {reason(error)}")


def resolve_path(text: str, base: Path) -> Path:
    """The path for the user's `text`, relative to `base`; `~` is a home folder. The path need not exist;
    raises `DataError`, with the text, if it can't be a path here.
    """
    try:
        path = base / Path(text).expanduser()
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return path
    except RuntimeError:
        raise DataError(f'"{shorten(text)}" names the home folder of a user who does not exist') from None
    except ValueError:
        raise DataError(f'"{shorten(text)}" has the character NUL in it, which no path has') from None
    except OSError as error:
        raise DataError(f'"{shorten(text)}" {unreadable(error)}') from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise DataError(f'"{shorten(text)}" {_IRREGULAR}')
    return path


def read_packaged(path: Path) -> Any:
    """The content of a YAML file that is part of a package."""
    import yaml

    # The C implementation, which is ten times as fast; a build of the library without it reads the same
    # files.
    return yaml.load(path.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def config_folder() -> Path:
    """The folder of the user's configuration (it need not exist)."""
    return _users("XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """The folder of the user's data: traces, models, programs (it need not exist)."""
    return _users("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Our folder for reproducible files (it need not exist)."""
    return _users("XDG_CACHE_HOME", ".cache")


def _users(variable: str, usual: str) -> Path:
    # Empty and relative values must be ignored: XDG Base Directory Specification.
    folder = Path(os.environ.get(variable, ""))
    return (folder if folder.is_absolute() else home_folder() / usual) / "narrows"


def home_folder() -> Path:
    """The user's home folder; a folder that does not exist if the user has none."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def find_shipped_folder() -> Path | None:
    """The folder with the shipped scenarios."""
    return _find_shipped("scenarios")


def find_shipped_programs() -> Path | None:
    """The folder with the shipped manifests of programs."""
    return _find_shipped("programs")


def find_shipped_labs() -> Path | None:
    """The folder with the shipped laboratories."""
    return _find_shipped("labs")


def find_shipped_examples() -> Path | None:
    """The folder with the crates that extensions start from."""
    return _find_shipped("examples")


@dataclass(frozen=True)
class Found:
    """A manifest or a laboratory in a folder of the user or a shipped one; it may be invalid."""

    name: str
    path: Path
    origin: str


def by_name(
    users: Path, shipped: Path | None, entries: Callable[[Path], Iterable[tuple[str, Path]]]
) -> list[Found]:
    """The entries of both folders by name; a user's entry hides a shipped one of the same name."""
    result: dict[str, Found] = {}
    for origin, folder in ((USERS, users), (SHIPPED, shipped)):
        if folder is not None and folder.is_dir():
            for name, path in entries(folder):
                result.setdefault(name, Found(name, path, origin))
    return sorted(result.values(), key=lambda item: item.name)


def _find_shipped(name: str) -> Path | None:
    """A folder of the source tree, or its copy in the package."""
    package = Path(__file__).resolve().parent
    tree = package.parent.parent
    if (tree / "pyproject.toml").is_file() and (tree / name).is_dir():
        return tree / name
    installed = package / f"_{name}"
    return installed if installed.is_dir() else None
