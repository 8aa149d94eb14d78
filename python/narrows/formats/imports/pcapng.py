"""Captures: pcapng or pcap of one end, or of both.

Two captures that show the same connection belong to one run (`tcpdump` on both hosts, or the output of
`narrows export`), as do two interfaces of one file. TCP packets are identified at the other end by their
position in the byte stream, UDP packets by their payload or IP identification, those of our exports by their
numbers; so each packet has its delay, and packets that never arrived are lost. Everything else is a capture
of one end, which yields throughput (by acknowledged data), round-trip times, bytes in flight and
retransmissions. The work per packet is in `formats/src/connections` (Rust).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from narrows.errors import DataError, NarrowsError
from narrows.formats.imports import _rotated_captures
from narrows.formats.imports._capture import Capture
from narrows.formats.imports._choice import Choice, choose_connections
from narrows.formats.imports._ends import both_ends, likely_translated, match_ends
from narrows.formats.imports._streams import one_end
from narrows.formats.runs import MeasuredRun, Unread, note, scheme_of

if TYPE_CHECKING:
    from narrows._native import CaptureView

PATTERNS = ("*.pcapng", "*.pcap", "*.cap", "*.pcap[0-9]*", "*.pcapng.gz", "*.pcap.gz")
#: Maximum size of a compressed capture, before and after decompression.
MOST_BYTES = 2_000_000_000
#: Names that exports give to interfaces: two interfaces of one name are not both ends of one run.
_ENDS = ("sender", "receiver")
#: The number of shared connections that decide whether two captures belong to one run.
_DECIDE = 3
#: The number of captures of one end that are checked for address translation.
_MOST_ALONE = 64


def read(files: list[Path], scheme: str | None = None, choice: Choice | None = None) -> list[MeasuredRun]:
    """One run per set of captures of the same connections; raises `DataError` if a file is not a capture, or
    has no connection that matches `choice`.
    """
    choice = choice or Choice()
    left, rotated = _join_rotated([capture for file in files for capture in read_captures(file)])
    runs = []
    alone: list[tuple[Capture, MeasuredRun]] = []
    while left:
        first = left.pop(0)
        group = [first]
        # File names usually show which captures belong together, so these are compared first.
        for other in sorted(left, key=lambda item: -_likeness(str(first.file), str(item.file))):
            if _are_ours([*group, other]):
                continue
            if any(match_ends(member, other, most=_DECIDE) for member in group):
                group.append(other)
                left.remove(other)
                if first.view.name in _ENDS and other.view.name in _ENDS:
                    break
        run = _run(group, scheme or scheme_of(first.file), choice)
        for capture in group:
            if parts := rotated.get(capture.file):
                at = run.files.index(capture.file)
                run.files[at : at + 1] = parts
                names = ", ".join(part.name for part in parts)
                text = f"The capture was rotated; these {len(parts)} files were read as one: {names}."
                run.reasons.append(note("rotated", text))
        runs.append(run)
        if len(group) == 1 and len(alone) < _MOST_ALONE:
            alone.append((first, run))
    _note_translation(alone)
    return runs


def _note_translation(alone: list[tuple[Capture, MeasuredRun]]) -> None:
    """Adds notes to captures without a partner about others that may show the same connection under other
    addresses.
    """
    for place, (capture, run) in enumerate(alone):
        for other, its_run in alone[place + 1 :]:
            if not likely_translated(capture, other):
                continue
            for mine, theirs, its in ((capture, other, run), (other, capture, its_run)):
                text = (
                    f"{theirs.file.name} ({theirs.view.name}) may show the same connection as"
                    f" {mine.file.name} ({mine.view.name}) with other addresses or ports (NAT)."
                    " TCP connections with translated addresses are one run if both captures have their"
                    " handshake and sequence numbers are not changed on the way."
                )
                its.reasons.append(note("maybe_translated", text))


def _join_rotated(captures: list[Capture]) -> tuple[list[Capture], dict[Path, list[Path]]]:
    """The captures with rotated ones joined, and the files of each of these by the first one."""
    whole: list[Capture] = []
    rotated: dict[Path, list[Path]] = {}
    for chain in _rotated_captures.chains(captures):
        files = [capture.file for capture in chain]
        content = _rotated_captures.join([_content(file) for file in files]) if len(chain) > 1 else None
        if content is None or len(content) > MOST_BYTES:
            whole += chain
        else:
            rotated[files[0]] = files
            whole += read_captures(files[0], content)
    return whole, rotated


def _likeness(name: str, other: str) -> int:
    """The length of the common prefix of two names."""
    pairs = zip(name, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(name), len(other)))


def _are_ours(captures: list[Capture]) -> bool:
    """True if two of the captures are the same end of exported runs, and so belong to different runs."""
    names = [capture.view.name for capture in captures if capture.view.name in _ENDS]
    return len(set(names)) < len(names)


def _run(group: list[Capture], scheme: str, choice: Choice) -> MeasuredRun:
    first = group[0]
    chosen = choose_connections(first, choice)
    if len(group) == 1:
        return one_end(first, chosen, scheme, [first.file])
    # Of several captures, take those that are farthest apart.
    one, other = first, group[1]
    if len(group) > 2:
        pairs = [(near, far) for place, near in enumerate(group) for far in group[place + 1 :]]
        one, other = max(pairs, key=lambda pair: _distance(*pair))
        chosen = choose_connections(one, choice)
    run = both_ends(one, other, chosen, scheme)
    if len(group) > 2:
        unused = [capture for capture in group if capture is not one and capture is not other]
        names = ", ".join(dict.fromkeys(f"{part.file.name} ({part.view.name})" for part in unused))
        run.reasons.append(note("further_captures", f"Further captures of the same connections: {names}."))
        run.files = list(dict.fromkeys(capture.file for capture in group))
    return run


def _distance(capture: Capture, other: Capture) -> float:
    """The round-trip time between two captures."""
    import numpy as np

    pairs = match_ends(capture, other, most=1)
    packets = pairs[0].packets if pairs else None
    if packets is None:
        return 0.0
    total = 0.0
    for rows in (packets.data, packets.back):
        delays = (rows["arrived_ns"] - rows["sent_ns"])[rows["arrived_ns"] != np.iinfo(np.int64).min]
        total += float(np.median(delays)) if len(delays) else 0.0
    return total


def _content(file: Path) -> bytes:
    from narrows.files import read_decompressed

    return read_decompressed(file, "capture", MOST_BYTES)


def read_captures(file: Path, content: bytes | None = None) -> list[Capture]:
    """The interfaces of a file, or of its `content`, each as a capture."""
    from narrows import _native
    from narrows.files import compression_of

    try:
        if content is None and compression_of(file) is not None:
            content = _content(file)
        views, counts = _native.read_capture(file, content)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None
    except ValueError as error:
        raise DataError(str(error)) from None
    except OSError as error:
        raise NarrowsError(str(error)) from None
    unread = [Unread(kind, count, matters) for kind, count, matters in counts]
    if not views:
        kinds = ", ".join(f"{part.kind} ({part.count})" for part in unread)
        rest = f"; it has only {kinds}" if kinds else ""
        raise DataError(f"{file}: the capture has no TCP or UDP packets that can be read{rest}")
    return [Capture(file, view, view.connections(), _clock(file, view), unread) for view in views]


def _clock(file: Path, view: CaptureView) -> list[dict[str, str]]:
    """Remarks about a clock that was set, or times out of order."""
    reasons = []
    if view.set_back_ns:
        steps = ", ".join(f"{step / 1e9:.3f} s" for step in view.set_back_ns)
        text = (
            f"The clock of {file.name} was set back during the capture, by {steps}. Later packets are moved"
            " so that they follow the earlier ones at the usual distance; the time between them is a guess."
        )
        reasons.append(note("clock_set_back", text, "degraded"))
    if view.sorted:
        text = f"The packets of {file.name} are not in the order of capture; they were sorted by time."
        reasons.append(note("disorder", text, "degraded"))
    return reasons
