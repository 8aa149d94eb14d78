"""Single figures of any campaigns (`narrows plot`): the choice of runs, drawing and output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from narrows import __version__
from narrows.campaign.conditions import Row, choose, read_only
from narrows.documents.campaign import FORMAT, Header
from narrows.errors import NarrowsError, UsageError, reason
from narrows.report import accounts, choice, drawing, edges, figures, overlay
from narrows.report.accounts import Account
from narrows.report.data import Campaign, Run, load
from narrows.report.drawing import Numbers, Options
from narrows.report.errors import ReportError, UnknownNameError
from narrows.report.figures import _conditions
from narrows.report.style import Style, distinct, with_condition
from narrows.report.ticks import drop_crowded_labels
from narrows.text import did_you_mean, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")


@dataclass(frozen=True, slots=True)
class Choice:
    """The request for a figure: campaigns, the name of a figure, and the selected schemes, runs (numbers or
    names of cells) and flows; empty means all, except for runs over time, where it means the middle ones.
    """

    folders: tuple[Path, ...]
    figure: str
    schemes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    flows: tuple[int, ...] = ()
    #: Values of the matrix, such as `droptail=1 bdp`.
    only: tuple[str, ...] = ()
    #: The metric of a figure that can show any; empty for its usual one.
    metric: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with its numbers, its caption and the runs that it shows."""

    figure: Figure
    numbers: Numbers
    title: str
    caption: str
    runs: list[str]
    account: Account | None = None
    #: The campaigns with their digests, and the version of Narrows that drew the figure.
    tags: tuple[str, ...] = ()


def kind_of(name: str) -> figures.FigureKind:
    """The figure of that name; raises `ReportError` with the existing names."""
    known = figures.registry()
    by_word = {word.replace("-", "_"): kind for kind in known.values() for word in (*kind.also, kind.name)}
    wanted = name.lower().replace("-", "_").replace(" ", "_")
    if wanted not in by_word:
        hint = did_you_mean(wanted, by_word).replace("_", "-")
        listed = ", ".join(text.replace("_", "-") for text in known)
        raise UnknownNameError(
            f"figure {shorten(name)!r} does not exist{hint or '; choose one of ' + listed}"
        )
    return by_word[wanted]


def select(chosen: Choice) -> Campaign:
    """The selected runs as one campaign; with several campaigns the names of schemes include the campaign."""
    campaigns = [load(folder) for folder in chosen.folders]
    if not campaigns:
        raise ReportError("name the folder of a campaign")
    names = _names(campaigns)
    wanted = _labels(campaigns, names, chosen)
    if len(campaigns) == 1:
        (first,) = campaigns
        runs = [replace(run) for label in first.schemes if label in wanted for run in first.of_scheme(label)]
        header, rows, styles = first.header, first.rows, dict(first.styles)
    else:
        runs, rows, styles = _together(campaigns, names, wanted)
        header = Header(format=FORMAT)
    runs = _of_runs(runs, chosen.runs)
    for run in runs:
        if run.problem is not None:
            raise ReportError(run.problem)
        _keep_flows(run, chosen.flows)
    metrics = list({m.name: m for campaign in campaigns for m in campaign.metrics}.values())
    whole = not (chosen.schemes or chosen.only)
    return Campaign(
        campaigns[0].folder,
        header,
        campaigns[0].results,
        metrics,
        runs,
        campaigns[0].skipped if len(campaigns) == 1 and whole else [],
        {label: row for label, row in rows.items() if any(run.scheme == label for run in runs)},
        styles,
    )


def _labels(campaigns: Sequence[Campaign], names: Sequence[str], chosen: Choice) -> set[str]:
    """The selected rows: their labels, and those that include the campaign."""
    every = [row for campaign in campaigns for row in campaign.rows.values()]
    if len(campaigns) > 1:
        for campaign, name in zip(campaigns, names, strict=True):
            every += [_name(row, name) for row in campaign.rows.values()]
    if not every:
        return set()
    try:
        return {row.label for row in choose(every, chosen.schemes, read_only(chosen.only))}
    except UsageError as error:
        raise UnknownNameError(str(error)) from None


def _name(row: Row, name: str) -> Row:
    return replace(row, label=f"{row.label} ({name})", scheme=f"{row.scheme} ({name})")


