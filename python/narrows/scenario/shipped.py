"""The scenarios that come with the package, in the source tree or installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.files import find_shipped_folder
from narrows.text import did_you_mean


@dataclass(frozen=True)
class Shipped:
    """One shipped scenario."""

    name: str
    family: str
    path: Path


def list_scenarios() -> list[Shipped]:
    """All shipped scenarios, by family and name."""
    root = find_shipped_folder()
    if root is None:
        return []
    return [Shipped(path.stem, path.parent.name, path) for path in sorted(root.glob("*/*.yaml"))]


def find(name: str) -> Path:
    """The file of a scenario that is named by its path or, if it is shipped, by its bare name. A folder of
    that name, such as that of an earlier campaign, does not count.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or "/" in name or (path.exists() and not path.is_dir()):
        if not path.exists() or path.is_dir():
            by_tail = [
                item
                for item in list_scenarios()
                if _plain(name) in (f"{item.family}/{item.name}", f"{item.family}/{item.name}.yaml")
            ]
            if by_tail:
                return by_tail[0].path
        return path
    known = list_scenarios()
    for scenario in known:
        if scenario.name == _plain(name):
            return scenario.path
    hint = did_you_mean(name, [scenario.name for scenario in known])
    raise DataError(
        f'no file and no shipped scenario is named "{name}"'
        f"{hint or '; narrows scenarios lists the shipped ones'}"
    )


def _plain(name: str) -> str:
    """The name with hyphens, where other tools write underscores (flent's `tcp_nup`)."""
    return name.replace("_", "-")
