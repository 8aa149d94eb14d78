"""What all tests share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from narrows.scenario import registry

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))


@pytest.fixture
def fixed_registry(monkeypatch: pytest.MonkeyPatch) -> registry.Registry:
    """A registry that does not change with the core, and has things that the core does not have.

    That scenarios may use them shows that nothing in Python needs to know what is in the registry.
    """
    fixed = registry.parse((HERE / "registry.json").read_text())
    monkeypatch.setattr(registry, "load", lambda: fixed)
    return fixed
