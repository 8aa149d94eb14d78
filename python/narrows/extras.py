"""Optional libraries, and the `pip` extra that installs each."""

from __future__ import annotations

from narrows.errors import NarrowsError, UnavailableError

#: Keyed by import name.
EXTRAS = {
    "distributed": "dask",
    "gymnasium": "gym",
    "matplotlib": "plot",
    "minari": "gym-offline",
    "pandas": "frames",
    "pettingzoo": "gym-multi",
    "polars": "frames",
    "safetensors": "learn",
    "scipy": "hunt",
    "stable_baselines3": "gym-sb3",
}


def missing_library(error: BaseException) -> NarrowsError | None:
    """A missing library, with the command that installs it, in one sentence; None for all other errors."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return None
    return UnavailableError(
        f"this needs {library}, which is not installed; pip install 'narrows[{EXTRAS[library]}]'"
    )
