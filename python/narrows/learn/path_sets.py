"""The sets of paths on which models are scored."""

from enum import StrEnum


class PathSet(StrEnum):
    """A set of paths."""

    GRID = "grid"
    CALIBRATED = "calibrated"
    BUFFERS = "buffers"
    PANTHEON = "pantheon"
    #: The links of Remy's objective, on which rule tables have another score than power.
    LINKS = "links"
