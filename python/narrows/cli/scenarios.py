"""`narrows scenarios`, `narrows init`, `narrows schema`: the available scenarios, a new one, and their
schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from narrows.cli import quick
from narrows.cli.app import command
from narrows.cli.common import Json, print_done
from narrows.cli.completion import scenario_names
from narrows.cli.parameters import argument, option

_FIRST_LINES = "# Every key is described by: narrows schema --reference\n"


@command(example="narrows scenarios first-look")
def scenarios(
    name: Annotated[str | None, argument(help="Print the text of this one.", complete=scenario_names)] = None,
    as_json: Json = False,
) -> None:
    """List the shipped scenarios, or print one.

    A printed scenario can be the start of your own.
    """
    from narrows.cli.common import print_json
    from narrows.console import Listing
    from narrows.scenario.shipped import find, list_scenarios
    from narrows.scenario.yaml_tree import Scalar, read_file

    if name is not None:
        print(read_file(find(name))[0], end="")
        return
    entries = []
    for scenario in list_scenarios():
        tree = read_file(scenario.path)[1]
        texts = {
            key: value.text
            for key in ("question", "where")
            if isinstance(value := tree.entries.get(key), Scalar)
        }
        entries.append(
            {"name": scenario.name, "family": scenario.family, "path": str(scenario.path), **texts}
        )
    if as_json:
        print_json({"format": "narrows/scenarios/1", "scenarios": entries})
        return
    listed = Listing("scenario", "family", "where", "question", whole=("scenario",))
    for item in entries:
        listed.add_row(item["name"], item["family"], item.get("where", ""), item.get("question", ""))
    listed.print()


@command(example="narrows init experiment.yaml --rate '12 Mbit/s' --delay '20 ms' --schemes cubic,bbr1")
def init(
    file: Annotated[Path, argument(help="The file to write; it must not exist.")] = Path("scenario.yaml"),
    rate: quick.Rate = None,
    delay: quick.Delay = "20 ms",
    queue: quick.Queue = None,
    loss: quick.Loss = None,
    trace: quick.Trace = None,
    schemes: quick.Schemes = None,
    flows: quick.Flows = None,
    runs: quick.Runs = None,
    seed: quick.Seed = None,
    time: quick.Time = None,
    where: quick.Where = None,
    changes: quick.Changes = None,
    as_json: Json = False,
) -> None:
    """Write the scenario that options describe into a file.

    Without options it is a small scenario to start from; without a rate or a trace the rate is 12 Mbit/s.
    """
    from narrows.campaign.json_files import write_atomically
    from narrows.errors import UsageError
    from narrows.scenario.quick import QuickPath

    if file.exists():
        raise UsageError(f"{file} exists already; name another file, or remove it")
    if rate is None and trace is None:
        rate = "12 Mbit/s"
    path = QuickPath(rate, delay, queue, loss, trace)
    changed = quick.Changed(where, schemes, flows, runs, seed, time, changes or [])
    loaded = quick.load_scenario(None, path, changed, [])
    write_atomically(file, f"{_FIRST_LINES}{loaded.text}")
    text = f"wrote {file}; run it with: narrows run {file}"
    print_done(text, as_json, "init", file=str(file), hash=loaded.scenario.hash)


@command(example="narrows schema > scenario.schema.json")
def schema(
    reference: Annotated[
        bool, option("--reference", help="Print the reference of scenarios as Markdown.")
    ] = False,
    schemes: Annotated[bool, option("--schemes", help="Print the reference of schemes as Markdown.")] = False,
    program: Annotated[
        bool, option("--program", help="Print the JSON Schema of manifests of programs.")
    ] = False,
    lab: Annotated[bool, option("--lab", help="Print the JSON Schema of laboratories.")] = False,
    document: Annotated[
        str | None,
        option(
            "--document",
            metavar="NAME",
            help="Print the JSON Schema of a document: results, comparison, calibration, hunt, lab-report.",
        ),
    ] = None,
    elements: Annotated[
        Path | None,
        option("--elements", help="Write the reference of elements with its pictures into this folder."),
    ] = None,
) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from narrows.scenario import registry

    if elements is not None:
        from narrows.reference.elements import write

        write(registry.load(), elements)
        return
    if program:
        from narrows.scenario.programs.keys import schema_text as schema_of_programs

        print(schema_of_programs(), end="")
        return
    if lab:
        from narrows.lab.keys import schema_text as schema_of_labs

        print(schema_of_labs(), end="")
        return
    if document is not None:
        from narrows.documents.reference import FORMATS
        from narrows.documents.reference import schema_text as schema_of_document
        from narrows.errors import UsageError
        from narrows.text import suggest

        if document not in FORMATS:
            hint = suggest(document, FORMATS, "document")
            raise UsageError(f'--document: unknown document "{document}"{hint}')
        print(schema_of_document(document), end="")
        return
    if schemes:
        from narrows.schemes.reference import markdown as markdown_of_schemes

        print(markdown_of_schemes(registry.load()), end="")
        return
    from narrows.scenario.reference import markdown
    from narrows.scenario.schema import schema_text

    print(markdown(registry.load()) if reference else schema_text(registry.load()), end="")
