"""From a published model, whatever its format, to a model file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from narrows.errors import DataError
from narrows.files import read_whole
from narrows.models import checkpoint, networks, remy
from narrows.models.format import FORMER, SUFFIX, describe_origin, former, is_model, summary, write
from narrows.text import printable

#: An error message names up to this many checkpoints of a folder.
_SHOWN = 4


def convert(path: Path) -> bytes:
    """The content of the model file for the model at `path`; raises `DataError` if there is none.

    `path` is a model file, one of the former format, a rule table of Remy, or a TensorFlow checkpoint (one of
    its files, their common name, or a folder with a single one).
    """
    if (prefix := checkpoint.prefix_of(path)) is not None:
        try:
            kind, arrays = networks.arrays(prefix)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        data = prefix.with_name(f"{prefix.name}.data-00000-of-00001")
        source = data if data.is_file() else prefix.with_name(prefix.name + ".index")
        return write(kind, arrays, _notes("TensorFlow checkpoint", source.name, read(source)))
    content = read(path)
    try:
        if content.startswith(FORMER):
            content = write(*former(content))
            summary(content)
            return content
        if path.suffix == SUFFIX or is_model(content):
            summary(content)
            return content
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    try:
        table = remy.arrays(content)
    except DataError as error:
        raise DataError(
            f"{path}: is neither a model file, nor a checkpoint of TensorFlow, nor a rule table of Remy:"
            f" {error}"
        ) from None
    return write(remy.KIND, table, _notes("Remy rule table", path.name, content))


def read(path: Path) -> bytes:
    """The content of a file that may be a model."""
    if path.is_dir():
        texts = [printable(place.name) for place in sorted(path.glob("*.index"))]
        if not texts:
            raise DataError(
                f"{path}: is a folder without a checkpoint (NAME.index); name the file of a model"
            )
        listed = ", ".join([*texts[:_SHOWN], "..."] if len(texts) > _SHOWN else texts)
        raise DataError(f"{path}: has {len(texts)} checkpoints; name one of them: {listed}")
    try:
        return read_whole(path, "model")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _notes(what: str, name: str, content: bytes) -> dict[str, str]:
    """The origin of a model."""
    digest = hashlib.sha256(content).hexdigest()
    return {"source": describe_origin({"format": what, "file": printable(name), "sha256": digest})}
