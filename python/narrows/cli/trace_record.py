"""`narrows trace record`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from narrows.cli.app import subcommand
from narrows.cli.common import REMOTE_FOLDER, SSH, Json, print_json, remote_options
from narrows.cli.parameters import argument, option
from narrows.cli.trace_group import Bin, Force, mean_of, read_rate, read_span, trace

if TYPE_CHECKING:
    from narrows.campaign.path_recording import Ended

#: Below this share of the time under load, users are warned.
_FULL = 0.95


@subcommand(trace, example="narrows trace record user@host lte.trace --data '200 MB' --time '60 s'")
def record(
    host: Annotated[str, argument(metavar="USER@HOST", help="The other host, as ssh takes it.")],
    out: Annotated[Path, argument(metavar="OUT", help="The file to write.")],
    data: Annotated[
        str,
        option("--data", metavar="SIZE", help="Most data to send in each direction, headers included."),
    ],
    time: Annotated[
        str, option("-t", "--time", metavar="TIME", help="Time to record: 60 (seconds) or '5 min'.")
    ],
    direction: Annotated[
        str,
        option("--direction", help="down (to this machine), up, or both: one after the other, in two files."),
    ] = "down",
    rate: Annotated[str, option("--rate", help="Send no faster than this.")] = "100 Mbit/s",
    changes: Annotated[
        list[str] | None,
        option(
            "--set",
            metavar="KEY=VALUE",
            help="A key of real_path: --set real_path.interface.here=wwan0. Repeatable.",
        ),
    ] = None,
    bin_text: Bin = "100 ms",
    force: Force = False,
    agent: Annotated[
        Path | None,
        option(metavar="FILE", help="A narrows-agent built for the other host's architecture."),
    ] = None,
    remote_folder: Annotated[str | None, REMOTE_FOLDER] = None,
    ssh: Annotated[str, SSH] = "ssh",
    as_json: Json = False,
) -> None:
    """Keep a real path full, and write its deliveries as a trace.

    The recording fills every buffer on the way: the round trip is held between 750 ms and 3 s. Use it only
    where no other user suffers and the cost of the data does not matter; therefore --data and --time have no
    defaults. Sending stops when the data is used up, when acknowledgements stop, and when the other host
    vanishes; the command ends after --time. Ctrl-C keeps the recording up to that moment.

    Exit codes: 0 done, 2 usage, 3 no trace could be made, 4 the host can't be reached or has vanished, 130
    interrupted with the recording kept.
    """
    from narrows.campaign.path_recording import DIRECTIONS, Limits
    from narrows.campaign.path_recording import record as recording
    from narrows.cli.common import positive
    from narrows.console import say
    from narrows.errors import Interrupted, UnavailableError, UsageError
    from narrows.scenario.overrides import Override
    from narrows.traces.convert import check_target, format_for, save

    wanted = list(DIRECTIONS) if direction == "both" else [direction]
    if not set(wanted) <= DIRECTIONS.keys():
        raise UsageError(f'--direction: "{direction}" is not down, up or both')
    form = format_for(out, None)
    files = {text: out if len(wanted) == 1 else out.with_stem(f"{out.stem}-{text}") for text in wanted}
    for file in files.values():
        check_target(file, force=force)
    made = [Override.from_set(change) for change in changes or []]
    for override in made:
        if not override.path.startswith("real_path.") or override.path in (
            "real_path.sender",
            "real_path.tunnel",
        ):
            raise UsageError(
                f"{override.option}: only keys of real_path but sender and tunnel can be set here"
            )
    # Seconds, as in narrows run.
    length = read_span(f"{time} s" if time.strip().isdecimal() else time, "--time")
    limits = Limits(positive(data, "bytes", "--data"), length, read_rate(rate, "--rate"))
    width = read_span(bin_text, "--bin")
    documents = []
    last: Ended | None = None
    for last in recording(host, wanted, limits, made, remote_options(ssh, remote_folder, agent), say):
        file = files[last.direction]
        written = save(last.recorded.trace, file, form, force=force, bin_ns=width)
        document = _document(last, file, form)
        documents.append(document)
        if not as_json:
            print(
                f"{file}: {form}, {last.direction}, {written.length_ns / 1e9:.9g} s, mean {mean_of(written)};"
                f" packets waited {100 * last.recorded.full_ratio:.3g} % of the time, typically"
                f" {last.recorded.waited_p50_ns / 1e6:.3g} ms"
            )
            if last.recorded.full_ratio < _FULL:
                say(f"{file}: the path was not always full, and may carry more; see the guide on traces")
    if as_json:
        print_json({"format": "narrows/traces-recorded/1", "traces": documents})
    if last is not None and last.why:
        kept = f"what was recorded until then is in {files[last.direction]}"
        if last.signal is not None:
            raise Interrupted(f"interrupted; {kept}", last.signal)
        raise UnavailableError(f"{last.why}; {kept}")


def _document(ended: Ended, file: Path, form: str) -> dict[str, object]:
    result = ended.recorded
    return {
        "file": str(file),
        "form": form,
        "direction": ended.direction,
        "length_ns": result.trace.length_ns,
        "mean_bps": result.trace.mean_bps,
        "arrived_bytes": result.arrived_bytes,
        "full_ratio": result.full_ratio,
        "waited_p50_ns": result.waited_p50_ns,
        "ended_early": ended.why,
    }
