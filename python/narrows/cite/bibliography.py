"""The publications behind schemes, queues, traces and laboratories (`publications.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from narrows.documents.data import DamagedError, from_data
from narrows.documents.publications import Bibliography, CitedEntry, Family, Sources, Unpublished
from narrows.errors import DataError
from narrows.files import read_text
from narrows.scenario import registry
from narrows.scenario.prefixes import BPF_PREFIX, KERNEL_PREFIX

#: The publication of Narrows itself, and that of the kernel.
NARROWS, LINUX = "narrows", "linux"
_FILE = Path(__file__).with_name("publications.toml")
#: Families whose members need no publication: only those that follow one are listed.
_OPTIONAL = ("rate", "link", "traffic")


@lru_cache(maxsize=1)
def load() -> Bibliography:
    """The bibliography. Raises `DataError` if it is not well formed, or names an unknown publication."""
    return parse(read_text(_FILE))


def parse(text: str) -> Bibliography:
    """Reads a bibliography in TOML."""
    try:
        bibliography = from_data(tomllib.loads(text), Bibliography)
    except (tomllib.TOMLDecodeError, DamagedError) as error:
        raise DataError(f"{_FILE.name}: {error}") from None
    for family, members in _families(bibliography).items():
        for name, sources in members.items():
            for key in [] if isinstance(sources, Unpublished) else sources:
                if key not in bibliography.publications:
                    raise DataError(f"{_FILE.name}: {family} {name}: there is no publication {key}")
    return bibliography


def _families(bibliography: Bibliography) -> dict[str, Family]:
    return {
        "scheme": bibliography.schemes,
        "kernel scheme": bibliography.kernel,
        "program": bibliography.programs,
        "queue": bibliography.queues,
        "rate": bibliography.rates,
        "link": bibliography.links,
        "traffic": bibliography.traffic,
        "trace": bibliography.traces,
        "laboratory": bibliography.laboratories,
    }


def cite_narrows() -> CitedEntry:
    """Narrows itself."""
    return CitedEntry(kind="narrows", name="Narrows", keys=[NARROWS])


def cite_scheme(name: str) -> CitedEntry:
    """The publications of a scheme by its name in scenarios, whether it is registered or not."""
    known = load()
    sources: Sources | None
    if name.startswith(KERNEL_PREFIX):
        sources = known.kernel.get(name.removeprefix(KERNEL_PREFIX), [LINUX])
    elif name.startswith(BPF_PREFIX):
        entry = registry.load().bpf.get(name)
        native = entry.native if entry is not None else name.removeprefix(BPF_PREFIX)
        sources = known.schemes.get(native)
    else:
        program = known.programs.get(name, known.programs.get(name.partition(":")[0]))
        sources = known.schemes.get(name, program)
    return _entry("scheme", name, sources)


def cite_component(kind: str, name: str) -> CitedEntry:
    """The publications of a `queue`, `rate`, `link`, `traffic`, `trace` or `laboratory`."""
    return _entry(kind, name, _families(load())[kind].get(name))


def is_listed(entry: CitedEntry) -> bool:
    """False for a kind that follows no publication, about which nothing needs to be said."""
    return bool(entry.keys) or entry.kind not in _OPTIONAL


def _entry(kind: str, name: str, sources: Sources | None) -> CitedEntry:
    if sources is None:
        return CitedEntry(kind=kind, name=name, why_none="no publication is recorded")
    if isinstance(sources, Unpublished):
        return CitedEntry(kind=kind, name=name, why_none=sources.unpublished)
    return CitedEntry(kind=kind, name=name, keys=list(sources))


def find_gaps(
    schemes: Iterable[str] = (),
    queues: Iterable[str] = (),
    traces: Iterable[str] = (),
    laboratories: Iterable[str] = (),
) -> list[str]:
    """A sentence for each of these that is neither given a publication nor declared as unpublished."""
    wanted = [cite_scheme(name) for name in schemes]
    for kind, names in (("queue", queues), ("trace", traces), ("laboratory", laboratories)):
        wanted += [cite_component(kind, name) for name in names]
    tables = {"scheme": "schemes", "queue": "queues", "trace": "traces", "laboratory": "laboratories"}
    return [
        f"{entry.kind} {entry.name} has no publication: add a line to"
        f" [{'programs' if ':' in entry.name and entry.kind == 'scheme' else tables[entry.kind]}] in"
        f' python/narrows/cite/publications.toml, a list of keys or {{ unpublished = "why" }}'
        for entry in wanted
        if not entry.keys and entry.why_none == "no publication is recorded"
    ]
