"""Files that are not models, or odd ones: reported in one sentence, wherever they are, and without
escapes."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import model_kit
from narrows import files
from narrows.cli.all_commands import app
from narrows.documents.components import Values
from narrows.errors import DataError
from narrows.files import MOST_BYTES
from narrows.models import store
from narrows.models.convert import convert
from narrows.models.format import summary
from test_models import home, scenario
from test_pantheon_trips import nothing_regular

__all__ = ["home"]


def narrows(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, DataError), done.exception
    return done


def with_header(header: str, data: bytes = b"") -> bytes:
    """A model file with an arbitrary header."""
    return len(header.encode()).to_bytes(8, "little") + header.encode() + data


_REMY = '"__metadata__": {"kind": "remy"}'
ODD = {
    "not finite": f'{{{_REMY}, "a": {{"dtype": "F32", "shape": [1e999], "data_offsets": [0, 0]}}}}',
    "not whole": f'{{{_REMY}, "a": {{"dtype": "F32", "shape": [1.5], "data_offsets": [0, 0]}}}}',
    "escape in kind": '{"__metadata__": {"kind": "re\\u001b[31mmy"}}',
    "lines in kind": '{"__metadata__": {"kind": "remy\\nadded"}}',
    "no kind": "{}",
    "escape in array": f'{{{_REMY}, "\\u001b": {{"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}}}',
    "length of zero": f'{{{_REMY}, "a": {{"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}}}',
    "type of a list": f'{{{_REMY}, "a": {{"dtype": [], "shape": [0], "data_offsets": [0, 0]}}}}',
    "half a character": '{"__metadata__": {"kind": "remy", "from": "\\ud800"}}',
    "no text": '{"__metadata__": {"kind": "remy", "from": 1}}',
    "deep": f'{{{_REMY}, "a": ' + 5000 * "[",
    "no object": "[]",
}


@pytest.mark.parametrize("header", ODD.values(), ids=list(ODD))
def test_an_odd_header_is_reported_and_harms_no_other_model(tmp_path: Path, home: Path, header: str) -> None:
    home.mkdir(parents=True)
    (home / "mine.safetensors").write_bytes(model_kit.small_network())
    (home / "odd.safetensors").write_bytes(with_header(header))
    done = narrows("models", "add", "other", home / "odd.safetensors")
    told = str(done.exception)
    assert told.startswith(f"{home / 'odd.safetensors'}: it") and told.isprintable()
    rows = {row["name"]: row for row in json.loads(narrows("models", "list", "--json").output)["models"]}
    assert rows["odd"]["problem"] and rows["odd"]["kind"] is None and not rows["mine"]["problem"]
    assert "installed models: mine" in narrows("schemes", "indigo").output
    assert scenario("[{indigo: mine}, {muses: missing}]").schemes


@given(st.binary(max_size=60) | st.text().map(str.encode), st.text(max_size=5))
def test_any_header_is_read_or_refused(content: bytes, kind: str) -> None:
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    whole = {"__metadata__": {"kind": kind}, kind or "a": empty}
    for header in (content, json.dumps(whole).encode()):
        try:
            found = summary(len(header).to_bytes(8, "little") + header)
        except DataError as error:
            assert str(error).isprintable()
        else:
            assert found.kind.isprintable() and json.dumps(found.notes, ensure_ascii=False).encode()


def test_notes_are_printed_in_one_line_without_escapes(tmp_path: Path, home: Path) -> None:
    header = '{"__metadata__": {"kind": "remy", "source": "a\\u001b[2Jb\\nsha256  0", "\\u009b": "1"}}'
    (tmp_path / "odd.safetensors").write_bytes(with_header(header))
    done = narrows("models", "show", tmp_path / "odd.safetensors")
    assert r"source  a\x1b[2Jb\nsha256  0" in done.output and r"\x9b    1" in done.output
    assert all(line.isprintable() for line in done.output.splitlines())


def test_models_that_cannot_be_read_are_rows_with_a_problem(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(parents=True)
    (home / "mine.safetensors").write_bytes(model_kit.small_network())
    with (home / "large.safetensors").open("wb") as stream:
        stream.truncate(MOST_BYTES + 1)
    name = os.fsdecode(b"\xff\x1b.safetensors")
    (home / name).write_bytes(model_kit.small_network())
    read_whole = files.read_whole

    def refused(path: Path, what: str) -> bytes:
        if path.name == "large.safetensors":
            return read_whole(path, what)
        raise PermissionError(13, "Permission denied")

    rows = json.loads(narrows("models", "list", "--json").output)["models"]
    problems = {row["name"]: row["problem"] for row in rows}
    large = "is larger than 200 MB, so it is not a model"
    assert problems == {"large": large, "mine": None, r"\udcff\x1b": None}
    assert store.names_of_kind("indigo") == ("mine",), "scenarios can't name the other"
    assert "200000.0 kB" in narrows("models", "list").output
    monkeypatch.setattr(store, "read_whole", refused)
    rows = json.loads(narrows("models", "list", "--json").output)["models"]
    assert {row["problem"] for row in rows} == {large, "can't be read: permission denied"}


@pytest.mark.parametrize("name", ["pipe", "pipe.index"])
def test_only_regular_files_are_models(tmp_path: Path, home: Path, name: str) -> None:
    with nothing_regular(tmp_path / name, "fifo"):
        done = narrows("models", "add", "x", tmp_path / name)
    assert f"{tmp_path / name}" in str(done.exception) and "is not a regular file" in str(done.exception)


def test_a_folder_with_several_checkpoints_asks_for_one(tmp_path: Path, home: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    done = narrows("models", "add", "x", folder)
    assert "folder: is a folder without a checkpoint (NAME.index)" in str(done.exception)
    index = model_kit.checkpoint(folder, model_kit.tensors(9, 3, 1))
    assert convert(folder) == convert(index)
    for number in range(5):
        (folder / f"old-{number}.index").touch()
    done = narrows("models", "add", "x", folder)
    assert "has 6 checkpoints; name one of them: model.index, old-0.index" in str(done.exception)


def test_models_of_one_name_are_distinguished(tmp_path: Path, home: Path) -> None:
    for number, folder in enumerate(("a", "b", "x/a", "c")):
        model_kit.checkpoint(tmp_path / folder, model_kit.tensors(9, 3, number % 3 + 1))
    home.mkdir(parents=True)
    (home / "model.safetensors").write_bytes(model_kit.small_network())

    def labels(*models: str) -> list[str]:
        written = ", ".join(f"{{indigo: {model}, header: 0 B}}" for model in models)
        rows = scenario(f"[{written}]", tmp_path).schemes
        assert len({row.slug for row in rows}) == len(rows)
        return [row.label.removeprefix("indigo model=").removesuffix(" header=0B") for row in rows]

    assert labels("a/model.index") == ["model"]
    assert labels("a/model.index", "b/model.index", "model") == ["a/model", "b/model", "model"]
    digests = [
        hashlib.sha256(convert(tmp_path / name / "model.index")).hexdigest()[:8] for name in ("a", "x/a")
    ]
    assert labels("a/model.index", "x/a/model.index", "b/model") == [
        *(f"model@{digest}" for digest in digests),
        "b/model",
    ]
    mixed = scenario(
        "[reno]\nflows: [{scheme: {indigo: a/model}}, {scheme: {indigo: b/model}}, {}]", tmp_path
    )
    assert mixed.schemes[0].label == "indigo model=a/model + indigo model=b/model + reno"
    for same in (("a/model.index", "a/model"), ("a/model", "c/model")):
        with pytest.raises(DataError, match="is in the list already"):
            labels(*same)


def test_scenarios_name_checkpoints_as_the_command_does(tmp_path: Path) -> None:
    index = model_kit.checkpoint(tmp_path / "ck", model_kit.tensors(9, 3, 1))
    names = ("ck/model.index", "ck/model", "ck/", "./ck", "ck/model.data-00000-of-00001")
    flows = (scenario(f"[{{indigo: {name}}}]", tmp_path).schemes[0].flows[0] for name in names)
    digests = {Values(flow.params).digest("model") for flow in flows}
    assert index.is_file() and len(digests) == 1 and None not in digests
    with pytest.raises(DataError, match=r"has 2 checkpoints; name one of them: model\.index, new\.index"):
        (tmp_path / "ck" / "new.index").touch()
        scenario("[{indigo: ./ck}]", tmp_path)
    for name in ("ck/none", "ck/none.index"):
        with pytest.raises(DataError, match=f'file "{name}" does not exist'):
            scenario(f"[{{indigo: {name}}}]", tmp_path)
