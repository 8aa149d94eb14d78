"""Where laboratories are: shipped ones, those of the user, and folders by their path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from narrows.errors import DataError
from narrows.files import config_folder, named_path, shipped_labs
from narrows.lab.reading import FILE, Lab, read
from narrows.text import did_you_mean, shorten

SHIPPED, USERS = "shipped", "yours"


@dataclass(frozen=True)
class Found:
    """A family in one of the folders, which need not be right."""

    name: str
    path: Path
    origin: str


def user_folder() -> Path:
    """The folder with the laboratories of the user (it need not exist)."""
    return config_folder() / "labs"


def listed() -> list[Found]:
    """All families by name; one of the user hides a shipped one of the same name."""
    found: dict[str, Found] = {}
    for origin, folder in ((USERS, user_folder()), (SHIPPED, shipped_labs())):
        if folder is None or not folder.is_dir():
            continue
        for path in sorted(folder.glob(f"*/{FILE}")):
            found.setdefault(path.parent.name, Found(path.parent.name, path.parent, origin))
    return sorted(found.values(), key=lambda one: one.name)


def find(name: str) -> Path:
    """The folder of a family that is named by its path or by its name alone."""
    if "/" in name or name in (".", "..") or Path(name, FILE).is_file():
        path = named_path(name, Path())
        if not (path / FILE).is_file():
            raise DataError(
                f"{shorten(name)}: there is no {FILE}; narrows lab new {shorten(name)} makes a family"
            )
        return path
    known = {one.name: one.path for one in listed()}
    if name in known:
        return known[name]
    hint = (
        did_you_mean(name, known) or "; narrows lab list has the families, and a folder is named by its path"
    )
    raise DataError(f'there is no laboratory "{shorten(name)}"{hint}')


def load(name: str) -> Lab:
    """The laboratory of a name or path. Raises `DataError` with everything that is wrong in it."""
    return read(find(name))
