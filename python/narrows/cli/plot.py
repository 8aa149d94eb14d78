"""`narrows plot`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from narrows.cli.app import command
from narrows.cli.common import Json, Only, Schemes
from narrows.cli.completion import figure_names
from narrows.cli.parameters import argument, option

if TYPE_CHECKING:
    from narrows.report.drawing import Options


class Preset(StrEnum):
    """Sizes of figures by where they are printed."""

    COLUMN = "column"
    TEXT = "text"
    SLIDE = "slide"


#: Width in mm, height in mm if not the usual one, text size in points.
_PRESETS: dict[Preset, tuple[float, float | None, float]] = {
    Preset.COLUMN: (88.0, None, 8.0),
    Preset.TEXT: (180.0, None, 8.0),
    Preset.SLIDE: (148.0, 83.0, 7.0),  # Scaled to a slide of 254 mm, its text has 12 pt.
}


#: The height of the text area of a page.
_PAGE_MM = 250.0


@command(example="narrows plot results/x --figure throughput --schemes cubic,bbr1 -o fig.pdf")
def plot(
    folders: Annotated[
        list[Path] | None, argument(metavar="DIR...", help="Folders of campaigns.", show_default=False)
    ] = None,
    figure: Annotated[
        str,
        option("--figure", metavar="NAME", help="The figure; --list names them.", complete=figure_names),
    ] = "summary",
    output: Annotated[
        Path | None,
        option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where to write it: .pdf, .svg or .png.  [default: NAME.pdf]",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        option(
            metavar="M",
            help='The metric of --figure bars, by name or head, such as "p95 OWD".  [default: throughput]',
        ),
    ] = None,
    schemes: Schemes = None,
    only: Only = None,
    each: Annotated[
        bool,
        option(
            "--each",
            help="A figure for each combination of the matrix, in separate files: FILE-VALUES.pdf.",
        ),
    ] = False,
    runs: Annotated[
        str | None,
        option(
            metavar="N,M",
            help="Runs by number or by name of their cell. Figures over time show of each scheme the run"
            " nearest to its medians otherwise.",
        ),
    ] = None,
    flows: Annotated[str | None, option(metavar="N,M", help="Only these flows, by number.")] = None,
    x: Annotated[
        str | None,
        option("--x", metavar="LOW:HIGH", help="Ends of the axis in its unit; either may be empty."),
    ] = None,
    y: Annotated[str | None, option("--y", metavar="LOW:HIGH", help="The same for the upright axis.")] = None,
    preset: Annotated[
        Preset,
        option(
            help="A column (88 mm) or the width (180 mm) of a paper's text, 8 pt, or a slide (16:9, text"
            " of 12 pt when it fills 254 mm)."
        ),
    ] = Preset.TEXT,
    width_mm: Annotated[
        float | None, option("--width", metavar="MM", min=40, max=1000, help="Width in mm instead.")
    ] = None,
    height_mm: Annotated[
        float | None, option("--height", metavar="MM", min=20, max=1000, help="Height in mm.")
    ] = None,
    csv: Annotated[
        Path | None,
        option(metavar="FILE", help="Where to write the numbers.  [default: beside the figure]"),
    ] = None,
    listing: Annotated[bool, option("--list", help="Name the figures and end.")] = False,
    as_json: Json = False,
) -> None:
    """Draw a figure of campaigns, for a paper or a slide.

    Several schemes, runs or campaigns are superimposed. The plotted numbers are written as CSV beside the
    figure, and the names of the runs into its metadata. In PDF files text stays text.

    Exit codes: 0 done, 2 usage, 3 nothing to draw or a damaged campaign.
    """
    from narrows.errors import UsageError

    if listing:
        _list(as_json)
        return
    if not folders:
        raise UsageError("name the folder of a campaign, or --list the figures")
    from narrows.report.drawing import Options
    from narrows.report.plotting import Choice, combinations, compose, kind_of, write

    name = kind_of(figure).name
    out = output or Path(f"{name.replace('_', '-')}.pdf")
    if out.is_dir():
        raise UsageError(f"-o {out} is a folder; name a file")
    if out.suffix.lower() not in (".pdf", ".svg", ".png"):
        raise UsageError(f"-o {out}: the name must end in .pdf, .svg or .png")
    wide, high, size = _PRESETS[preset]
    options = Options(width_mm or wide, height_mm or high, size, _span("--x", x), _span("--y", y))
    if each and csv is not None:
        raise UsageError("--each writes several figures, whose numbers lie beside them; leave --csv out")
    chosen = Choice(
        tuple(folders), name, _split(schemes), _split(runs), _numbers(flows), tuple(only or ()), metric or ""
    )
    documents = []
    for choice, file in combinations(chosen, out) if each else [(chosen, out)]:
        drawn = _with_progress(lambda choice=choice: compose(choice, options))
        written = write(drawn, file, options, csv)
        documents.append(
            {
                "figure": name,
                "title": drawn.title,
                "caption": drawn.caption,
                "files": [str(path) for path in written],
                "size_mm": [round(25.4 * float(side), 1) for side in drawn.figure.get_size_inches()],
                "runs": drawn.runs,
                **(drawn.account.to_json() if drawn.account is not None else {}),
            }
        )
        if not as_json:
            _tell(documents[-1], options)
    if as_json:
        from narrows.cli.common import print_json

        print_json(documents if each else documents[0])


def _tell(document: dict[str, Any], options: Options) -> None:
    from narrows.console import say

    for path in document["files"]:
        print(f"{'numbers' if path.endswith('.csv') else 'figure'}: {path}")
    print(document["caption"])
    high = document["size_mm"][1]
    if options.height_mm is None and high > _PAGE_MM:
        say(
            f"narrows: the figure is {high:g} mm high, more than a page; --only chooses combinations, and"
            " --each draws one figure for each"
        )
    if options.height_mm is not None and high > options.height_mm + 0.5:
        say(
            f"narrows: the figure is {high:g} mm high, since {options.height_mm:g} mm are too few for what it"
            " shows; choose less with --only or --schemes"
        )


def _list(as_json: bool) -> None:
    from narrows.cli.common import print_json
    from narrows.report.plotting import list_figures

    figures = list_figures()
    if as_json:
        print_json(
            [
                {
                    "name": figure_kind.name,
                    "also": list(figure_kind.also),
                    "scope": figure_kind.scope,
                    "shows": figure_kind.summary,
                }
                for figure_kind in figures
            ]
        )
        return
    from textwrap import fill

    from narrows.blocks.terminal import width as columns

    width = columns()
    for figure_kind in figures:
        left = f"{figure_kind.name.replace('_', '-'):<17}"
        more = [
            *(["of runs"] if figure_kind.scope == "run" else []),
            *(["also: " + ", ".join(figure_kind.also)] if figure_kind.also else []),
        ]
        text = figure_kind.summary + (f" ({'; '.join(more)})" if more else "")
        print(fill(text, width, initial_indent=left, subsequent_indent=" " * 17, break_on_hyphens=False))


def _split(text: str | None) -> tuple[str, ...]:
    from narrows.cli.common import names_in

    return tuple(names_in(text))


def _numbers(text: str | None) -> tuple[int, ...]:
    from narrows.errors import UsageError

    parts = _split(text)
    if not all(part.isdigit() for part in parts):
        raise UsageError(f'--flows: "{text}" are no numbers of flows; write for example --flows 1,2')
    return tuple(int(part) for part in parts)


def _span(option: str, text: str | None) -> tuple[float | None, float | None]:
    from narrows.errors import UsageError

    if text is None:
        return None, None
    low, word, high = text.partition(":")
    try:
        ends = (float(low) if low.strip() else None, float(high) if high.strip() else None)
    except ValueError:
        word = ""
        ends = (None, None)
    if not word:
        raise UsageError(f'{option}: "{text}" is not a pair of ends; write for example {option} 0:30')
    if ends[0] is not None and ends[1] is not None and not ends[0] < ends[1]:
        raise UsageError(f"{option}: the first end must be smaller than the second one, as in {option} 0:30")
    return ends


def _with_progress(make: Any) -> Any:
    """Draws, with a progress display on a terminal."""
    from narrows.progress import progress

    with progress("drawing"):
        return make()
