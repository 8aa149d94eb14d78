"""A scenario that can be run from another folder: paths that are relative to its own are replaced by those of
copies, or of the files themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import yaml

from narrows.documents.resolved import Cell
from narrows.scenario import cells_of
from narrows.scenario.files import Files, Place, place_of
from narrows.scenario.loading import Loaded
from narrows.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, parse

#: The folder of the copies, beside the scenario.
FOLDER = "as-run.files"


def only_cell(loaded: Loaded) -> Cell:
    """The cell of a scenario with one run."""
    return next(iter(cells_of(loaded.scenario)))


def with_whole_paths(value: Node, files: Files) -> Node:
    """A tree in which paths from the command line, which are relative to the working folder, are whole."""
    match value:
        case Scalar():
            place = files.places.get(place_of(value)) if value.mark.line is None else None
            return Scalar(value.mark, f"{place.prefix}{place.path}", quoted=True) if place else value
        case Sequence():
            return Sequence(value.mark, [with_whole_paths(item, files) for item in value.items])
        case Mapping():
            entries = {key: with_whole_paths(item, files) for key, item in value.entries.items()}
            return Mapping(value.mark, entries, value.key_marks)


def portable(loaded: Loaded) -> tuple[Loaded, dict[str, bytes]]:
    """The scenario with paths that don't depend on its folder, and the contents of copies by their paths.

    The name of a copy is that of the file, because labels of schemes contain it.
    """
    files = loaded.scenario.files
    places = {
        (scalar.mark.line, scalar.mark.column): place
        for scalar in _scalars(parse(loaded.text, loaded.path.name))
        if (place := files.places.get(place_of(scalar))) is not None
    }
    copies: dict[str, bytes] = {}
    text = loaded.text
    scalars = [
        event for event in yaml.parse(text, Loader=yaml.SafeLoader) if isinstance(event, yaml.ScalarEvent)
    ]
    for event in reversed(scalars):
        begin, end = event.start_mark, event.end_mark
        if begin is None or end is None:
            continue
        place = places.get((begin.line + 1, begin.column + 1))
        if place is not None:
            path = json.dumps(_copy(place, files, copies), ensure_ascii=False)
            anchor = f"&{event.anchor} " if event.anchor else ""
            text = f"{text[: begin.index]}{anchor}{path}{text[end.index :]}"
    return replace(loaded, text=text), copies


def _scalars(value: Node) -> Iterator[Scalar]:
    if isinstance(value, Scalar):
        yield value
        return
    for inner in value.items if isinstance(value, Sequence) else value.entries.values():
        yield from _scalars(inner)


def _copy(place: Place, files: Files, copies: dict[str, bytes]) -> str:
    """The path of a copy of a file, or of the file itself if it names others."""
    if place.sha256 is None:
        return f"{place.prefix}{place.path}"
    content = files.contents[place.sha256]
    paths = (f"{FOLDER}/{place.name}", *(f"{FOLDER}/{number}/{place.name}" for number in range(2, 1000)))
    path = next(path for path in paths if copies.get(path, content) == content)
    copies[path] = content
    return path
