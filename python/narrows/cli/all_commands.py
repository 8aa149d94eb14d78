"""The program with all its commands, for those who do not start from the words of a command line."""

from narrows.cli.app import app, load

__all__ = ["app"]

load()