def _together(
    campaigns: Sequence[Campaign], names: Sequence[str], wanted: set[str]
) -> tuple[list[Run], dict[str, Row], dict[str, Style]]:
    """Combines runs of several campaigns, with their rows and styles: a scheme has the same colour in all of
    them, and each campaign a marker and dash.
    """
    schemes = [row.scheme for campaign in campaigns for row in campaign.rows.values()]
    colours = distinct([*schemes, *(name for campaign in campaigns for name in campaign.styles)])
    runs: list[Run] = []
    rows: dict[str, Row] = {}
    styles: dict[str, Style] = {}
    for number, (campaign, name) in enumerate(zip(campaigns, names, strict=True)):
        looks = {own: with_condition(style, number, own) for own, style in colours.items()}
        for label in campaign.schemes:
            row = _name(campaign.rows[label], name)
            if label not in wanted and row.label not in wanted:
                continue
            rows[row.label] = row
            styles[row.scheme] = looks[campaign.rows[label].scheme]
            for run in campaign.of_scheme(label):
                own = {**looks, row.scheme: styles[row.scheme]}
                runs.append(replace(run, scheme=row.label, base=row.scheme, looks=own))
    return runs, rows, styles


def _names(campaigns: Sequence[Campaign]) -> list[str]:
    """The names of campaigns: those of their folders, with the parent folder if two are equal."""
    names = [campaign.folder.resolve().name for campaign in campaigns]
    if len(set(names)) < len(names):
        names = ["/".join(campaign.folder.resolve().parts[-2:]) for campaign in campaigns]
    if len(set(names)) < len(names):
        names = [f"{number}: {name}" for number, name in enumerate(names, 1)]
    return names


def _of_runs(runs: list[Run], wanted: Sequence[str]) -> list[Run]:
    if not wanted:
        return runs
    for word in wanted:
        if not any(word in (run.cell, str(run.number)) for run in runs):
            known = [run.cell for run in runs if run.record is not None]
            raise UnknownNameError(
                f"there is no run {shorten(word)!r} with a record"
                f"{did_you_mean(word, known) or '; choose from: ' + ', '.join(known)}"
            )
    return [run for run in runs if run.cell in wanted or str(run.number) in wanted]


def _keep_flows(run: Run, wanted: Sequence[int]) -> None:
    """Restricts a run to some of its flows; the numbers of a single flow become the run's totals."""
    if not wanted:
        return
    kept = [flow for flow in run.flows if flow.number in wanted]
    if not kept:
        there = ", ".join(str(flow.number) for flow in run.flows)
        raise UnknownNameError(f"run {run.cell} has no flow {', '.join(map(str, wanted))}; it has {there}")
    run.flows = kept
    numbers = {str(flow.number) for flow in kept}
    run.rows = {flow: row for flow, row in run.rows.items() if flow in numbers}
    if len(kept) == 1 and run.rows:
        run.rows["all"] = next(iter(run.rows.values()))


def compose(chosen: Choice, options: Options) -> Drawing:
    """Draws the figure. Raises `ReportError` if there is nothing to draw or a record is damaged."""
    try:
        return replace(_compose(chosen, options), tags=_tags(chosen.folders))
    except (ValueError, ArithmeticError, OSError) as error:  # The core's error for damaged records.
        raise ReportError(str(error)) from error
    except KeyError as error:
        raise ReportError(f"figure {chosen.figure} can't be drawn: the record has no {error}") from error


def _tags(folders: Sequence[Path]) -> tuple[str, ...]:
    headers = [(folder, load(folder).header) for folder in folders]
    named = [f"campaign {folder.resolve().name} {header.hash}".rstrip() for folder, header in headers]
    return (*named, f"Narrows {__version__}")


def _compose(chosen: Choice, options: Options) -> Drawing:
    kind = kind_of(chosen.figure)
    data = select(chosen)
    if chosen.metric and not kind.of_metric:
        able = ", ".join(known.name for known in list_figures() if known.of_metric)
        raise UsageError(f"figure {kind.name} does not show any metric; --metric is for {able}")
    data.chosen_metric = chosen.metric
    if kind.scope == "campaign":
        return _of_campaign(kind, data, options)
    runs = [run for run in data.runs if run.record is not None]
    if not chosen.runs:
        middle = [choice.representative(data.of_scheme(scheme)) for scheme in data.schemes]
        runs = [run for run in middle if run is not None]
    if not runs:
        raise ReportError(f"figure {kind.name} shows single runs, and none of these left a record")
    drawable = [run for run in runs if kind.absent(run) is None]
    if not drawable:
        raise ReportError(f"figure {kind.name} can't be drawn: {kind.absent(runs[0])}")
    drawn = (
        _overlaid(kind, drawable, data, options)
        if len(drawable) > 1
        else _finish(kind, drawable[0], drawable, options)
    )
    left_out = ", ".join(run.cell for run in runs if all(run is not item for item in drawable))
    return replace(drawn, caption=f"{drawn.caption} Nothing to show of {left_out}.") if left_out else drawn


