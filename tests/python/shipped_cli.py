"""The program `narrows` with the models of a test in place of those that come with it (`TEST_SHIPPED`)."""

from __future__ import annotations

import os
from pathlib import Path

from narrows import cli
from narrows.models import store


def main() -> None:
    """The program; changes a module for the rest of the process."""
    store.find_shipped_folder = lambda: Path(os.environ["TEST_SHIPPED"])
    cli.main()


if __name__ == "__main__":
    main()
