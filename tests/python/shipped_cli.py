"""The program `narrows` with the models of a test in place of those that come with it (`TEST_SHIPPED`)."""

from __future__ import annotations

import os
from pathlib import Path

from narrows.cli import main
from narrows.models import store

if __name__ == "__main__":
    store.find_shipped_folder = lambda: Path(os.environ["TEST_SHIPPED"])
    main()
