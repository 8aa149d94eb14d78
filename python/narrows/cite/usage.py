"""The schemes, queues, traces and laboratories that a campaign used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from narrows import __version__
from narrows.campaign.json_files import read_json
from narrows.campaign.store import CampaignFolder
from narrows.cite.bibliography import (
    LINUX,
    NARROWS,
    cite_component,
    cite_narrows,
    cite_scheme,
    is_listed,
    load,
)
from narrows.cite.bibtex import write_entries
from narrows.documents.components import Component
from narrows.documents.data import DamagedError, from_data
from narrows.documents.publications import Citation, CitedEntry, LaboratoryNote, NamedFile, Publication
from narrows.documents.resolved import BULK, Network, Resolved
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.hashes import file_sha256
from narrows.lab.running import FORMAT as LAB_RUN
from narrows.lab.running import NOTE
from narrows.scenario import registry
from narrows.scenario.prefixes import KERNEL_PREFIX
from narrows.traces.store import find_shipped_folder, list_traces

_MOST_BYTES = 100_000_000


def list_campaign(folder: CampaignFolder) -> list[CitedEntry]:
    """The things that a campaign used, in the order of its scenario: laboratory, schemes, queues, rates, link
    elements, traffic, traces."""
    scenario = folder.resolved
    entries = [*_laboratory(folder.path), *map(cite_scheme, _schemes(scenario))]
    for kind, names in _components(scenario).items():
        entries += [cite_component(kind, name) for name in names]
    entries += [_trace(name, digest) for name, digest in _traces(scenario).items()]
    unique = {(entry.kind, entry.name): entry for entry in entries if is_listed(entry)}
    return list(unique.values())


def _schemes(scenario: Resolved) -> dict[str, None]:
    names = {flow.scheme: None for row in scenario.schemes for flow in row.flows if flow.scheme}
    # Imports know the labels of their rows alone.
    return names or dict.fromkeys(row.label for row in scenario.schemes)


def _networks(scenario: Resolved) -> Iterator[Network]:
    yield scenario.network
    for row in scenario.schemes:
        if row.overlay is not UNSET and row.overlay.network is not UNSET:
            yield row.overlay.network


def _components(scenario: Resolved) -> dict[str, list[str]]:
    elements = [element for network in _networks(scenario) for element in network.elements]
    bottlenecks = [element for element in elements if element.is_bottleneck]
    traffic = (flow.traffic_kind for row in scenario.schemes for flow in row.flows)
    return {
        "queue": [part.kind for element in bottlenecks if (part := element.queue) is not None],
        "rate": [part.kind for element in bottlenecks if (part := element.rate) is not None],
        "link": [element.kind for element in elements if not element.is_bottleneck],
        "traffic": [kind for kind in traffic if kind != BULK],
    }


def _traces(scenario: Resolved) -> dict[str, str]:
    """The names of trace files, and their SHA-256."""
    return {
        name: digest
        for network in _networks(scenario)
        for element in network.elements
        for name, digest in _files(element)
    }


def _files(component: Component) -> Iterator[tuple[str, str]]:
    for value in component.params.values():
        if isinstance(value, Component):
            yield from _files(value)
        elif isinstance(value, Mapping):
            file = from_data(value, NamedFile)
            yield file.name, file.sha256


@lru_cache(maxsize=1)
def _read_shipped() -> dict[str, str]:
    """The names of the shipped traces by their SHA-256."""
    return {
        file_sha256(read_whole(path, "trace", _MOST_BYTES)): path.name
        for path in list_traces(find_shipped_folder())
    }


def _trace(name: str, digest: str) -> CitedEntry:
    shipped = _read_shipped().get(digest)
    if shipped is not None:
        return cite_component("trace", shipped)
    return CitedEntry(
        kind="trace", name=name, why_none="it does not come with Narrows; cite where it is from"
    )


def _laboratory(folder: Path) -> Iterator[CitedEntry]:
    """The laboratory of which a campaign is an experiment."""
    note = folder.resolve().parent / NOTE
    if note.is_file():
        try:
            name = from_data(read_json(note, LAB_RUN), LaboratoryNote).lab
        except DamagedError as error:
            raise DataError(f"{note}: is damaged: {error}") from None
        yield cite_component("laboratory", name)


def list_named(name: str) -> list[CitedEntry]:
    """The schemes, queues, traces and so on of that name; empty if there is none."""
    known, core = load(), registry.load()
    entries = []
    program = {name, name.partition(":")[0]} & known.programs.keys()
    if name in core.schemes or name in core.bpf or name.startswith(KERNEL_PREFIX) or program:
        entries.append(cite_scheme(name))
    for kind, there in (
        ("queue", name in core.queues),
        ("rate", name in core.rates),
        ("link", name in core.links),
        ("traffic", name in core.traffic),
        ("trace", name in known.traces),
        ("laboratory", name in known.laboratories),
    ):
        if there:
            entries.append(cite_component(kind, name))
    return entries


def list_names() -> list[str]:
    """All names that can be cited."""
    known, core = load(), registry.load()
    kernel = [KERNEL_PREFIX + name for name in known.kernel]
    families = (core.schemes, core.bpf, kernel, known.programs, core.queues, core.rates, core.links)
    others = (core.traffic, known.traces, known.laboratories)
    return list(dict.fromkeys(name for family in (*families, *others) for name in family))


def cite(entries: Iterable[CitedEntry], folders: Sequence[CampaignFolder] = ()) -> Citation:
    """The citation of Narrows and of these things, each once; versions of Narrows and of the kernel are those
    of the campaigns."""
    unique = {(entry.kind, entry.name): entry for entry in (cite_narrows(), *entries)}
    used = list(unique.values())
    keys = dict.fromkeys(key for entry in used for key in entry.keys)
    publications = {key: _with_version(key, load().publications[key], used, folders) for key in keys}
    return Citation(used=used, publications=publications, bibtex=write_entries(publications, used))


def _with_version(
    key: str, publication: Publication, used: Iterable[CitedEntry], folders: Sequence[CampaignFolder]
) -> Publication:
    if key == NARROWS:
        made = [folder.header.versions for folder in folders]
        versions = [version.narrows for version in made if version is not None and version.narrows]
        return replace(publication, version=_in_words(versions or [__version__]))
    ran = any(entry.name.startswith(KERNEL_PREFIX) for entry in used)
    if key == LINUX and ran:
        hosts = [folder.header.host for folder in folders]
        kernels = [host.kernel for host in hosts if host is not None and host.kernel]
        return replace(publication, version=_in_words(kernels)) if kernels else publication
    return publication


def _in_words(versions: Iterable[str]) -> str:
    unique = list(dict.fromkeys(versions))
    return f"version{'s' if len(unique) > 1 else ''} {', '.join(unique)}"


def open_campaign(path: Path) -> CampaignFolder:
    """The campaign of a folder, or of one of its cells. Raises `DataError` if there is none."""
    folder = path.resolve().parent.parent if (path / "run.json").is_file() else path
    if (folder / "sweep.json").is_file():
        raise DataError(f"{path}: is a sweep; cite its schemes by their names, as in narrows cite cubic")
    return CampaignFolder.read(folder)
