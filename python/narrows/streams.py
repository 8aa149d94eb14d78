"""Standard streams that a program can rely on, however it was started.

A terminal or a pipe may have any encoding, may be closed, or may lie on a full disk. Characters that an
encoding lacks are replaced; messages that can't be written are dropped; results that can't be written are an
error in one sentence.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import resource
import sys
import unicodedata

from narrows.errors import NarrowsError, reason

#: Symbols in tables and messages, with their ASCII replacements.
_ASCII = {
    "✓": "ok",
    "✗": "x",
    "→": "->",
    "←": "<-",
    "↑": "^",
    "↓": "v",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "×": "x",
    "·": ".",
    "•": "*",
    "µ": "u",
    "μ": "u",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "≈": "~",
    "°": " deg",
    "“": '"',
    "”": '"',
    "„": '"',
    "«": '"',
    "»": '"',
    "‘": "'",
    "’": "'",
    "ß": "ss",
    "Ø": "O",
    "ø": "o",
    "─": "-",
    "━": "-",
    "╸": "-",
    "╺": "-",
    "│": "|",
    "┃": "|",
    "█": "#",
    "▏": "|",
    "▎": "|",
    "▍": "|",
}
#: Name of the error handler for characters that an encoding lacks.
_HANDLER = "narrows"
_BOXES = range(0x2500, 0x2580)


def plain(letter: str) -> str:
    """The usual ASCII form of a character, or its code point if it has none."""
    if letter in _ASCII:
        return _ASCII[letter]
    if ord(letter) in _BOXES:
        return "+"
    simple = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return simple or letter.encode("unicode_escape").decode()


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(plain, error.object[error.start : error.end])), error.end


class _Output(io.TextIOWrapper):
    """Standard output: if it can't be written, `NarrowsError` is raised."""

    def write(self, text: str) -> int:
        """Writes, raising our error; a reader that has gone away is not an error."""
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_error(error) from None

    def flush(self) -> None:
        """The same."""
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise output_error(error) from None


class _Messages(io.TextIOWrapper):
    """Standard error: if it can't be written, messages are lost and the command continues."""

    def write(self, text: str) -> int:
        """Writes without ever failing."""
        try:
            return super().write(text)
        except (OSError, ValueError):
            _to_nothing(2)
            return len(text)

    def flush(self) -> None:
        """Flushes without ever failing."""
        try:
            super().flush()
        except (OSError, ValueError):
            _to_nothing(2)


def prepare() -> None:
    """Prepares the program's environment: standard streams, and limits of memory."""
    _prepare_streams()
    # A library that can't start its threads would interrupt the program; a single thread needs none.
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _prepare_streams() -> None:
    """Makes standard streams usable. A closed one is opened again, so that no file takes its number: output
    then can't be written, and messages are lost.
    """
    codecs.register_error(_HANDLER, _replace)
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _to_nothing(number, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lasts as long as the program
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "wb", closefd=False)), encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(io.FileIO(2, "wb", closefd=False)), encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding, by_lines = sys.stdout.encoding, sys.stdout.line_buffering
        sys.stdout = _Output(sys.stdout.detach(), encoding, _HANDLER, line_buffering=by_lines)
    if isinstance(sys.stderr, io.TextIOWrapper):
        encoding = sys.stderr.encoding
        sys.stderr = _Messages(sys.stderr.detach(), encoding, _HANDLER, line_buffering=True)


def flush_output() -> NarrowsError | None:
    """Flushes the output; returns the reason if that is impossible, None if there is no reader or all is
    well. Afterwards nothing can fail.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _to_nothing(1)
    except NarrowsError as error:
        _to_nothing(1)
        return error
    except ValueError:
        # Closed by the caller that runs us inside a process.
        return None
    return None


def output_error(error: OSError) -> NarrowsError:
    """The sentence about output that can't be written."""
    if error.errno == errno.EBADF:
        return NarrowsError("the output can't be written: standard output is closed")
    return NarrowsError(f"the output can't be written: {reason(error)}")


def is_unicode() -> bool:
    """True if standard output can show any character."""
    return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")


def _to_nothing(number: int, mode: int = os.O_WRONLY) -> None:
    """Redirects a standard stream to the null device."""
    handle = os.open(os.devnull, mode)
    if handle != number:
        os.dup2(handle, number)
        os.close(handle)
