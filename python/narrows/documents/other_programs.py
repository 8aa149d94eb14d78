"""Documents of other programs, whose members may have any form: one that differs from its definition is as if
it were absent.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

Kind = TypeVar("Kind", bound="Foreign")


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """An object in a document of another program; all its members have defaults."""


def read_foreign(data: object, kind: type[Kind]) -> Kind:
    """The members of an object that have the form of their definition."""
    if not isinstance(data, dict):
        return kind()
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        members = {name: _read(data[name], form) for name, form in _forms(kind) if name in data}
        return kind(**{name: value for name, value in members.items() if value is not msgspec.UNSET})


@cache
def _forms(kind: type[Foreign]) -> list[tuple[str, Any]]:
    return list(get_type_hints(kind).items())


def _read(data: object, form: Any) -> Any:
    """A value of this form; `UNSET` if the data has another one. Items of lists are read separately."""
    for item in (form, *get_args(form)):
        if isinstance(item, type) and issubclass(item, Foreign):
            if get_origin(form) is not list:
                return read_foreign(data, item)
            return [read_foreign(each, item) for each in data] if isinstance(data, list) else msgspec.UNSET
    try:
        return msgspec.convert(data, form)
    except msgspec.ValidationError:
        return msgspec.UNSET
