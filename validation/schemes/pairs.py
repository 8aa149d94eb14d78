"""Pairs of implementations that are compared on the emulator."""

from __future__ import annotations

from dataclasses import dataclass

from narrows.scenario.registry import Registry
from validation.schemes.compare import LOOSE, STRICT, Tolerance

#: Ours that claim to do what a module of the kernel does, packet for packet.
TWINS = {"reno": "linux:reno", "cubic-linux": "linux:cubic", "bbr1": "linux:bbr"}


@dataclass(frozen=True)
class Pair:
    """Two implementations of the same rules; what is found says something about both, or about the first."""

    scheme: str
    reference: str
    tolerance: Tolerance


def pairs(known: Registry) -> list[Pair]:
    """All pairs, in the order of the registry."""
    found = [Pair(name, TWINS[name], STRICT) for name in known.schemes if name in TWINS]
    programs = [one for one in known.bpf.values() if one.native in known.schemes]
    return found + [Pair(one.native, one.name, LOOSE) for one in programs]


def concerns(pair: Pair) -> tuple[str, ...]:
    """The schemes whose status depends on a pair: ours, and a program of ours."""
    return (pair.scheme,) if pair.reference.startswith("linux:") else (pair.scheme, pair.reference)
