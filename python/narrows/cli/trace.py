"""`narrows trace`: make, record, show, convert and import traces of links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli import trace_make, trace_record  # noqa: F401 (they add commands to the group)
from narrows.cli.app import subcommand
from narrows.cli.common import Json
from narrows.cli.parameters import argument, option
from narrows.cli.trace_group import Bin, Force, mean_of, print_trace, read_span, trace

if TYPE_CHECKING:
    from narrows.traces.statistics import Statistics
    from narrows.traces.trace import Delays, Trace


@subcommand(trace, example="narrows trace show cellular-drive.csv --picture drive.png")
def show(
    files: Annotated[
        list[str], argument(metavar="FILE...", help="Files, or names of imported or shipped traces.")
    ],
    as_json: Json = False,
    picture: Annotated[
        Path | None, option("--picture", help="Draw the trace into this .png, .svg or .pdf file.")
    ] = None,
) -> None:
    """Print the statistics of traces, and draw them."""
    from narrows.cli.common import print_json
    from narrows.errors import UsageError
    from narrows.report import trace as drawing
    from narrows.traces import find
    from narrows.traces.formats import read
    from narrows.traces.statistics import measure
    from narrows.traces.trace import Delays

    if picture is not None and len(files) > 1:
        raise UsageError("--picture draws one trace; name one file")
    documents = []
    for index, name in enumerate(files):
        path = find(name, Path())
        delays, form = read(path)
        if index and not as_json:
            print()
        if isinstance(delays, Delays):
            if picture is not None:
                raise UsageError(f"{path}: is a trace of delays; --picture draws traces of rates")
            if as_json:
                documents.append({"file": str(path), "format": form, **_delays(delays)})
            else:
                _print_delays(path, form, delays)
            continue
        statistics = measure(delays)
        if as_json:
            documents.append({"file": str(path), "format": form, **statistics.to_json()})
        else:
            _print(path, form, delays, statistics)
        if picture is not None:
            drawing.write(delays, path.name, picture)
    if as_json:
        print_json({"format": "narrows/traces/1", "traces": documents})


def _delays(delays: Delays) -> dict[str, object]:
    return {
        "length_ns": delays.length_ns,
        "rows": len(delays.delay_ns),
        "lowest_delay_ns": int(delays.delay_ns.min()),
        "mean_delay_ns": delays.mean_ns,
        "highest_delay_ns": int(delays.delay_ns.max()),
    }


def _print_delays(path: Path, form: str, delays: Delays) -> None:
    from narrows.report.units import span

    print(f"{path.name}: {form}, {span(delays.length_ns)}, {len(delays.delay_ns)} delays")
    print(f"  lowest   {span(int(delays.delay_ns.min()))}")
    print(f"  mean     {span(delays.mean_ns)}")
    print(f"  highest  {span(int(delays.delay_ns.max()))}")


def _print(path: Path, form: str, trace: Trace, statistics: Statistics) -> None:
    from narrows.console import stdout_console
    from narrows.report import trace as drawing
    from narrows.report.units import span
    from narrows.traces.trace import Opportunities

    console = stdout_console()
    what = "opportunities of 1500 bytes" if isinstance(trace, Opportunities) else "rates"

    def say(text: str) -> None:
        console.print(text, soft_wrap=True)

    say(f"{path.name}: {form}, {span(statistics.length_ns)}, {statistics.rows} {what}")
    blocks, top = drawing.line(trace, 60)
    say(f"  |{blocks}| full block: {top / 1e6:.4g} Mbit/s")
    say(f"  mean rate           {statistics.mean_bps / 1e6:.4g} Mbit/s")
    for name, window in statistics.windows.items():
        low, high = window["lowest_bps"] / 1e6, window["highest_bps"] / 1e6
        middle = "  ".join(f"{p} %: {window[f'p{p}_bps'] / 1e6:.4g}" for p in (5, 25, 50, 75, 95))
        say(f"  windows of {name:8} lowest: {low:.4g}  {middle}  highest: {high:.4g} Mbit/s")
        say(f"  {'':19} deviation / mean: {window['variation']:.3g}")
    say(f"  longest silence     {span(statistics.longest_gap_ns)}")
    say(f"  silent 100 ms       {100 * statistics.silent_ratio:.3g} % of the windows")
    if statistics.autocorrelation_time_s is not None:
        say(
            f"  memory              {statistics.autocorrelation_time_s:.1f} s"
            " until the autocorrelation is below 1/e"
        )
    if statistics.seam:
        say(f"  note: {statistics.seam}")


@subcommand(trace, example="narrows trace convert drive.trace drive.csv --bin '20 ms'")
def convert(
    source: Annotated[str, argument(metavar="IN", help="A file, or the name of a trace.")],
    target: Annotated[Path, argument(metavar="OUT", help="The file to write.")],
    read_as: Annotated[
        str | None, option("--from", help="Format of IN. [default: told from its content]")
    ] = None,
    write_as: Annotated[
        str | None,
        option("--to", help="mahimahi, csv, parquet or pensieve. [default: by the extension of OUT]"),
    ] = None,
    bin_text: Bin = "100 ms",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Turn a trace into another format.

    Formats are mahimahi, csv, parquet and pensieve; logs of mahimahi are read too. Conversions between
    opportunities and rates preserve the amount of data, within the bounds that docs/guide/traces.md states.
    """
    from narrows.console import say
    from narrows.traces import find
    from narrows.traces.convert import format_for, save
    from narrows.traces.formats import read

    form = format_for(target, write_as)
    result, _ = read(find(source, Path()), read_as)
    written = save(result, target, form, force=force, bin_ns=read_span(bin_text, "--bin"))
    text = f"{target}: {form}, {written.length_ns / 1e9:.9g} s, mean {mean_of(written)}"
    if written.length_ns != result.length_ns:
        text += f" (the length was {result.length_ns / 1e9:.9g} s, mean {mean_of(result)})"
    if as_json:
        print_trace(target, form, written)
    else:
        say(text)


