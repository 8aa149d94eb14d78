"""The page of an external program: `narrows schemes iperf3:cubic`."""

from __future__ import annotations

from pathlib import Path

from narrows.errors import DataError
from narrows.scenario.programs import store, wrapper
from narrows.scenario.programs.scheme import defaults
from narrows.schemes import header
from narrows.schemes.listing import Machine, describe_program
from narrows.schemes.page_content import Page, Row
from narrows.schemes.status import status_of
from narrows.text import did_you_mean, shorten, suggest


def program_page(name: str, machine: Machine) -> Page:
    """Explains `PROGRAM:VARIANT`, or a wrapper of Pantheon. Raises `DataError` if there is none."""
    if wrapper.is_wrapper(name):
        program = wrapper.load(wrapper.find(name, Path()))
        variant = next(iter(program.variants))
    else:
        called, _, variant = name.partition(":")
        paths = {item.name: item.path for item in store.list_programs()}
        if called not in paths:
            hint = did_you_mean(name, store.schemes()) or "; narrows schemes lists them"
            raise DataError(f'scheme "{shorten(name)}" does not exist{hint}')
        program = store.load(paths[called])
        if variant not in program.variants:
            hint = suggest(variant, program.variants, "variant")
            raise DataError(f'{called} has no variant "{shorten(variant)}"{hint}')
    values = defaults(program, program.variants[variant])
    licence = f" Licence: {program.licence}." if program.licence else ""
    reported = ", ".join(report.name for report in program.reports)
    paragraphs = [
        f"A program of others, as {program.path} describes it; the {program.data} sends the data.{licence}",
        *([f"It runs in the root {program.root.path}."] if program.root else []),
        *([f"It reports itself: {reported}."] if reported else []),
    ]
    rows = tuple(
        Row(parameter.name, "", values[parameter.name], "any word", parameter.what, program.path.name)
        for parameter in program.parameters.values()
    )
    return Page(
        describe_program(program, variant, machine),
        header.Header(f"{program.what.rstrip('.')}.", tuple(paragraphs), {}),
        rows,
        {},
        {},
        "",
        status_of(name),
        (),
    )
