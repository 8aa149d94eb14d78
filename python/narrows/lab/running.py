"""Runs the experiments of a laboratory, each as a campaign in a separate folder, below a folder whose
`lab.json` names the laboratory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from narrows.documents.resolved import Resolved, SchemeRow
from narrows.errors import DataError, UsageError
from narrows.lab.reading import Column, Experiment, Lab, read
from narrows.lab.store import find
from narrows.lab.tasks import Pair
from narrows.text import did_you_mean, shorten, suggest

if TYPE_CHECKING:
    from rich.console import Console

    from narrows.campaign.run import Finished
    from narrows.campaign.showing import Showing
    from narrows.scenario import Cell, Loaded, Override

    #: Shows the runs of a scenario inside a context.
    Show = Callable[[Loaded], contextlib.AbstractContextManager[Showing | None]]

FORMAT = "narrows/lab-run/1"
NOTE = "lab.json"


@dataclass(frozen=True)
class LabRun:
    """A run of a laboratory: the experiments, and the folder."""

    folder: Path
    lab: Lab
    where: str
    quick: bool

    def campaign(self, experiment: str) -> Path:
        """The folder of an experiment's campaign."""
        return self.folder / experiment

    def done(self) -> list[str]:
        """The experiments that have been started."""
        return [name for name in self.lab.experiments if (self.campaign(name) / "campaign.json").is_file()]


def default_folder(lab: Lab, where: str, quick: bool) -> Path:
    """The default folder of a laboratory; running it again completes it there."""
    parts = ["lab", lab.name, *(["emulated"] if where == "emulate" else []), *(["quick"] if quick else [])]
    return Path("results") / "-".join(parts)


def scenario_of(lab: Lab, experiment: Experiment, where: str, quick: bool) -> Loaded:
    """The scenario of an experiment on a plane. Raises `DataError` if it can't be read, or has no such
    values.
    """
    from narrows.scenario import load

    own = lab.folder / experiment.scenario
    name = own if own.is_file() else experiment.scenario
    loaded = load(name, _changes(lab, experiment, where, quick))
    rows = loaded.scenario.schemes
    wanted = {lab.scheme_of(name, where) for name in experiment.schemes}
    if len({_base_of(row) for row in rows}) < len(wanted) and loaded.scenario.files.choices:
        # Rows of the campaign belong to published schemes by their order.
        why = "; ".join(choice.text for choice in loaded.scenario.files.choices)
        raise DataError(
            f"{lab.folder}: two schemes of experiment {experiment.name} run the same model: {why}"
        )
    for case in experiment.cases.values():
        if not any(meets(row.values, case.ours) for row in rows):
            known = {f"{key}: {value}" for row in rows for key, value in row.values.items()}
            raise DataError(
                f"{lab.folder}: case {case.name} of experiment {experiment.name}: no row of the scenario has"
                f" {', '.join(f'{key}: {value}' for key, value in case.ours.items())}; there is"
                f" {', '.join(sorted(known)) or 'no matrix'}"
            )
    return loaded


def meets(values: dict[str, str], wanted: dict[str, str]) -> bool:
    """True if a row of a matrix has these values, which may be written differently (`5%`, `5 %`)."""
    return all(key in values and _equal(values[key], value) for key, value in wanted.items())


def _equal(text: str, other: str) -> bool:
    from narrows.scenario.derived import quantity_of

    if text == other:
        return True
    first, second = quantity_of(text), quantity_of(other)
    return (
        first is not None and second is not None and (first.kind, first.value) == (second.kind, second.value)
    )


def _changes(lab: Lab, experiment: Experiment, where: str, quick: bool) -> list[Override]:
    from narrows.scenario import Override

    schemes = dict.fromkeys(lab.scheme_of(name, where) for name in experiment.schemes)
    listed = ", ".join(text if text[:1] in "{[" else "'" + text.replace("'", "''") + "'" for text in schemes)
    source = f"{lab.folder}: experiments.{experiment.name}"
    changes = [Override("--where", "where", where), Override(f"{source}.schemes", "schemes", f"[{listed}]")]
    changes += [Override(f"{source}.set.{key}", key, text) for key, text in experiment.set.items()]
    if quick:
        changes += [Override(f"{source}.quick.{key}", key, text) for key, text in experiment.quick.items()]
    return changes


def columns_of(run: LabRun, experiment: str) -> list[Column]:
    """The columns of an experiment in this run."""
    return [
        column
        for column in run.lab.columns.values()
        if experiment in column.experiments and (column.quick or not run.quick)
    ]


def check(lab: Lab, where: str, quick: bool, only: list[str]) -> dict[str, Loaded]:
    """The scenarios of these experiments (all if none is named), read before the first one runs. Raises
    `UsageError` for an unknown experiment, `DataError` for parts that contradict each other.
    """
    from narrows.campaign.measurement import list_metrics

    for name in only:
        if name not in lab.experiments:
            hint = suggest(name, lab.experiments, "experiment")
            raise UsageError(f'{lab.name} has no experiment "{shorten(name)}"{hint}')
    metrics = [metric.name for metric in list_metrics()]
    for column in lab.columns.values():
        if column.metric not in metrics:
            hint = (
                did_you_mean(column.metric, metrics)
                or "; narrows show --json lists the metrics of a campaign"
            )
            raise DataError(
                f'{lab.folder}: column {column.name}: metric "{shorten(column.metric)}" does not exist{hint}'
            )
    wanted = only or list(lab.experiments)
    return {name: scenario_of(lab, lab.experiments[name], where, quick) for name in wanted}


