"""Completion of words on the command line: names of scenarios, schemes and figures."""

from __future__ import annotations


def scenario_names(incomplete: str) -> list[str]:
    """Names of shipped scenarios; files complete as everywhere, where no name fits."""
    from narrows.scenario.shipped import shipped

    return [one.name for one in shipped() if one.name.startswith(incomplete)]


def scheme_names(incomplete: str) -> list[str]:
    """Names of schemes: ours, those of our BPF programs, and those of this kernel."""
    from pathlib import Path

    from narrows.scenario import registry
    from narrows.scenario.prefixes import KERNEL_PREFIX

    known = registry.load()
    try:
        kernels = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    except OSError:
        kernels = []
    from narrows.scenario.programs import store

    names = [*known.schemes, *known.bpf, *(KERNEL_PREFIX + name for name in kernels), *store.schemes()]
    return [name for name in names if name.startswith(incomplete)]


def scheme_lists(incomplete: str) -> list[str]:
    """The same for the last word of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in scheme_names(last)]


def figure_names(incomplete: str) -> list[str]:
    """Names of figures."""
    from narrows.report import figures

    names = [
        word.replace("_", "-") for kind in figures.registry().values() for word in (kind.name, *kind.also)
    ]
    return [name for name in names if name.startswith(incomplete)]
