"""What has been done already: one file per scheme and part, so that the work can be taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from narrows.errors import DataError

FORMAT = "narrows/verify-part/1"


def slug(name: str) -> str:
    """A scheme's name as part of the name of a file."""
    return name.replace(":", "-").replace("+", "p")


class Store:
    """A folder of parts. Parts made under other conditions (`key`) do not count."""

    def __init__(self, folder: Path, again: bool) -> None:
        self.folder, self.again = folder, again

    def path(self, part: str, name: str) -> Path:
        """Where a part is kept."""
        return self.folder / part / f"{slug(name)}.json"

    def load(self, part: str, name: str, key: dict[str, Any]) -> dict[str, Any] | None:
        """A part that was made under these conditions; nothing if it is to be made again."""
        if self.again:
            return None
        return self.kept(part, name, key)

    def kept(self, part: str, name: str, key: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """A part that was made, under these conditions or under any."""
        path = self.path(part, name)
        if not path.exists():
            return None
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: can't be read ({error}); remove it, or use --again") from None
        if document.get("format") != FORMAT or (key is not None and document.get("key") != key):
            return None
        found: dict[str, Any] = document
        return found

    def save(self, part: str, name: str, key: dict[str, Any], content: dict[str, Any]) -> None:
        """Keeps a part; it is there as a whole or not at all."""
        path = self.path(part, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {"format": FORMAT, "name": name, "key": key, **content}
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(document, indent=1), encoding="utf-8")
        partial.replace(path)