def begin(lab: Lab, folder: Path, where: str, quick: bool) -> LabRun:
    """The folder of a laboratory, new or existing. Raises `UsageError` if it belongs to another one."""
    from narrows.campaign import sealing
    from narrows.campaign.json_files import write_atomically

    if quick and lab.quick is None:
        raise UsageError(f"{lab.name} has no quick runs; leave out --quick")
    note = folder / NOTE
    if note.is_file():
        before = open_run(folder)
        if (before.lab.name, before.where, before.quick) != (lab.name, where, quick):
            raise UsageError(
                f"{folder} holds another laboratory ({_name(before)}); name another folder with -o"
            )
    elif folder.is_dir() and any(not path.name.startswith(f".{NOTE}.") for path in folder.iterdir()):
        raise UsageError(f"{folder} holds something else; name another folder with -o")
    run = LabRun(folder, lab, where, quick)
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "format": FORMAT,
        "lab": lab.name,
        "family": str(lab.folder.resolve()),
        "where": where,
        "quick": quick,
        "experiments": list(lab.experiments),
    }
    write_atomically(note, sealing.seal(document, FORMAT))
    return run


def _name(run: LabRun) -> str:
    return f"{run.lab.name}, {run.where}{', quick' if run.quick else ''}"


def open_run(folder: Path) -> LabRun:
    """The run in a folder. Raises `DataError` if the folder has no laboratory, or its family no longer
    exists.
    """
    from narrows.campaign.json_files import read_json

    if not (folder / NOTE).is_file():
        raise DataError(f"{folder}: no laboratory was run here; narrows lab run NAME -o {folder} runs one")
    document = read_json(folder / NOTE, FORMAT)
    family, name = document.get("family"), document.get("lab")
    if not isinstance(family, str) or not isinstance(name, str):
        raise DataError(f"{folder / NOTE}: is damaged: it names no family")
    path = Path(family)
    lab = read(path if (path / "lab.yaml").is_file() else find(name))
    return LabRun(folder, lab, str(document.get("where")), bool(document.get("quick")))


def run_all(
    run: LabRun,
    only: list[str],
    *,
    argv: list[str],
    console: Console,
    quiet: bool,
    tell: Callable[[int, int, Experiment], None],
    conditions: Collection[Pair] | None = None,
    show: Show | None = None,
) -> int:
    """Runs the missing cells of these experiments (all if none is named), or of these conditions only, and
    returns the largest exit code of their campaigns. `show` shows the runs of a scenario while they are under
    way.
    """
    from narrows.campaign.run import run_campaign

    loaded = {
        name: _as_run(run, name) or scenario
        for name, scenario in check(run.lab, run.where, run.quick, only).items()
    }
    wanted: dict[str, set[str]] = {}
    if conditions is not None:
        for name, scenario in loaded.items():
            rows = find_rows(run.lab, run.lab.experiments[name], run.where, scenario.scenario)
            labels = {label for pair in conditions for label in rows.get(pair, ())}
            if labels:
                wanted[name] = labels
        loaded = {name: scenario for name, scenario in loaded.items() if name in wanted}
    worst = 0
    for number, (name, scenario) in enumerate(loaded.items(), 1):
        tell(number, len(loaded), run.lab.experiments[name])
        labels = wanted.get(name, set())
        # A run that was changed while it was shown is not repeated.
        shows = show if show is not None and _as_run(run, name) is None else _show_nothing
        with shows(scenario) as showing:
            finished = run_campaign(
                scenario,
                run.campaign(name),
                resume=False,
                argv=argv,
                console=console,
                quiet=quiet,
                wanted=None if conditions is None else partial(_is_of_rows, labels),
                showing=showing,
            )
        code = finished.exit_code if conditions is None else _code_of(finished, labels)
        worst = max(worst, code)
    return worst


def _as_run(run: LabRun, experiment: str) -> Loaded | None:
    """The scenario of a run that was changed while it was shown; none if it was not."""
    from narrows.campaign.showing import AS_RUN
    from narrows.scenario import load

    path = run.campaign(experiment) / AS_RUN
    return load(path) if path.is_file() else None


@contextlib.contextmanager
def _show_nothing(_loaded: Loaded) -> Iterator[None]:
    yield None


def _is_of_rows(labels: set[str], cell: Cell) -> bool:
    return cell.scheme in labels


def _code_of(finished: Finished, labels: set[str]) -> int:
    """The exit code of a campaign of which only some rows were requested."""
    from narrows.errors import EXIT_OK, EXIT_SOME_INVALID

    cells = [cell for cell in finished.folder.cells if cell.scheme in labels]
    bad = not all(cell.is_usable for cell in cells)
    return EXIT_SOME_INVALID if bad else EXIT_OK


def _base_of(row: SchemeRow) -> str:
    """The label of a row without its matrix values."""
    from narrows.scenario.derived import suffix

    return row.label.removesuffix(suffix(row.values))


def find_rows(lab: Lab, experiment: Experiment, where: str, scenario: Resolved) -> dict[Pair, list[str]]:
    """The labels of a resolved scenario's rows by published scheme and case."""
    rows = scenario.schemes
    bases = {row.label: _base_of(row) for row in rows}
    ordered = list(dict.fromkeys(bases.values()))
    # The rows of the campaign are in the order of the experiment's schemes.
    wanted = list(dict.fromkeys(lab.scheme_of(name, where) for name in experiment.schemes))
    result: dict[Pair, list[str]] = {}
    for name in experiment.schemes:
        number = wanted.index(lab.scheme_of(name, where))
        base = ordered[number] if number < len(ordered) else None
        for case in experiment.cases.values():
            result[name, case.name] = [
                row.label for row in rows if bases[row.label] == base and meets(row.values, case.ours)
            ]
    return result
