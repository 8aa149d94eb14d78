"""Users' compressed files: the readable ones, and the refused ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest

from narrows.errors import DataError
from narrows.files import read_decompressed

TEXT = b"".join(b"%d\n" % number for number in range(20_000))


def zstd(content: bytes) -> bytes:
    compressed = pyarrow.compress(content, "zstd", asbytes=True)
    assert isinstance(compressed, bytes)
    return compressed


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}


@pytest.mark.parametrize("form", FORMS)
def test_compressed_content_is_read_whatever_the_name(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.log").write_bytes(FORMS[form](TEXT))
    assert read_decompressed(tmp_path / "a.log", "log") == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_members_one_after_the_other_are_one_content(tmp_path: Path, form: str) -> None:
    (tmp_path / "a").write_bytes(b"".join(FORMS[form](part) for part in (TEXT[:1000], TEXT[1000:])))
    assert read_decompressed(tmp_path / "a", "log") == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_a_bomb_is_refused_with_the_limit(tmp_path: Path, form: str) -> None:
    (tmp_path / "bomb").write_bytes(FORMS[form](bytes(30_000_000)))
    assert (tmp_path / "bomb").stat().st_size < 1_000_000
    with pytest.raises(DataError, match=rf"is {form} and holds more than 2 MB .* the most .* of a log"):
        read_decompressed(tmp_path / "bomb", "log", 2_000_000)
    # A file of exactly the maximum size is read.
    (tmp_path / "fits").write_bytes(FORMS[form](bytes(2_000_000)))
    assert len(read_decompressed(tmp_path / "fits", "log", 2_000_000)) == 2_000_000


@pytest.mark.parametrize("form", FORMS)
def test_compressed_data_cut_anywhere_or_changed_are_refused(tmp_path: Path, form: str) -> None:
    whole = FORMS[form](TEXT)
    for length in (10, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(DataError, match=f"is {form}.*(cut off|damaged)"):
            read_decompressed(tmp_path / "cut", "log")
    if form == "zstd":
        return  # Without the optional checksum, modified data may decompress to something else.
    (tmp_path / "changed").write_bytes(whole[:100] + bytes(200) + whole[300:])
    with pytest.raises(DataError, match=f"is {form}.*damaged"):
        read_decompressed(tmp_path / "changed", "log")


def test_plain_content_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_bytes(TEXT)
    assert read_decompressed(tmp_path / "plain.gz", "log") == TEXT


@pytest.mark.parametrize("form", FORMS)
def test_compressed_traces_are_read_and_named_by_what_cannot_be_seen(tmp_path: Path, form: str) -> None:
    from narrows.traces import formats

    (tmp_path / "a.trace.x").write_bytes(FORMS[form](b"0\n1\n4\n"))
    trace, name = formats.read(tmp_path / "a.trace.x")
    assert name == "mahimahi" and trace.times_ms.tolist() == [0, 1, 4]  # type: ignore[union-attr]
    (tmp_path / "nul.trace").write_bytes(FORMS[form](b"0\n1\n\0\n"))
    with pytest.raises(DataError, match=r'nul.trace:3: "\\x00" is not a time'):
        formats.read(tmp_path / "nul.trace")
