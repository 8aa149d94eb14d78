"""Models: importing synthetic files, the user's folder, the command line, and models in scenarios."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

import forked_commands
import model_kit
from narrows.campaign.plan import make_plan
from narrows.documents.agent import MachineFacts
from narrows.documents.components import Values
from narrows.errors import DataError, ScenarioError, UnavailableError
from narrows.models import checkpoint, networks, remy, store
from narrows.models.convert import convert
from narrows.models.format import FORMER, summary, write
from narrows.scenario import registry
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve
from narrows.scenario.yaml_tree import parse

SCENARIO = """\
schema: narrows/scenario/1
question: Do models run?
path:
  forward:
    - {rate: 12 Mbit/s, queue: {droptail: 1 bdp}}
    - {delay: 20 ms}
  backward:
    - {delay: 20 ms}
schemes: SCHEMES
duration: 2 s
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of models, empty; none come with Narrows."""
    monkeypatch.delenv("NARROWS_MODELS", raising=False)
    monkeypatch.setenv("TEST_SHIPPED", str(tmp_path / "shipped"))
    monkeypatch.setattr(store, "find_shipped_folder", lambda: tmp_path / "shipped")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return store.user_folder()


def narrows(*arguments: str, cwd: Path) -> Any:
    done = forked_commands.run_in(os.environ, arguments, cwd, program="shipped_cli")
    assert "Traceback" not in done.stderr, done.stderr
    return done


def scenario(schemes: str, folder: Path | None = None) -> Scenario:
    tree = parse(SCENARIO.replace("SCHEMES", schemes), "test.yaml")
    return resolve(tree, registry.load(), "test.yaml", folder)


# -- rule tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [model_kit.table(4), model_kit.TEXT.encode()], ids=["binary", "text"])
def test_both_forms_of_a_rule_table_say_the_same(content: bytes) -> None:
    found = remy.arrays(content)
    end = model_kit.END
    assert found["lower"].tolist() == [[0, 0, 0, 0], [0, 0, 2, 0]]
    assert found["upper"].tolist() == [[end, end, 2, end], [end, end, end, end]]
    assert found["increment"].tolist() == [7, -3]
    assert found["multiple"].tolist() == [0.5, 1.0]
    assert found["spacing_ms"].tolist() == [0.25, 1.5]


def test_a_table_of_three_signals_has_a_fourth_that_decides_nothing() -> None:
    found = remy.arrays(model_kit.table(3))
    assert found["lower"][:, 3].tolist() == [0, 0]
    assert found["upper"][:, 3].tolist() == [remy.END, remy.END]
    assert found["upper"].shape == (2, 4)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "no rules"),
        (b"\xff" * 20, "protocol buffer"),
        (b"\x1a\x05abc", "ends within a field"),
        (model_kit.table(4)[:-3], "ends within a field"),
        (model_kit.table(2), "lacks bounds"),
        (b"children {", "ends too early"),
        (b"children { leaf { window_increment: x } }", '"x", which is not a number'),
        (b"children ) leaf", "line 1 is not a protocol buffer in text form"),
        (b"leaf { window_increment: 3 }", "without a domain"),
        (model_kit.TEXT.replace("intersend: 1.5", "").encode(), "without an action"),
        (b"children {" * 100, "levels within each other"),
    ],
)
def test_files_that_are_not_rule_tables_are_refused(content: bytes, word: str) -> None:
    with pytest.raises(DataError, match=word):
        remy.arrays(content)


@given(st.binary(max_size=200), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6))
def test_any_bytes_are_a_rule_table_or_refused(content: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(model_kit.table(4))
    for at, byte in changes:
        changed[at % len(changed)] = byte
    for candidate in (content, bytes(changed)):
        try:
            remy.arrays(candidate)
        except DataError as error:
            assert "\n" not in str(error)


# -- checkpoints -------------------------------------------------------------------------------------


def test_the_checksum_is_that_of_its_standard() -> None:
    # RFC 3720, appendix B.4.
    assert checkpoint.crc32c(bytes(32)) == 0x8A9136AA
    assert checkpoint.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert checkpoint.crc32c(bytes(range(32))) == 0x46DD794E


@pytest.mark.parametrize("blocks", [1, 2, 7])
@pytest.mark.parametrize(("inputs", "units", "layers", "kind"), [(9, 3, 1, "indigo"), (11, 4, 2, "muses")])
def test_a_network_is_found_in_its_checkpoint(
    tmp_path: Path, inputs: int, units: int, layers: int, kind: str, blocks: int
) -> None:
    parts = model_kit.tensors(inputs, units, layers)
    index = model_kit.checkpoint(tmp_path / "a", parts, blocks=blocks)
    for path in (index, index.with_suffix(""), index.parent, index.with_name("model.data-00000-of-00001")):
        prefix = checkpoint.prefix_of(path)
        assert prefix == index.with_suffix(""), path
    found_kind, found = networks.arrays(index.with_suffix(""))
    assert found_kind == kind
    cell = "rnn/multi_rnn_cell/cell_0/basic_lstm_cell"
    assert np.array_equal(found["kernel0"], parts[f"{cell}/kernel"])
    assert np.array_equal(found["output_weights"], parts["fully_connected/weights"])
    assert len(found) == 2 + 2 * layers


def test_of_several_networks_the_shared_one_counts(tmp_path: Path) -> None:
    parts = model_kit.tensors(9, 3, 1)
    both = {f"global/{name}": tensor for name, tensor in parts.items()}
    both |= {f"local/{name}": tensor * 2 for name, tensor in parts.items()}
    index = model_kit.checkpoint(tmp_path, both, prefix="")
    _, found = networks.arrays(index.with_suffix(""))
    assert np.array_equal(found["output_bias"], parts["fully_connected/biases"])


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    parts = model_kit.tensors(9, 3, 1)
    index = model_kit.checkpoint(tmp_path, parts)
    data = index.with_name("model.data-00000-of-00001")
    good_index, good_data = index.read_bytes(), data.read_bytes()
    prefix = index.with_suffix("")

    def refusal() -> str:
        with pytest.raises(DataError) as error:
            networks.arrays(prefix)
        return str(error.value)

    data.write_bytes(good_data[:-1])
    assert "is cut off" in refusal()
    data.write_bytes(bytes([good_data[0] ^ 1]) + good_data[1:])
    assert "checksum" in refusal()
    data.unlink()
    assert "can't be read: no such file" in refusal()
    data.write_bytes(good_data)
    index.write_bytes(good_index[:-1])
    assert "not the index of a checkpoint" in refusal()
    index.write_bytes(b"\x01" + good_index[1:])
    assert "checksum" in refusal()
    model_kit.checkpoint(tmp_path, model_kit.tensors(10, 3, 1))
    assert "has 10 inputs" in refusal()
    model_kit.checkpoint(tmp_path, {"weights": np.zeros((2, 2), dtype="<f4")})
    assert "no network of LSTM cells" in refusal()


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=8))
def test_any_index_is_read_or_refused(changes: list[tuple[int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        index = model_kit.checkpoint(Path(folder), model_kit.tensors(9, 2, 1))
        changed = bytearray(index.read_bytes())
        for at, byte in changes:
            changed[at % len(changed)] = byte
        index.write_bytes(changed)
        try:
            networks.arrays(index.with_suffix(""))
        except DataError as error:
            assert "\n" not in str(error)


# -- model files -------------------------------------------------------------------------------------


def test_a_model_file_matches_the_guide() -> None:
    content = write("k", {"n": np.array([1, 258], dtype="<i4")}, {"source": "here"})
    header = (
        b'{"__metadata__":{"kind":"k","source":"here"},"n":{"data_offsets":[0,8],"dtype":"I32","shape":[2]}}'
    )
    header += b" " * (-len(header) % 8)
    assert content == len(header).to_bytes(8, "little") + header + bytes([1, 0, 0, 0, 2, 1, 0, 0])
    found = summary(content)
    assert (found.kind, found.arrays, found.notes) == ("k", (("n", "i32", (2,)),), {"source": "here"})
    for bad in (b"x", b"narrows/model/2\n", content[:-1]):
        with pytest.raises(DataError, match="not a model file"):
            summary(bad)


def test_exports_of_trainers_are_models(tmp_path: Path, home: Path) -> None:
    arrays = {
        "output_bias": np.zeros(5, dtype=np.float32),
        "output_weights": np.zeros((2, 5), dtype=np.float32),
    }
    arrays |= {"bias0": np.zeros(8, dtype=np.float32), "kernel0": np.zeros((11, 8), dtype=np.float32)}
    save_file(arrays, tmp_path / "mine.safetensors", metadata={"kind": "indigo"})
    done = narrows("models", "add", "mine", "mine.safetensors", cwd=tmp_path)
    assert done.returncode == 0 and "in a scenario: {indigo: mine}" in done.stdout, done.stderr
    assert (home / "mine.safetensors").read_bytes() == (tmp_path / "mine.safetensors").read_bytes()
    save_file(arrays, tmp_path / "none.safetensors")
    done = narrows("models", "add", "none", "none.safetensors", cwd=tmp_path)
    assert done.returncode == 3 and "its metadata has no kind of a model" in done.stderr


def former_file(header: str, data: bytes = b"") -> bytes:
    """A file of the former format."""
    return FORMER + len(header.encode()).to_bytes(4, "little") + header.encode() + data


def test_files_of_the_format_before_are_converted(tmp_path: Path, home: Path) -> None:
    header = (
        '{"kind":"k","source":{"format":"F","file":"f"},"arrays":[{"name":"n","type":"i32","shape":[2]}]}'
    )
    (tmp_path / "old.model").write_bytes(former_file(header, bytes([1, 0, 0, 0, 2, 1, 0, 0])))
    expected = write("k", {"n": np.array([1, 258], dtype="<i4")}, {"source": "F, file f"})
    assert convert(tmp_path / "old.model") == expected
    for damaged in (former_file(header), former_file(header, bytes(9)), former_file("{"), FORMER):
        (tmp_path / "old.model").write_bytes(damaged)
        with pytest.raises(DataError, match=r"old\.model: "):
            convert(tmp_path / "old.model")
    home.mkdir(parents=True)
    (home / "tao.model").touch()
    assert store.how_to_add("tao").endswith(f"narrows models add tao {home / 'tao.model'}")


def test_the_same_model_gives_the_same_file(tmp_path: Path) -> None:
    index = model_kit.checkpoint(tmp_path / "a", model_kit.tensors(9, 3, 1))
    other = model_kit.checkpoint(tmp_path / "b", model_kit.tensors(9, 3, 1), blocks=3)
    assert convert(index) == convert(other.parent)
    assert summary(convert(index)).notes["source"].startswith("TensorFlow checkpoint, file ")


def test_converting_refuses_files_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"PK\x03\x04")
    with pytest.raises(DataError, match=r"a\.bin: is neither a model file, nor a checkpoint"):
        convert(tmp_path / "a.bin")
    with pytest.raises(DataError, match="can't be read"):
        convert(tmp_path / "nothing")


# -- the command line --------------------------------------------------------------------------------


def test_models_are_added_listed_shown_and_removed(tmp_path: Path, home: Path) -> None:
    assert "no models are installed" in narrows("models", "list", cwd=tmp_path).stdout
    (tmp_path / "t.dna").write_bytes(model_kit.table(4))
    done = narrows("models", "add", "tao", "t.dna", cwd=tmp_path)
    assert done.returncode == 0 and "in a scenario: {remy: tao}" in done.stdout, done.stderr
    index = model_kit.checkpoint(tmp_path / "net", model_kit.tensors(11, 4, 2))
    assert narrows("models", "add", "m", str(index.parent), cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in home.iterdir()) == ["m.safetensors", "tao.safetensors"]

    found = json.loads(narrows("models", "list", "--json", cwd=tmp_path).stdout)
    assert [(one["name"], one["kind"]) for one in found["models"]] == [("m", "muses"), ("tao", "remy")]
    listed = narrows("models", "list", cwd=tmp_path).stdout
    assert "LSTM, 2 x 4" in listed and "2 rules" in listed
    shown = narrows("models", "show", "tao", cwd=tmp_path).stdout
    assert "Remy rule table, file t.dna" in shown and "lower: 2 x 4 f64" in shown

    again = narrows("models", "add", "tao", "t.dna", cwd=tmp_path)
    assert again.returncode == 2 and "--force" in again.stderr
    assert narrows("models", "add", "tao", "t.dna", "--force", cwd=tmp_path).returncode == 0
    assert narrows("models", "add", "a/b", "t.dna", cwd=tmp_path).returncode == 3
    assert narrows("models", "add", "x.safetensors", "t.dna", cwd=tmp_path).returncode == 3
    assert narrows("models", "remove", "tao", cwd=tmp_path).returncode == 0
    gone = narrows("models", "remove", "tao", cwd=tmp_path)
    assert gone.returncode == 3 and 'no model "tao" is installed' in gone.stderr
    missing = narrows("models", "show", "tao", cwd=tmp_path)
    assert missing.returncode == 3 and "narrows models add tao PATH" in missing.stderr


def test_models_that_the_core_refuses_are_not_added(tmp_path: Path, home: Path) -> None:
    # Two rules over the same points.
    end = [model_kit.END] * 4
    twice = 2 * model_kit.field(2, model_kit.leaf([0.0] * 4, end, 1, 1.0, 1.0))
    (tmp_path / "t.dna").write_bytes(twice)
    done = narrows("models", "add", "tao", "t.dna", cwd=tmp_path)
    assert done.returncode == 3 and "its rules 0 and 1 overlap" in done.stderr, done.stderr
    (tmp_path / "k.safetensors").write_bytes(write("other", {"n": np.array([1], dtype="<i4")}, {}))
    done = narrows("models", "add", "tao", "k.safetensors", cwd=tmp_path)
    assert done.returncode == 3 and "kind other" in done.stderr
    assert not home.exists()


def test_the_list_of_schemes_tells_which_models_there_are(tmp_path: Path, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "mine.safetensors").write_bytes(model_kit.small_network())
    (home / "broken.safetensors").write_bytes(b"?")
    done = narrows("schemes", "--json", cwd=tmp_path)
    models = {one["name"]: one.get("models") for one in json.loads(done.stdout)["schemes"]}
    assert (models["indigo"], models["muses"], models["remy"], models["reno"]) == (["mine"], [], [], None)
    text = narrows("schemes", cwd=tmp_path).stdout
    assert "indigo: installed models: mine" in text and "no model for it is installed" in text
    assert "installed models: mine" in narrows("schemes", "indigo", cwd=tmp_path).stdout


# -- scenarios ---------------------------------------------------------------------------------------


def test_a_model_is_named_in_two_ways(home: Path, tmp_path: Path) -> None:
    home.mkdir(parents=True)
    (home / "mine.safetensors").write_bytes(model_kit.small_network())
    short = scenario("[{indigo: mine, header: 0 B}]")
    long = scenario("[{scheme: indigo, model: mine, header: 0 B}]")
    assert short.to_json() == long.to_json()
    row = short.schemes[0]
    assert row.label == "indigo model=mine header=0B"
    model = short.to_json()["schemes"][0]["flows"][0]["params"]["model"]
    assert model["name"] == "mine.safetensors" and model["sha256"] in short.files.contents
    # Different content, another experiment.
    (home / "mine.safetensors").write_bytes(convert_note(model_kit.small_network()))
    assert scenario("[{indigo: mine, header: 0 B}]").hash != short.hash


def convert_note(content: bytes) -> bytes:
    """The same model with another note in its header."""
    found = summary(content)
    arrays = {"output_bias": np.array([0, 0, 1, 0, 0], dtype="<f4")}
    arrays |= {name: np.zeros(shape, dtype="<f4") for name, _, shape in found.arrays if name != "output_bias"}
    return write(found.kind, arrays, {"title": "again"})


def test_files_are_relative_to_the_scenario_and_may_be_published_ones(tmp_path: Path) -> None:
    (tmp_path / "t.dna").write_bytes(model_kit.table(3))
    model_kit.checkpoint(tmp_path / "net", model_kit.tensors(9, 3, 1))
    found = scenario("[{remy: t.dna}, {indigo: net/model.index}]", tmp_path)
    assert [row.label for row in found.schemes] == ["remy model=t.dna", "indigo model=model"]
    for row in found.schemes:
        content = found.files.contents[Values(row.flows[0].params).digest("model") or ""]
        assert summary(content).kind in ("remy", "indigo")


def test_a_name_that_is_not_installed_is_skipped(tmp_path: Path) -> None:
    found = scenario("[reno, {indigo: indigo-1-32}]")
    plan = make_plan(found, MachineFacts())
    assert [cell.scheme for cell in plan.cells] == ["reno"]
    ((label, reason),) = [(one.scheme, one.reason) for one in plan.skipped]
    assert label == "indigo model=indigo-1-32"
    assert "narrows models add indigo-1-32 PATH" in reason
    with pytest.raises(UnavailableError, match="narrows models add"):
        make_plan(scenario("[{indigo: indigo-1-32}]"), MachineFacts())


@pytest.mark.parametrize(
    ("schemes", "word"),
    [
        ("[{remy: tables/none.dna}]", "does not exist"),
        ("[{remy: none.model}]", "does not exist"),
        ("[{remy: {a: b}}]", "must be the name of a model"),
        ("[{indigo: t.dna}]", "is of the kind remy, where a model of the kind indigo is needed"),
        ("[{remy: junk.dna}]", "is neither a model file"),
        ("[{remy: a, indigo: b}]", r"schemes\.0\.indigo: models of remy and indigo are named"),
        ("[{remy: a, model: b}]", r"schemes\.0\.model: the model is given twice, here and as remy"),
        ("[{model: b, remy: a}]", "the model is given twice"),
    ],
)
def test_bad_models_are_problems_of_the_scenario(tmp_path: Path, schemes: str, word: str) -> None:
    (tmp_path / "t.dna").write_bytes(model_kit.table(4))
    (tmp_path / "junk.dna").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match=word) as error:
        scenario(schemes, tmp_path)
    assert error.value.exit_code == 3


def test_a_model_runs_and_the_record_says_which(tmp_path: Path, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "mine.safetensors").write_bytes(model_kit.small_network())
    text = SCENARIO.replace("SCHEMES", "[reno, {indigo: mine}, {muses: muses}]")
    (tmp_path / "s.yaml").write_text(text)
    done = narrows("run", "s.yaml", "--where", "simulate", "--no-report", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "narrows models add muses PATH" in done.stderr
    document = json.loads((tmp_path / "out/cells/indigo-model-mine-r1/run.json").read_text())
    told = document["flows"][0]["fingerprint"]["params"]["model"]
    assert (
        told["name"] == "mine.safetensors"
        and told["sha256"] == store.describe(home / "mine.safetensors").sha256
    )
    kept = next((tmp_path / "out" / "files").iterdir())
    assert kept.read_bytes() == (home / "mine.safetensors").read_bytes()
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert any("muses" in json.dumps(one) for one in results["skipped"]), results.keys()
    # The network holds its ten packets: 10 x 1500 bytes in 40 ms are 3 Mbit/s.
    metrics = next(row for row in results["rows"] if row["scheme"].startswith("indigo"))["metrics"]
    assert metrics["throughput_bps"] == pytest.approx(3e6, rel=0.02)
