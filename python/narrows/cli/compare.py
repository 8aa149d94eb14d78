"""`narrows compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from narrows.cli.app import command
from narrows.cli.common import Json, Only, PaperForm, Schemes, choose_labels, names_in, read_metrics
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.comparison.document import Request
    from narrows.documents.comparison import Comparison


@command(example="narrows compare results/before results/after --fail-on 'throughput worse by 5 %'")
def compare(
    folders: Annotated[
        list[Path],
        argument(
            metavar="DIR...",
            help="Campaigns, or cells of them; each is compared with the first one. With a single one, its"
            " schemes are compared.",
        ),
    ],
    schemes: Schemes = None,
    only: Only = None,
    pairs: Annotated[
        list[str] | None,
        option(
            "--pair",
            metavar="ONE=OTHER",
            help="Compare two schemes of different names, such as two implementations: --pair"
            " cubic=linux:cubic."
            " Repeatable.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        option(
            metavar="SCHEME",
            help="Of one campaign: compare its rows with this one alone: a row by its label, or a scheme in"
            " each combination of a matrix.",
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        option(
            metavar="M,N",
            help='Metrics, separated by commas, by name or head: "thr,p95 OWD,jain_10s"; a file of Python'
            " (mine.py) adds its own to the usual ones.",
        ),
    ] = None,
    flow: Annotated[
        str, option(metavar="N", help="A flow by its number or label, instead of all together.")
    ] = "all",
    across: Annotated[
        list[str] | None,
        option(
            metavar="CONDITION",
            help="Compare although this differs: network, flows, duration, timeline, measure, draw,"
            " metrics or all."
            " Repeatable.",
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        option(
            "--fail-on",
            metavar="LIMIT",
            help="Exit with 5 if it is broken: 'throughput worse by 5 %', 'cubic: p95 OWD worse by 2 ms',"
            " 'loss different', 'throughput not equivalent' (with --margin). Repeatable.",
        ),
    ] = None,
    margins: Annotated[
        list[str] | None,
        option(
            "--margin",
            metavar="[METRIC] AMOUNT",
            help="The smallest difference that matters: '1 %', '2 ms', 'loss 0.5 points'. Says which differ"
            " by more, which are equivalent within it, and which are undecided. Repeatable.",
        ),
    ] = None,
    traces: Annotated[
        bool | None,
        option(
            "--traces/--no-traces",
            help="Also find where the states of senders part, and the overlap of performance envelopes. "
            " [default:"
            " for at most 2 rows]",
        ),
    ] = None,
    tolerance: Annotated[
        str | None,
        option(
            metavar="SHARE",
            help="States that differ by less are the same.  [default: 0 % if both were simulated, else 5 %]",
        ),
    ] = None,
    markdown: Annotated[bool, option("--markdown", help="Print Markdown, for a pull request.")] = False,
    html: Annotated[bool, option("--html", help="Print one HTML page with everything in it.")] = False,
    form: PaperForm = None,
    as_json: Json = False,
    output: Annotated[
        Path | None, option("-o", "--output", metavar="FILE", help="Write to this file instead.")
    ] = None,
) -> None:
    """Compare campaigns, or the schemes of one.

    Differences between the set-ups come first, then those between the runs. Runs with the same number and
    seed are compared in pairs, others without pairs. A difference counts as shown if it holds among all
    comparisons together; below 6 runs on each side nothing can be shown. Campaigns whose schemes met
    different conditions are refused.

    Exit codes: 0 done, 2 usage, 3 not comparable or damaged, 5 a limit of --fail-on is broken.
    """
    from narrows.cli.common import write_table
    from narrows.comparison.document import Request, compare
    from narrows.console import say
    from narrows.errors import EXIT_BAD_INPUT, EXIT_EXPECTATION
    from narrows.paper.differences import comparison_table
    from narrows.paper.forms import form_of

    names = names_in(metrics)
    files = [Path(name) for name in names if name.endswith(".py")]
    read_metrics(files)
    paper = None if form is None else form.value
    if paper is None and output is not None and output.suffix.lower() in (".tex", ".csv"):
        paper = form_of(output)
    if paper == "markdown":
        markdown, paper = True, None
    _check_output(folders, output, (markdown, html, as_json, paper is not None))
    request = Request(
        folders,
        schemes=_rows(folders, schemes, only),
        pairs=pairs or [],
        against=against,
        metrics=[name for name in names if not name.endswith(".py")],
        flow=flow,
        across=_conditions(across or []),
        fail_on=fail_on or [],
        margins=margins or [],
        traces=traces,
        tolerance=_share(tolerance),
        warn=lambda text: say(f"narrows: {text}"),
    )
    document = _with_progress(request, compare)
    if paper is not None:
        write_table(comparison_table(document), paper, output)
    else:
        _show(document, markdown=markdown, html=html, as_json=as_json, output=output)
    broken = [limit.limit for limit in document.limits if limit.broken]
    if broken:
        say(f"narrows: broken: {'; '.join(broken)}")
        raise Exit(EXIT_EXPECTATION)
    if document.unread:
        raise Exit(EXIT_BAD_INPUT)


def _rows(folders: list[Path], schemes: str | None, only: list[str] | None) -> list[str]:
    """The selected rows of the first campaign; the names as given if it can't be read, which the comparison
    reports.
    """
    from narrows.campaign.store import CampaignFolder
    from narrows.errors import NarrowsError

    named = names_in(schemes)
    if not (named or only):
        return []
    place = folders[0]
    if (place / "run.json").exists():
        place = place.resolve().parent.parent
    try:
        folder = CampaignFolder.read(place)
    except NarrowsError:
        return named
    return choose_labels([folder], schemes, only) or []


def _check_output(folders: list[Path], output: Path | None, forms: tuple[bool, ...]) -> None:
    from narrows.errors import UsageError

    if sum(forms) > 1:
        raise UsageError("--json, --markdown, --html and --format are different forms; write one of them")
    for folder in folders:
        if folder.suffix in (".html", ".md", ".json", ".txt") and not folder.is_dir():
            raise UsageError(f"{folder} is not a folder of results; to write there: -o {folder}")
    if output is not None and output.is_dir():
        raise UsageError(f"-o {output} is a folder; name a file")


def _conditions(names: list[str]) -> list[str]:
    from narrows.comparison.setups import ALL, CONDITIONS
    from narrows.errors import UsageError
    from narrows.text import suggest

    known = [*CONDITIONS, ALL]
    for name in names:
        if name not in known:
            hint = suggest(name, known, "condition")
            raise UsageError(f'--across: unknown condition "{name}"{hint}')
    return names


def _share(text: str | None) -> float | None:
    from narrows.errors import UsageError
    from narrows.scenario.quantity import QuantityError, convert, parse

    if text is None:
        return None
    try:
        return float(convert(parse(text, "ratio"), "ratio", None))
    except QuantityError as error:
        raise UsageError(f"--tolerance: {error}") from None


def _with_progress(request: Request, compare: Any) -> Comparison:
    """Compares, with a progress bar on a terminal if it takes long."""
    from narrows.progress import progress

    with progress("comparing") as bar:
        request.progress = bar.count
        comparison: Comparison = compare(request)
        return comparison


def _show(document: Comparison, *, markdown: bool, html: bool, as_json: bool, output: Path | None) -> None:
    import io
    import json

    from narrows.comparison.compose import HOW, compose, style

    if as_json:
        from narrows.documents.data import to_data

        text = json.dumps(to_data(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    elif markdown:
        from narrows.blocks.markdown import render

        text = render(compose(document), level=3)
    elif html:
        from narrows.blocks.html import page

        text = page(compose(document), style())
    else:
        from narrows.blocks.terminal import print_document
        from narrows.console import stdout_console

        console = stdout_console()
        if output is None:
            print_document(console, compose(document), HOW)
            return
        console.file = io.StringIO()
        print_document(console, compose(document), HOW)
        text = console.file.getvalue()
    if output is None:
        print(text, end="")
        return
    from narrows.campaign.json_files import write_atomically

    write_atomically(output, text)
    print(f"comparison: {output}")
