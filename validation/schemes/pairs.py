"""Pairs of implementations that are compared on the emulator."""

from __future__ import annotations

from dataclasses import dataclass

from narrows.scenario.registry import Registry
from validation.schemes.compare import ALIEN, LOOSE, STRICT, Tolerance

#: Our schemes that claim to follow a kernel module, packet for packet.
TWINS = {"reno": "linux:reno", "cubic-linux": "linux:cubic", "bbr1": "linux:bbr"}
#: Schemes, and external programs that follow the same rules in a different way. `quic-go` has no CUBIC that
#: programs can use; its Reno falls to the same 0.7 of the window.
PROGRAMS = (
    ("quic-cubic", "quinn:cubic"),
    ("quic-cubic", "quiche:cubic"),
    ("quic-cubic", "quic-go:reno"),
    ("utp", "libtorrent:utp"),
    ("gcc", "pion:gcc"),
    ("gcc", "chromium:vp8"),
    ("linux:cubic", "iperf3:cubic"),
    ("linux:cubic", "nginx:cubic"),
)


@dataclass(frozen=True)
class Pair:
    """Two implementations of the same rules; the result concerns both, or only the first."""

    scheme: str
    reference: str
    tolerance: Tolerance


def pairs(known: Registry) -> list[Pair]:
    """All pairs, in the order of the registry."""
    found = [Pair(name, TWINS[name], STRICT) for name in known.schemes if name in TWINS]
    programs = [one for one in known.bpf.values() if one.native in known.schemes]
    return found + [Pair(one.native, one.name, LOOSE) for one in programs]


def of_programs(names: tuple[str, ...] = ()) -> list[Pair]:
    """The pairs with external programs, of these schemes or programs; all if none is named."""
    return [
        Pair(scheme, program, ALIEN)
        for scheme, program in PROGRAMS
        if not names or {scheme, program, program.partition(":")[0]} & set(names)
    ]


def concerns(pair: Pair) -> tuple[str, ...]:
    """The schemes whose status depends on a pair: native, and one of Narrows' BPF programs. None where the
    other is a third-party program, which has its own rules."""
    if pair.tolerance is ALIEN:
        return ()
    return (pair.scheme,) if pair.reference.startswith("linux:") else (pair.scheme, pair.reference)
