"""The unit tests with the published numbers of a scheme, which are next to its code."""

from __future__ import annotations

import re
from pathlib import Path

#: Bulk and real-time schemes.
SCHEMES = (Path("core/cc/src/schemes"), Path("core/media/src/schemes"))
_TEST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn\s+(\w+)")
_NAME = re.compile(r'^\s*name:\s*"([^"]+)"', re.MULTILINE)


def unit_tests(root: Path) -> dict[str, tuple[str, list[str]]]:
    """The file (from the root of the source tree) and the tests of every native scheme."""
    found = {}
    for path in (path for folder in SCHEMES for path in sorted((root / folder).glob("*.rs"))):
        text = path.read_text(encoding="utf-8")
        name = _NAME.search(text)
        if name is None or "pub const SCHEME" not in text:
            continue
        files = [path, *sorted(path.with_suffix("").glob("*.rs"))]
        tests = [test for file in files for test in _TEST.findall(file.read_text(encoding="utf-8"))]
        found[name[1]] = (path.relative_to(root).as_posix(), tests)
    return found
