"""The corpus of files of other tools: `tests/imports/FORMAT`, and `truth.yaml` in it.

```yaml
- files: [bidir.json]                    # imported together, by `narrows import FORMAT FILES OPTIONS`
  made: iperf3 -c 10.0.0.2 --bidir -J    # the command that made them
  options: [--scheme, x]                 # may be absent
  truth:
    - {quantity: throughput_bps, flow: 1, value: 1.2e+6, oracle: "jq '.end.sum_received.bits_per_second'"}
- files: [cut.json]
  made: the first 4,000 bytes of plain.json
  refused: is cut off                    # part of the sentence; nothing is imported
```

A quantity is a metric of the results (of `flow`, all if absent; of the `run`-th run, 1 if absent) or

- `count.runs`, `count.flows`; `verdict`, `scheme` (of the run); `flow.scheme`, `flow.direction`, `flow.label`
- `sender.NAME`, `receiver.NAME`: counters of the flow; `import.NAME`: facts of run.json
- `state.COLUMN.first`, `last`, `min`, `max`, `mean`: states of the flow, over the samples that are known
- `unread.KIND`: how many parts of this kind were not read; `reason.CODE`: true if the run has such a reason

Numbers must agree within 1 %, or within `within`; `value: null` says that the quantity is absent."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
import yaml

from narrows.campaign import results
from narrows.documents.results import Results
from narrows.errors import NarrowsError

CORPUS = Path(__file__).resolve().parent.parent / "imports"
#: Greatest accepted relative error of a number.
WITHIN = 0.01

Value = float | str | bool | None


@dataclass(frozen=True)
class Truth:
    """The value of one quantity, and its oracle."""

    quantity: str
    value: Value
    oracle: str
    flow: int | str = "all"
    run: int = 1
    within: float = WITHIN


@dataclass(frozen=True)
class Case:
    """Files that are imported together."""

    tool: str
    files: tuple[str, ...]
    made: str
    truth: tuple[Truth, ...] = ()
    options: tuple[str, ...] = ()
    refused: str = ""

    @property
    def name(self) -> str:
        """The case in a word."""
        return "+".join((*self.files, *self.options))


@dataclass(frozen=True)
class ImportedCase:
    """The result of an imported case: its results and the records of its runs."""

    results: Results
    cells: list[Path] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


@cache
def read_cases(tool: str) -> tuple[Case, ...]:
    """The cases of one format; an unknown member is an error."""
    content = yaml.safe_load((CORPUS / tool / "truth.yaml").read_text(encoding="utf-8"))
    cases = []
    for entry in content:
        lines = tuple(Truth(**line) for line in entry.pop("truth", ()))
        files, options = (tuple(map(str, entry.pop(key, ()))) for key in ("files", "options"))
        cases.append(Case(tool, files, truth=lines, options=options, **entry))
    return tuple(cases)


def lines_of(tool: str) -> list[Any]:
    """Every line of truth as a parameter of a test."""
    return [
        pytest.param(case, line, id=f"{case.name}-{line.quantity}-{line.run}-{line.flow}")
        for case in read_cases(tool)
        for line in case.truth
    ]


def refusals_of(tool: str) -> list[Any]:
    """Every case that is refused as a parameter of a test."""
    return [pytest.param(case, id=case.name) for case in read_cases(tool) if case.refused]


def check_folder(tool: str) -> None:
    """Checks that the folder and its truth file list the same files, and that every case claims something."""
    folder = CORPUS / tool
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"truth.yaml"}
    assert there == {name for case in read_cases(tool) for name in case.files}
    for case in read_cases(tool):
        assert case.made and bool(case.truth) != bool(case.refused), case.name
        assert all(line.oracle for line in case.truth), case.name


def check_refusal(case: Case, target: Path) -> None:
    """Checks that the files are refused in one sentence, and that nothing is left."""
    with pytest.raises(NarrowsError) as caught:
        import_case(case, target)
    text = str(caught.value)
    assert case.refused in text and "\n" not in text, text
    assert any(Path(name).name in text for name in case.files), text
    assert not target.exists()


def check_line(case: Case, line: Truth) -> None:
    """Checks the value of the quantity."""
    value = _quantity(_imported(case), line)
    if isinstance(line.value, bool | str) or line.value is None:
        assert value == line.value, line.oracle
    else:
        assert value == pytest.approx(line.value, rel=line.within), line.oracle


@cache
def _imported(case: Case) -> ImportedCase:
    target = Path(mkdtemp(prefix="narrows-corpus-")) / "c"
    import_case(case, target)
    found = results.read(target)
    cells = sorted((target / "cells").iterdir())
    document = json.loads((target / "campaign.json").read_text(encoding="utf-8"))
    cells = [target / "cells" / entry["id"] for entry in document["cells"]]
    records = [json.loads((cell / "run.json").read_text(encoding="utf-8")) for cell in cells]
    return ImportedCase(found, cells, records)


def import_case(case: Case, target: Path) -> None:
    """Imports the files of a case as a user does."""
    from click.testing import CliRunner

    from narrows.cli.all_commands import app

    files = [str(CORPUS / case.tool / name) for name in case.files]
    arguments = ["import", case.tool, *files, *case.options, "-o", str(target), "--no-report"]
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code in {0, 6}, result.output


def _quantity(found: ImportedCase, line: Truth) -> Any:
    record, cell = found.records[line.run - 1], found.cells[line.run - 1]
    head, _, rest = line.quantity.partition(".")
    flows = {flow["flow"]: flow for flow in record["cell"]["flows"]}
    match head:
        case "count":
            return {"runs": len(found.records), "flows": len(flows)}[rest]
        case "verdict":
            return record["verdict"]
        case "scheme":
            return record["cell"]["scheme"].partition(":")[2]
        case "flow":
            value = flows[line.flow].get(rest)
            return value.partition(":")[2] if rest == "scheme" else value
        case "sender" | "receiver":
            return next(flow for flow in record["flows"] if flow["flow"] == line.flow)[head].get(rest)
        case "import":
            return record["import"].get(rest)
        case "unread":
            return next((p["count"] for p in record["import"].get("unread", ()) if p["kind"] == rest), 0)
        case "reason":
            return any(reason["code"] == rest for reason in record["reasons"])
        case "state":
            return _state(cell, int(line.flow), rest)
    scheme, run = record["cell"]["scheme"], record["cell"]["run"]
    row = next(
        row for row in found.results.rows if (row.scheme, row.run, row.flow) == (scheme, run, line.flow)
    )
    return row.metrics[line.quantity]


def _state(cell: Path, flow: int, quantity: str) -> float | None:
    from narrows import _native

    column, _, which = quantity.partition(".")
    series: Any = _native.state_series(cell)[flow]
    values = np.asarray(series[column], dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    return {
        "first": float(values[0]),
        "last": float(values[-1]),
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": float(values.mean()),
    }[which]
