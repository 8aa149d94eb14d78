"""The locations of laboratories: shipped ones, users' ones, and folders by their path."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError
from narrows.files import Found, by_name, config_folder, find_shipped_labs, resolve_path
from narrows.lab.reading import FILE, Lab, read
from narrows.text import did_you_mean, shorten

#: The folder beside the families with the right answers of lessons, so that copies do not contain them.
SOLUTIONS = "solutions"


def user_folder() -> Path:
    """The folder of the user's laboratories (it need not exist)."""
    return config_folder() / "labs"


def list_families() -> list[Found]:
    """All families by name; a user's family hides a shipped one of the same name."""

    def entries(folder: Path) -> list[tuple[str, Path]]:
        return [(path.parent.name, path.parent) for path in sorted(folder.glob(f"*/{FILE}"))]

    return by_name(user_folder(), find_shipped_labs(), entries)


def find(name: str) -> Path:
    """The folder of a family that is named by its path or by its bare name."""
    if "/" in name or name in (".", "..") or Path(name, FILE).is_file():
        path = resolve_path(name, Path())
        if not (path / FILE).is_file():
            raise DataError(
                f"{shorten(name)}: there is no {FILE}; narrows lab new {shorten(name)} makes a family"
            )
        return path
    known = {family.name: family.path for family in list_families()}
    if name in known:
        return known[name]
    hint = (
        did_you_mean(name, known) or "; narrows lab list has the families, and a folder is named by its path"
    )
    raise DataError(f'laboratory "{shorten(name)}" does not exist{hint}')


def load(name: str) -> Lab:
    """The laboratory of a name or path. Raises `DataError` with all errors in it."""
    return read(find(name))
