"""The program with all its commands, for callers without a command line."""

from narrows.cli.app import app, load

__all__ = ["app"]

load()
