"""The kinds of failures, each with its exit code on the command line.

Every message is one sentence that tells the user what to do; the command line prints it unchanged and without
a traceback.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

EXIT_OK = 0
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_BAD_INPUT = 3
EXIT_CANNOT_HERE = 4
EXIT_EXPECTATION = 5
EXIT_SOME_INVALID = 6
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class NarrowsError(Exception):
    """A failure that the user sees as one sentence."""

    exit_code = EXIT_FAILURE


class UsageError(NarrowsError):
    """The command was called incorrectly."""

    exit_code = EXIT_USAGE


class ProgramError(NarrowsError):
    """A user's program can't be started; exit codes are those of shells."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class DataError(NarrowsError):
    """A file or folder does not have the expected content."""

    exit_code = EXIT_BAD_INPUT


class UnavailableError(NarrowsError):
    """This machine can't do what was requested; the message names the remedy."""

    exit_code = EXIT_CANNOT_HERE


class Interrupted(NarrowsError):  # noqa: N818 - it is not an error of anybody
    """The user (or the system) requested a stop; everything finished so far is kept."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.number = signal_number
        self.exit_code = 128 + signal_number


@dataclass(frozen=True)
class Problem:
    """One error in a scenario: its place, its key and its description."""

    position: str
    key: str
    text: str
    #: True if the problem is not in the text but in a file that it names.
    is_of_file: bool = False

    def __str__(self) -> str:
        return ": ".join(part for part in (self.position, self.key, self.text) if part)


class ScenarioError(DataError):
    """A scenario that can't be run, with all problems in it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
        if problems and all(item.position.startswith("--") and not item.is_of_file for item in problems):
            # The problem is not in the file: the options of the command are invalid.
            self.exit_code = EXIT_USAGE


class IsSweep(ScenarioError):  # noqa: N818 - a scenario of another kind
    """A scenario with the key `sweep`, where one with a single point is needed."""


def reason(error: OSError) -> str:
    """Why the system refused something, as part of a sentence."""
    return (error.strerror or str(error)).lower()


#: Errors of the system that are not about the path that they name.
_OUT_OF = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EROFS)
#: Errors of reading from and writing to open files. Sockets name no path either.
_OF_OPEN_FILES = (*_OUT_OF, errno.EFBIG)
_LONGEST_SHOWN = 200


#: Messages of libraries whose memory, mappings or threads the system refused.
_NO_MEMORY = ("cannot allocate memory", "can't start new thread", "failed to map segment", "out of memory")


def _is_shortage_of_memory(error: Exception) -> bool:
    if isinstance(error, SystemError):
        # Compiled code that could not even allocate an exception.
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    return isinstance(error, MemoryError) or any(words in str(error).lower() for words in _NO_MEMORY)


def as_refusal(error: Exception) -> NarrowsError | None:
    """An unforeseen refusal of the system, in one sentence; None for all other errors. Names that are too
    long, loops of links, missing permissions and a lack of memory can occur anywhere.
    """
    if _is_shortage_of_memory(error):
        return NarrowsError("memory ran out; allow more (ulimit -v), or ask for less at once")
    if not isinstance(error, OSError) or error.strerror is None:
        return None
    if error.filename is None:
        # Errors of writing to an open file name no path: its disk is full.
        if error.errno not in _OF_OPEN_FILES:
            return None
        return NarrowsError(f"a file can't be written or read: {reason(error)}")
    path = str(error.filename)
    shown = path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}..."
    kind = NarrowsError if error.errno in _OUT_OF else DataError
    return kind(f"{shown}: {error.strerror.lower()}")
