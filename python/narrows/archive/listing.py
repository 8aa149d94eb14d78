"""Reads the list of an archive's campaigns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from narrows.documents.archive import LIST_FORMAT, ArchiveList, ListedCampaign
from narrows.documents.data import DamagedError, from_data
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.text import shorten

if TYPE_CHECKING:
    from narrows.scenario import Override

#: The list of each release.
SHIPPED = Path(__file__).with_name("release.yaml")
_LARGEST = 1_000_000
#: Names become folders.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,79}")


def read_list(path: Path) -> ArchiveList:
    """The list in a file. Raises `DataError` with the file and the key if it is wrong."""
    try:
        text = read_whole(path, "list of an archive", _LARGEST).decode("utf-8")
        data = yaml.safe_load(text)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not text in UTF-8") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataError(f"{path}: is not YAML{_place(error)}") from None
    try:
        result = from_data(data, ArchiveList, "the list")
    except DamagedError as error:
        raise DataError(f"{path}: {error}") from None
    if result.schema != LIST_FORMAT:
        raise DataError(f'{path}: schema is "{shorten(result.schema)}", this version reads {LIST_FORMAT}')
    if not result.campaigns:
        raise DataError(f"{path}: campaigns is empty; name at least one scenario or laboratory")
    for name in result.campaigns:
        if _NAME.fullmatch(name) is None:
            raise DataError(
                f'{path}: "{shorten(name)}" cannot be the name of a folder; use at most 80 small letters,'
                " digits, hyphens and full stops, beginning with a letter or digit"
            )
    return result


def changes_of(path: Path, name: str, campaign: ListedCampaign) -> list[Override]:
    """The changes of a campaign's scenario, each with the place where it is written."""
    from narrows.scenario import Override

    return [
        Override(f"{path}: campaigns.{name}.set.{key}", key, _as_text(value))
        for key, value in campaign.set.items()
    ]


def _as_text(value: object) -> str:
    """A value as scenarios write it; JSON is YAML."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f": line {mark.line + 1}: {getattr(error, 'problem', '')}" if mark is not None else ""
