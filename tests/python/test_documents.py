"""Typed documents: reading and writing them preserves their bytes, their schemas accept them, and errors are
one sentence with the file, the place and the expected form."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from campaign_kit import narrows
from compare_kit import campaign, compare
from narrows.comparison.document import Request
from narrows.documents import reference
from narrows.documents.comparison import Comparison
from narrows.documents.data import DamagedError, from_data, to_data
from narrows.documents.results import Results, read_results

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """results.json of a small campaign."""
    values = {"throughput_bps": 1e7, "delay_p95_ns": 61_000_000, "loss_ratio": None}
    folder = campaign(tmp_path_factory.mktemp("documents") / "c", {"cubic": [values] * 2, "reno": [values]})
    found: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return found


def test_results_are_written_as_they_were_read(document: dict[str, Any]) -> None:
    again = to_data(from_data(document, Results))
    assert json.dumps(again) == json.dumps(document)
    # A whole number is not a fraction, and the reverse.
    assert type(again["rows"][0]["metrics"]["delay_p95_ns"]) is int
    assert type(again["rows"][0]["metrics"]["throughput_bps"]) is float


@pytest.mark.parametrize("name", reference.FORMATS)
def test_committed_schemas_are_those_of_the_definitions(name: str) -> None:
    committed = (ROOT / "docs/reference/documents" / f"{name}.schema.json").read_text(encoding="utf-8")
    assert committed == reference.schema_text(name)
    guide = (ROOT / "docs/guide/records.md").read_text(encoding="utf-8")
    assert reference.with_formats(guide) == guide


def test_results_fit_their_schema_by_another_library(document: dict[str, Any]) -> None:
    schema = json.loads(narrows("schema", "--document", "results").output)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    document = json.loads(json.dumps(document))
    document["rows"][0]["run"] = "one"
    with pytest.raises(jsonschema.ValidationError, match="'one' is not"):
        jsonschema.validate(document, schema)


def test_comparisons_fit_their_schema_and_are_written_as_they_were_read(tmp_path: Path) -> None:
    a, b = ({"throughput_bps": rate, "delay_p95_ns": 61e6, "loss_ratio": None} for rate in (1e7, 9e6))
    folder = campaign(tmp_path / "a", {"cubic": [a] * 2, "reno": [b] * 2})
    other = campaign(tmp_path / "b", {"cubic": [b] * 2})
    schema = json.loads(narrows("schema", "--document", "comparison").output)
    for request in (
        Request([folder], traces=False),
        Request([folder, other], fail_on=["throughput worse by 5 %"], margins=["1 %"], traces=True),
    ):
        printed = compare(request)
        jsonschema.validate(printed, schema)
        assert json.dumps(to_data(from_data(printed, Comparison))) == json.dumps(printed)


def test_a_document_that_is_unknown_has_no_schema() -> None:
    done = narrows("schema", "--document", "result")
    assert 'unknown document "result"; did you mean "results"?' in str(done.exception)


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


def drop(document: dict[str, Any]) -> None:
    del document["rows"][1]["cell"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("rows", 1, "metrics", "loss_ratio", value="x"), "rows[1].metrics.loss_ratio is not a number"),
        (put("rows", 1, "metrics", "loss_ratio", value=float("nan")), "metrics.loss_ratio is not a number"),
        (put("rows", 1, "metrics", "loss_ratio", value=float("inf")), "metrics.loss_ratio is not a number"),
        (put("rows", 0, "run", value=-1), "rows[0].run is not a count"),
        (put("rows", 0, "run", value=True), "rows[0].run is not a whole number"),
        (put("rows", 0, "cell", value="\x1b[2J"), "rows[0].cell is not printable text"),
        (put("rows", 0, "cell", value="\ud800"), "rows[0].cell is not printable text"),
        (put("rows", 0, "metrics", value={"a\x1b": 1}), "in the file.rows[0].metrics is not printable"),
        (put("rows", 0, "background", value=1), "rows[0].background is not a truth value"),
        (put("rows", value={}), "the file.rows is not a list"),
        (put("summary", 0, value=[]), "summary[0] is not an object"),
        (put("summary", 0, "metrics", "throughput_bps", "ci95", value=[1]), "bps.ci95 is not a list"),
        (put("digests", "cubic-r1", value=None), "the file.digests.cubic-r1 is not printable text"),
        (drop, "the file.rows[1].cell is missing"),
    ],
)  # fmt: skip
def test_invalid_members_are_named_with_their_place(
    document: dict[str, Any], change: Callable[[dict[str, Any]], None], words: str
) -> None:
    copied = json.loads(json.dumps(document))
    change(copied)
    with pytest.raises(DamagedError) as caught:
        read_results(copied)
    assert words in str(caught.value)


def test_members_of_a_newer_minor_version_are_ignored(document: dict[str, Any]) -> None:
    copied = json.loads(json.dumps(document))
    copied["mood"] = {"of": "the machine"}
    copied["rows"][0]["mood"] = 3
    assert read_results(copied) == read_results(json.loads(json.dumps(document)))


def test_members_that_early_results_lack_are_filled_in(document: dict[str, Any]) -> None:
    copied = json.loads(json.dumps(document))
    for row in copied["rows"]:
        for name in ("scenario", "plane", "row", "seed", "duration_ns", "flow_scheme", "absent"):
            del row[name]
    for metric in copied["metrics"]:
        for name in ("label", "links", "happened", "source"):
            del metric[name]
    for line in copied["summary"]:
        del line["row"]
    del copied["digests"]
    made = read_results(copied)
    assert {row.scheme for row in made.rows} == {"cubic", "reno"}
    assert [line.scheme for line in made.summary] == ["cubic", "reno"]


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["scenarios", "--help"]])
def test_help_does_without_the_library(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv = ['narrows', *{words!r}]\n"
        "from narrows.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "assert 'msgspec' not in sys.modules, 'imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


#: Definitions that no thread has used before, read by four threads at once; a crash would end this process
#: too.
_AT_ONCE = """
import sys, threading, msgspec
from narrows.documents.data import Part, from_data
sys.setswitchinterval(1e-6)
how = {"bases": (Part,), "frozen": True, "kw_only": True}
for _ in range(60):
    fields = [("a", "int"), ("b", "dict[str, float]", {})]
    parts = [msgspec.defstruct(f"P{n}", fields, **how) for n in range(6)]
    whole = msgspec.defstruct("W", [(f"m{n}", part) for n, part in enumerate(parts)], **how)
    gate = threading.Barrier(4)
    def read():
        gate.wait()
        from_data({f"m{n}": {"a": n} for n in range(6)}, whole)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("read")
"""


def test_threads_read_documents_of_a_new_definition_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr
