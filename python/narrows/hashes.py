"""The identity of plain data."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(content: Any) -> str:
    """JSON with sorted keys and no spaces: the same text for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_hash(content: Any) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:12]


def file_sha256(content: bytes) -> str:
    """The SHA-256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()
