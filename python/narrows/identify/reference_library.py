"""The library of references: the cards of known schemes on the probes, each as a row of values.

It is one Parquet file beside this module: a row for each scheme and seed, a column for each line of the
card, and for the runs on the probes' own paths two short series per probe. `python -m validation identify-
library` makes it, and makes anew only what is stale: the header has a digest of the packets of each scheme
on two probes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrows.documents.data import DamagedError, Number, Part, from_data, to_data
from narrows.documents.identify import Card, Line
from narrows.errors import DataError
from narrows.identify.probe_paths import PathFactors
from narrows.identify.trace import Floats, Trace

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "narrows/identify-library/1"
SHIPPED = Path(__file__).with_name("reference_library.parquet")
#: Points of a series; of each kind one, over the whole run.
POINTS = 128
QUEUE, FLIGHT = "queue", "flight"
_META = b"narrows"
_SERIES = "series"
#: The first columns.
_PLAIN = ("scheme", "seed", "rate", "rtt", "buffer")

#: The name of a line and its probe.
Key = tuple[str, str]
Value = float | str


class LineFacts(Part, frozen=True, kw_only=True):
    """A line that the library knows: its key, and the median of its resolutions."""

    name: str
    probe: str
    resolution: Number

    @property
    def key(self) -> Key:
        """Its feature and its probe."""
        return self.name, self.probe


class Header(Part, frozen=True, kw_only=True):
    """The facts of a library."""

    format: str
    narrows: str
    lines: list[LineFacts]
    #: By scheme, a digest of its behaviour.
    digests: dict[str, str]


@dataclass(frozen=True)
class Reference:
    """The card of a scheme in one run of each probe. A line without a value could not be measured."""

    scheme: str
    seed: int
    factors: PathFactors
    values: Mapping[Key, Value]
    #: By probe and kind: the queueing delay in smallest round trips, packets in flight in bandwidth-delay
    #: products.
    series: Mapping[tuple[str, str], Floats] = field(default_factory=dict)

    @classmethod
    def from_card(
        cls, card: Card, seed: int, factors: PathFactors, series: Mapping[tuple[str, str], Floats]
    ) -> Reference:
        """The row of a card from one run of each probe."""
        values = {line.key: value for line in card.lines if (value := value_of(line)) is not None}
        return cls(card.scheme, seed, factors, values, series)


@dataclass(frozen=True)
class Library:
    """All references and their header."""

    header: Header
    references: Sequence[Reference]

    def list_schemes(self) -> list[str]:
        """The schemes in order."""
        return list(dict.fromkeys(reference.scheme for reference in self.references))

    def series_of(self, scheme: str) -> Mapping[tuple[str, str], Floats]:
        """The series of a scheme on the probes' own paths; empty for a scheme without."""
        return next((row.series for row in self.references if row.scheme == scheme and row.series), {})


def value_of(line: Line) -> Value | None:
    """The value or the most frequent word of a line; None if it was not measured."""
    if line.word is not None:
        return line.word
    return None if line.value is None else float(line.value)


def list_lines(cards: Iterable[Card]) -> list[LineFacts]:
    """The lines that any of the cards has."""
    resolutions: dict[Key, list[float]] = {}
    for card in cards:
        for line in card.lines:
            if line.why is None:
                resolutions.setdefault(line.key, []).append(float(line.resolution))
    return [
        LineFacts(name=name, probe=probe, resolution=round(float(np.median(several)), 6))
        for (name, probe), several in resolutions.items()
    ]


def make_series(trace: Trace) -> dict[str, Floats]:
    """The two series of a trace, sampled at equal distances, by kind."""
    edges = np.linspace(0, trace.duration_s, POINTS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    index = np.maximum(np.searchsorted(trace.sent_s, middles, "right") - 1, 0)
    product = trace.capacity_bps * trace.min_rtt_s / 8 / trace.packet_bytes
    return {
        QUEUE: np.round(np.nan_to_num(trace.queueing_s[index]) / trace.min_rtt_s, 2),
        FLIGHT: np.round(trace.in_flight[index] / product, 2),
    }


# -- the file --------------------------------------------------------------------------------------


def write_library(library: Library, path: Path) -> None:
    """Writes the file."""
    import msgspec
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = library.references
    columns: dict[str, pa.Array] = {
        "scheme": pa.array([row.scheme for row in rows]).dictionary_encode(),
        "seed": pa.array([row.seed for row in rows], pa.int32()),
        "rate": pa.array([row.factors.rate for row in rows], pa.float32()),
        "rtt": pa.array([row.factors.rtt for row in rows], pa.float32()),
        "buffer": pa.array([row.factors.buffer for row in rows], pa.float32()),
    }
    for line in library.header.lines:
        values = [row.values.get(line.key) for row in rows]
        is_word = any(isinstance(value, str) for value in values)
        columns[_column(line.key)] = pa.array(values, pa.string() if is_word else pa.float32())
    for probe, kind in dict.fromkeys(key for row in rows for key in row.series):
        several = [row.series.get((probe, kind)) for row in rows]
        columns[f"{_SERIES} {_column((kind, probe))}"] = pa.array(several, pa.list_(pa.float32()))
    table = pa.table(columns).replace_schema_metadata({_META: msgspec.json.encode(to_data(library.header))})
    pq.write_table(table, path, compression="zstd", compression_level=19)


@lru_cache(maxsize=2)
def read_library(path: Path = SHIPPED) -> Library:
    """Reads the file. Raises `DataError` if it is missing, damaged, or of a newer format."""
    import msgspec
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Not read_table, which imports pandas where it is installed.
        table = pq.ParquetFile(path).read()
        header = from_data(msgspec.json.decode((table.schema.metadata or {})[_META]), Header)
    except (OSError, pa.ArrowException, KeyError, msgspec.DecodeError, DamagedError) as error:
        raise DataError(f"{path}: is not a library of references ({error})") from None
    if header.format != FORMAT:
        raise DataError(f"{path}: has the format {header.format}; this version reads {FORMAT}")
    lists = {
        name: table.column(name).to_pylist() for name in table.column_names if not name.startswith(_SERIES)
    }
    labels, seeds, *multiplied = (lists[name] for name in _PLAIN)
    lines = [(line.key, lists[_column(line.key)]) for line in header.lines]
    series = {}
    for name in table.column_names:
        if name.startswith(_SERIES):
            kind, _, probe = name.removeprefix(f"{_SERIES} ").partition(" ")
            series[probe, kind] = _split(table.column(name).combine_chunks())
    references = []
    paths = zip(*multiplied, strict=True)
    for index, (scheme, seed, factors) in enumerate(zip(labels, seeds, paths, strict=True)):
        references.append(
            Reference(
                scheme,
                seed,
                PathFactors(*(round(factor, 3) for factor in factors)),
                {key: values[index] for key, values in lines if values[index] is not None},
                {key: part for key, parts in series.items() if (part := parts[index]) is not None},
            )
        )
    return Library(header, references)


def _split(lists: pa.ListArray) -> list[Floats | None]:
    """The lists of a column."""
    values = lists.values
    # Not to_numpy, which imports pandas where it is installed.
    stored = np.frombuffer(values.buffers()[1], np.float32)[values.offset : values.offset + len(values)]
    flat = stored.astype(np.float64)
    ends = lists.offsets.to_pylist()
    return [
        flat[start:end] if valid else None
        for start, end, valid in zip(ends, ends[1:], lists.is_valid().to_pylist(), strict=False)
    ]


def _column(key: Key) -> str:
    return f"{key[0]} {key[1]}"