def _of_campaign(kind: figures.FigureKind, data: Campaign, options: Options) -> Drawing:
    if (why := kind.absent(data)) is not None:
        raise ReportError(f"figure {kind.name} can't be drawn: {why}")
    valid = [run for run in data.runs if run.valid]
    return _finish(kind, data, valid or data.runs, options)


def _finish(kind: figures.FigureKind, data: Campaign | Run, runs: Sequence[Run], options: Options) -> Drawing:
    figure = kind.figure(data, options)
    caption = kind.caption(data) + _limit_axes(figure, options, own=getattr(kind.module, "OWN_LIMITS", False))
    account = account_of(kind, data)
    return Drawing(
        figure, kind.numbers(data), kind.title, full_caption(caption, account), _ids(runs), account
    )


def _limit_axes(figure: Figure, options: Options, *, own: bool = False) -> str:
    """Sets the requested limits of the axes, unless the figure sets them itself (`own`); returns the sentence
    about points outside.
    """
    if options.x == options.y == (None, None):
        return ""
    if not own:
        for axes in figure.axes:
            drawing.limit(axes, options)
            drop_crowded_labels(axes.xaxis, None)
    return edges.sentence(*edges.mark_outside(figure))


def account_of(kind: figures.FigureKind, data: Campaign | Run) -> Account | None:
    """The runs behind a figure; `None` for one that shows no measurement."""
    if isinstance(data, Run):
        return accounts.of_runs([data], "a single run")
    statistic = kind.statistic
    return accounts.of_campaign(data, statistic) if statistic else None


def full_caption(caption: str, account: Account | None) -> str:
    """A caption with the account of the runs."""
    return f"{caption} {account.sentences()}" if account is not None else caption


def _overlaid(kind: figures.FigureKind, runs: list[Run], data: Campaign, options: Options) -> Drawing:
    if not overlay.possible(kind):
        names = ", ".join(run.cell for run in runs[:6])
        raise ReportError(
            f"figure {kind.name} shows one run; choose it with --runs, for example --runs {runs[0].cell}"
            f" (there is {names})"
        )
    lines = overlay.lines(kind, runs, data.conditions)
    figure = overlay.figure(lines, options)
    caption = f"{kind.title} of {len(runs)} runs over each other, in the colours of their schemes."
    caption += _conditions.says_conditions(data)
    caption += str(getattr(kind.module, "OVERLAID", "")) + _limit_axes(figure, options)
    account = accounts.of_runs(runs, "single runs, of each row the one nearest to its medians unless chosen")
    return Drawing(
        figure, overlay.numbers(lines), kind.title, full_caption(caption, account), _ids(runs), account
    )


def _ids(runs: Sequence[Run]) -> list[str]:
    """Folder, cell, seed and problems of every run, if known."""
    ids = []
    for run in runs:
        seed = run.settings.seed
        name = f"{run.folder.resolve().parent.parent.name}/{run.cell}"
        notes = [f"seed {seed}"] if seed else []
        notes += [f"{item.flaw}: {' '.join(item.reasons)}" for item in accounts.list_flaws([run])]
        ids.append(f"{name} ({'; '.join(notes)})" if notes else name)
    return ids


def write(drawn: Drawing, out: Path, options: Options, csv: Path | None = None) -> list[Path]:
    """Writes the figure in the format of the file's suffix, and its numbers as CSV beside it."""
    form = out.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise ReportError(
            f"{out}: figures can't be written as {form or 'files without an ending'}; choose .pdf, .svg"
            " or .png"
        )
    about = (drawn.title, f"{drawn.caption} Runs: {'; '.join(drawn.runs)}. {'; '.join(drawn.tags)}.")
    beside = csv or out.with_suffix(".csv")
    try:
        written = drawing.write_figure(drawn.figure, out.with_suffix(""), [form], options, about)
        drawing.write_numbers(drawn.numbers, beside)
    except OSError as error:
        raise NarrowsError(f"{out}: the figure can't be written: {reason(error)}") from error
    return [*written, beside]


def combinations(chosen: Choice, out: Path) -> list[tuple[Choice, Path]]:
    """Splits the choice by the combinations of its matrix values, with a file for each."""
    data = select(chosen)
    pairs = []
    for title, rows in data.conditions.items():
        if not title:
            raise UnknownNameError("--each: the chosen runs have one combination of values; leave it out")
        plain = "".join(letter if letter.isalnum() or letter == "." else "-" for letter in title)
        name = f"{out.stem}-{'-'.join(part for part in plain.split('-') if part)}{out.suffix}"
        only = tuple(f"{key}={value}" for key, value in rows[0].values)
        pairs.append((replace(chosen, only=only), out.with_name(name)))
    return pairs


def list_figures() -> list[figures.FigureKind]:
    """All figures."""
    return list(figures.registry().values())