@subcommand(trace, "import", example="narrows trace import lte.trace --name my-lte")
def import_(
    file: Annotated[Path, argument(metavar="FILE", help="A trace in any format.")],
    name: Annotated[
        str | None, option("--name", help="The name for scenarios. [default: the file's]")
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Keep a trace in your data folder.

    Scenarios then find it by its name.
    """
    from narrows.errors import DataError
    from narrows.traces.convert import save
    from narrows.traces.formats import FORMATS, read
    from narrows.traces.store import import_target
    from narrows.traces.trace import Delays, Opportunities

    result, form = read(file)
    # Scenarios accept three formats; the others are converted to the one that loses nothing.
    if form == "pensieve":
        form = "csv"
    elif isinstance(result, Opportunities):
        form = "mahimahi"
    target = import_target(file.with_suffix(FORMATS[form].suffix), name)
    if target.suffix != FORMATS[form].suffix:
        raise DataError(
            f"{target.name}: a {form} trace is called {FORMATS[form].suffix} here; leave the ending out"
        )
    save(result, target, form, force=force)
    if as_json:
        print_trace(target, form, result)
        return
    use = (
        f"{{delaytrace: {target.name}}}"
        if isinstance(result, Delays)
        else f"{{rate: {{trace: {target.name}}}}}"
    )
    print(f"imported as {target.name}; in a scenario: {use}")


@subcommand(trace, "list", example="narrows trace list")
def list_(as_json: Json = False) -> None:
    """List the imported and the shipped traces."""
    from msgspec.structs import replace

    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.documents.data import to_data
    from narrows.documents.traces import FORMAT, ListedTrace
    from narrows.errors import DataError
    from narrows.traces.formats import read
    from narrows.traces.store import find_shipped_folder, list_traces, user_folder

    rows: list[ListedTrace] = []
    for origin, folder in (("imported", user_folder()), ("shipped", find_shipped_folder())):
        for path in list_traces(folder):
            row = ListedTrace(name=path.name, origin=origin, path=str(path))
            try:
                result, form = read(path)
                row = replace(row, format=form, length_ns=result.length_ns, mean=mean_of(result))
            except DataError as error:
                row = replace(row, problem=str(error))
            rows.append(row)
    if as_json:
        print_json({"format": FORMAT, "traces": to_data(rows)})
        return
    from narrows.report.units import span

    made = Listing("trace", "from", "format", "length", "mean", whole=("trace",))
    for row in rows:
        if row.problem:
            made.add_row(row.name, row.origin, row.problem)
        else:
            made.add_row(row.name, row.origin, row.format or "", span(row.length_ns), row.mean)
    made.print()
