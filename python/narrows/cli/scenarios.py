"""`narrows scenarios`, `narrows schema`: what there is to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrows.cli.app import command
from narrows.cli.common import Json


@command(example="narrows scenarios first-look")
def scenarios(
    name: Annotated[str | None, typer.Argument(help="Print the text of this one.")] = None,
    as_json: Json = False,
) -> None:
    """List the shipped scenarios with their questions, or print one to start your own from."""
    from narrows.cli.common import print_json
    from narrows.console import stdout_console, table
    from narrows.scenario.shipped import find, shipped
    from narrows.scenario.yaml_tree import Scalar, read_file

    if name is not None:
        print(read_file(find(name))[0], end="")
        return
    found = []
    for one in shipped():
        tree = read_file(one.path)[1]
        texts = {
            key: value.text
            for key in ("question", "where")
            if isinstance(value := tree.entries.get(key), Scalar)
        }
        found.append({"name": one.name, "family": one.family, "path": str(one.path), **texts})
    if as_json:
        print_json({"format": "narrows/scenarios/1", "scenarios": found})
        return
    listed = table("scenario", "family", "where", "question", whole=("scenario",))
    for item in found:
        listed.add_row(item["name"], item["family"], item.get("where", ""), item.get("question", ""))
    stdout_console().print(listed)


@command(example="narrows schema > scenario.schema.json")
def schema(
    reference: Annotated[
        bool, typer.Option("--reference", help="Print the reference of scenarios as Markdown.")
    ] = False,
    schemes: Annotated[
        bool, typer.Option("--schemes", help="Print the reference of schemes as Markdown.")
    ] = False,
    program: Annotated[
        bool, typer.Option("--program", help="Print the JSON Schema of manifests of programs.")
    ] = False,
    elements: Annotated[
        Path | None,
        typer.Option(
            "--elements", help="Write the reference of elements with its pictures into this folder."
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from narrows.scenario import registry

    if elements is not None:
        from narrows.reference.elements import write

        write(registry.load(), elements)
        return
    if program:
        from narrows.programs.schema import schema_text as schema_of_programs

        print(schema_of_programs(), end="")
        return
    if schemes:
        from narrows.schemes.reference import markdown as markdown_of_schemes

        print(markdown_of_schemes(registry.load()), end="")
        return
    from narrows.scenario.reference import markdown
    from narrows.scenario.schema import schema_text

    print(markdown(registry.load()) if reference else schema_text(registry.load()), end="")
