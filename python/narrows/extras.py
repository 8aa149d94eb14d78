"""Libraries that a part of the package needs, and the extra of `pip` that brings each."""

from __future__ import annotations

from narrows.errors import NarrowsError, UnavailableError

#: By the name under which a library is imported.
EXTRAS = {
    "distributed": "dask",
    "matplotlib": "plot",
    "pandas": "frames",
    "polars": "frames",
    "safetensors": "learn",
    "scipy": "hunt",
}


def missing_library(error: BaseException) -> NarrowsError | None:
    """A library that was not found, with what to install, in one sentence; None for all other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return UnavailableError(
        f"this needs {library}, which is not installed; pip install 'narrows[{EXTRAS[library]}]'"
    )
