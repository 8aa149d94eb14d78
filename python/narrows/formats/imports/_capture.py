"""The traffic of one interface of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.formats.runs import Unread

if TYPE_CHECKING:
    from narrows._native import CaptureView, Connection


@dataclass
class Capture:
    """The traffic of one interface of a file."""

    file: Path
    view: CaptureView
    connections: list[Connection]
    #: Remarks about its clock.
    reasons: list[dict[str, str]] = field(default_factory=list)
    #: Frames of the file that were not read.
    unread: list[Unread] = field(default_factory=list)
