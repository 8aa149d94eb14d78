"""The arguments of a wrapper, which Pantheon's wrappers import from beside themselves."""

import sys


def words(first: str) -> list[str]:
    """The words after the name; answers run_first."""
    given = sys.argv[1:]
    if given == ["run_first"]:
        print(first)
        sys.exit(0)
    return given
