"""A campaign for computations, as returned by `narrows.load` and `narrows.run`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from narrows.campaign.frames import Frame, OtherFrame
from narrows.campaign.record import Run
from narrows.documents.data import to_data
from narrows.errors import DataError
from narrows.text import any_of, did_you_mean

if TYPE_CHECKING:
    import pyarrow

    from narrows.campaign.columns import Columns
    from narrows.campaign.store import CampaignFolder
    from narrows.documents.campaign import CellEntry
    from narrows.documents.results import Results, Row


def load(path: str | PathLike[str]) -> Campaign:
    """Opens the campaign in a folder. Only `campaign.json` is read now, everything else on demand.

    Raises `narrows.NarrowsError` with one sentence if the folder holds no campaign, a damaged one, or one of
    a newer version.
    """
    return Campaign(path)


def campaigns(folder: str | PathLike[str] = "results") -> list[Campaign]:
    """All campaigns below a folder, the oldest first. A campaign that can't be read is omitted with a warning
    of one sentence.
    """
    import warnings

    from narrows.campaign.gathering import gather

    result = []
    for item in gather([Path(folder)]):
        if item.folder is None:
            warnings.warn(str(item.problem), stacklevel=2)
        else:
            result.append(Campaign(item.path))
    return result


class Campaign:
    """A campaign: its scenario, its runs with their verdicts, its results and its records."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        """The folder."""
        self._folder: CampaignFolder = self._read()
        self._results: Results | None = None
        self._by_cell: dict[str, list[Row]] = {}
        self._metrics_then: tuple[object, ...] = ()

    def _read(self) -> CampaignFolder:
        from narrows.campaign.store import CampaignFolder

        return CampaignFolder.read(self.path)

    def __repr__(self) -> str:
        words = list(self.verdicts.values())
        counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(sorted(words)))
        return f"<narrows.Campaign {self.name} ({self.plane}): {counts or 'no runs'}>"

    # -- what it is ------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the scenario."""
        return self._folder.header.name

    @property
    def plane(self) -> str:
        """The plane: `simulate`, `emulate`, `hosts` or `import`."""
        return self._folder.header.where

    @property
    def document(self) -> dict[str, Any]:
        """The whole `campaign.json`."""
        return self._folder.document

    @property
    def scenario(self) -> dict[str, Any]:
        """The resolved scenario: everything in base units, with defaults."""
        from narrows.campaign.schema import scenario_dict

        return scenario_dict(self._folder.header)

    @property
    def question(self) -> str:
        """The question that the scenario asks."""
        return str(self.scenario.get("question") or "")

    @property
    def written(self) -> str:
        """The scenario as it was written."""
        return self._folder.header.scenario.written

    @property
    def schemes(self) -> list[str]:
        """The rows of the tables: schemes, with the values of a matrix if there is one, in the order of the
        scenario.
        """
        listed = [str(row["label"]) for row in self.scenario["schemes"]]
        return listed + [
            label for label in dict.fromkeys(run.row for run in self.runs) if label not in listed
        ]

    @property
    def skipped(self) -> dict[str, str]:
        """Schemes that could not run on this machine, with the reason."""
        return {row.scheme: row.reason for row in self._folder.header.skipped}

    @cached_property
    def _columns(self) -> Columns:
        from narrows.campaign.columns import Columns

        return Columns(self._folder.resolved)

    # -- runs ------------------------------------------------------------------------------------

    @cached_property
    def runs(self) -> list[Run]:
        """All runs, in the order of the cells: finished, failed and pending ones."""
        return [self._run(entry) for entry in self._folder.cells]

    def _run(self, entry: CellEntry) -> Run:
        return _RunOf(self, self._folder.cell_dir(entry.id), entry)

    def run(self, run: str | int | Run, scheme: str | None = None) -> Run:
        """One run: by the name of its cell (`"cubic-r1"`), or by its number and the scheme (optional if there
        is only one). Raises `DataError` with the names that exist.
        """
        if isinstance(run, Run):
            return run
        if isinstance(run, str):
            for item in self.runs:
                if item.cell == run:
                    return item
            cells = [item.cell for item in self.runs]
            hint = did_you_mean(run, cells) or f"; there are {_some(cells)}"
            raise DataError(f'{self.path}: run "{run}" does not exist{hint}')
        runs = [item for item in self.runs if item.number == run and scheme in (None, item.row, item.scheme)]
        if len(runs) == 1:
            return runs[0]
        if runs:
            cells = [item.cell for item in runs]
            raise DataError(
                f"{self.path}: several runs have the number {run}; name one of them: {_some(cells)}"
            )
        cells = [item.cell for item in self.runs]
        of = f" of {scheme}" if scheme else ""
        raise DataError(f"{self.path}: run {run}{of} does not exist; there are {_some(cells)}")

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each run by the name of its cell: `ok`, `degraded`, `invalid`; without a verdict its
        state: `failed`, `pending`.
        """
        return {run.cell: run.verdict or run.state for run in self.runs}

    @property
    def cells(self) -> pyarrow.Table:
        """A row per run: `cell`, `scheme`, `row`, `run`, `seed`, `state`, `verdict`, `reasons`."""
        import pyarrow

        columns = self._columns
        entries = self._folder.cells
        texts = {
            "cell": [entry.id for entry in entries],
            "scheme": [columns.base(entry.scheme) for entry in entries],
            "row": [entry.scheme for entry in entries],
        }
        return pyarrow.table(
            {
                **texts,
                "run": pyarrow.array([entry.run for entry in entries], pyarrow.int64()),
                "seed": pyarrow.array([entry.seed for entry in entries], pyarrow.int64()),
                "state": [entry.state for entry in entries],
                "verdict": pyarrow.array([entry.verdict for entry in entries], pyarrow.string()),
                "reasons": pyarrow.array(
                    ["; ".join(reason.text or "" for reason in entry.reasons) for entry in entries]
                ),
            }
        )

    # -- results ---------------------------------------------------------------------------------

    @property
    def _computed(self) -> Results:
        """The results, computed again if metrics were defined in the meantime."""
        from narrows.campaign.own_metrics import list_registered
        from narrows.campaign.results import read

        now = tuple(own_metric.function for own_metric in list_registered())
        if self._results is None or now != self._metrics_then:
            self._results = read(self.path)
            self._by_cell = {}
            for row in self._results.rows:
                self._by_cell.setdefault(row.cell, []).append(row)
            self._metrics_then = now
        return self._results

    @property
    def results(self) -> pyarrow.Table:
        """A row per run and flow, and one per run for all flows (`flow` is null), as in `results.csv`:
        scenario, plane, scheme, run, seed, duration, keys of the matrix and parameters of schemes, the
        verdict, and every metric in base units, metrics of your own included. Invalid runs are included; drop
        them before you compute.
        """
        from narrows.campaign.results_file import table

        return table(self._computed)

    @property
    def summary(self) -> pyarrow.Table:
        """A row per row of the tables, flow and metric, over the valid runs: `scheme`, `row`, `flow`,
        `metric`, `unit`, `n`, `median`, `mean`, `low` and `high` (the 95 % interval of the median, from 6
        runs on)."""
        import pyarrow

        units = {metric.name: metric.unit for metric in self._computed.metrics}
        lines = [
            (line.base, line.scheme, line.number, name, entry)
            for line in self._computed.summary
            for name, entry in line.metrics.items()
        ]
        intervals = [entry.ci95 or (None, None) for *_, entry in lines]
        number, text = pyarrow.float64(), pyarrow.string()
        return pyarrow.table(
            {
                "scheme": pyarrow.array([line[0] for line in lines], text),
                "row": pyarrow.array([line[1] for line in lines], text),
                "flow": pyarrow.array([line[2] for line in lines], pyarrow.int64()),
                "metric": pyarrow.array([line[3] for line in lines], text),
                "unit": pyarrow.array([units.get(line[3]) for line in lines], text),
                "n": pyarrow.array([entry.n for *_, entry in lines], pyarrow.int64()),
                "median": pyarrow.array([entry.median for *_, entry in lines], number),
                "mean": pyarrow.array([entry.mean for *_, entry in lines], number),
                "low": pyarrow.array([low for low, _ in intervals], number),
                "high": pyarrow.array([high for _, high in intervals], number),
            }
        )

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The metrics in the results: `name`, `label`, `unit`, `definition`, `source`, `better` ...."""
        return list(to_data(self._computed.metrics))

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of the results that distinguish its runs, with `name`, `label`, `of` (matrix, derived,
        scheme or transport), `key` and `unit`.
        """
        return list(to_data(self._computed.columns))

    @property
    def expectations(self) -> list[dict[str, Any]]:
        """The expectations of the scenario with their `outcome`."""
        return list(to_data(self._computed.expect))

    def show(self) -> None:
        """Prints the table that `narrows show` prints."""
        from narrows.analysis.tables import print_summary
        from narrows.console import stdout_console

        print_summary(stdout_console(), [(self.path, self._computed)])

    # -- records ---------------------------------------------------------------------------------

    @overload
    def packets(
        self,
        run: str | int | Run,
        flow: int | None = ...,
        *,
        scheme: str | None = ...,
        to: Literal["arrow"] = ...,
    ) -> pyarrow.Table: ...
    @overload
    def packets(
        self, run: str | int | Run, flow: int | None = ..., *, scheme: str | None = ..., to: OtherFrame
    ) -> Any: ...
    def packets(
        self, run: str | int | Run, flow: int | None = None, *, scheme: str | None = None, to: Frame = "arrow"
    ) -> Any:
        """Every packet of a run, or of one of its flows; see `Run.packets`. `run` is as in `Campaign.run`."""
        return self.run(run, scheme).table("packets", flow, to=to)

    @overload
    def states(
        self,
        run: str | int | Run,
        flow: int | None = ...,
        *,
        scheme: str | None = ...,
        to: Literal["arrow"] = ...,
    ) -> pyarrow.Table: ...
    @overload
    def states(
        self, run: str | int | Run, flow: int | None = ..., *, scheme: str | None = ..., to: OtherFrame
    ) -> Any: ...
    def states(
        self, run: str | int | Run, flow: int | None = None, *, scheme: str | None = None, to: Frame = "arrow"
    ) -> Any:
        """Samples of the senders of a run, or of one flow's; see `Run.states`."""
        return self.run(run, scheme).table("states", flow, to=to)

    @overload
    def queues(
        self,
        run: str | int | Run,
        element: str | None = ...,
        *,
        scheme: str | None = ...,
        to: Literal["arrow"] = ...,
    ) -> pyarrow.Table: ...
    @overload
    def queues(
        self, run: str | int | Run, element: str | None = ..., *, scheme: str | None = ..., to: OtherFrame
    ) -> Any: ...
    def queues(
        self,
        run: str | int | Run,
        element: str | None = None,
        *,
        scheme: str | None = None,
        to: Frame = "arrow",
    ) -> Any:
        """Samples of the queues of a run, or of one element's; see `Run.queues`."""
        result = self.run(run, scheme)
        return result.queues(element) if to == "arrow" else result.queues(element, to=to)


class _RunOf(Run):
    """A run of an opened campaign, with its metrics from the results."""

    def __init__(self, campaign: Campaign, path: Path, entry: CellEntry) -> None:
        super().__init__(path, entry)
        self._campaign = campaign

    @property
    def scheme(self) -> str:
        return self._campaign._columns.base(self.row)

    def _check(self) -> None:
        if self.state == "finished":
            self._campaign._folder.record_dir(self.cell)

    @property
    def _rows(self) -> Sequence[Row]:
        self._campaign._computed  # noqa: B018 - sorts the rows by their cells
        return self._campaign._by_cell.get(self.cell, [])


def _some(words: list[str], most: int = 8) -> str:
    return any_of(words).replace(" or ", " and ") if len(words) <= most else f"{', '.join(words[:most])} ..."
