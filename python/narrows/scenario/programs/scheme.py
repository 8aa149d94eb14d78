"""Programs in scenarios: a variant with its parameters, in the form of cells."""

from __future__ import annotations

from pathlib import Path

from narrows.documents.programs import End, Limits, Plan, Side
from narrows.errors import DataError
from narrows.scenario.problems import Wrong
from narrows.scenario.programs import store, wrapper
from narrows.scenario.programs.keys import BUILT, HERE, PLACEHOLDERS, placeholders
from narrows.scenario.programs.program import Program, SideOf, Variant
from narrows.scenario.programs.recipe import folder_of
from narrows.scenario.programs.root import prepare
from narrows.scenario.sections import SchemeKeys
from narrows.scenario.yaml_tree import Mapping, Node, Scalar
from narrows.text import did_you_mean, shorten, suggest

#: Keys that name a program in place of a scheme.
PROGRAM, VARIANT = "program", "variant"


def program_of(value: Node, base: Path) -> tuple[Program, Variant]:
    """The program that a scheme names: `iperf3:cubic`, `{scheme: iperf3:cubic, ...}` or `{program: FILE,
    variant: cubic, ...}`, relative to the folder `base`. Raises `Wrong` for errors in the scenario, and
    `DataError` for errors in the manifest.
    """
    if isinstance(value, Mapping) and PROGRAM in value.entries:
        return _by_keys(value, base)
    written = SchemeKeys.from_mapping(value).scheme if isinstance(value, Mapping) else value
    assert isinstance(written, Scalar)
    if wrapper.is_wrapper(written.text):
        return _wrapper(written, value, base)
    name, _, variant = written.text.partition(":")
    try:
        path = store.find(name, base)
    except DataError as error:
        raise Wrong(written.mark, str(error)) from None
    program = store.load(path)
    return program, _variant(program, variant, written)


def _wrapper(written: Scalar, value: Node, base: Path) -> tuple[Program, Variant]:
    """A wrapper of Pantheon, which is asked at once which of its sides listens."""
    given = value.entries.get(wrapper.INTERPRETER) if isinstance(value, Mapping) else None
    interpreter = given.text if isinstance(given, Scalar) and not given.is_null else None
    try:
        program = wrapper.load(wrapper.find(written.text, base), interpreter)
    except DataError as error:
        raise Wrong(written.mark, str(error)) from None
    return program, next(iter(program.variants.values()))


def _by_keys(value: Mapping, base: Path) -> tuple[Program, Variant]:
    written = value.entries[PROGRAM]
    if not isinstance(written, Scalar) or written.is_null or not written.text:
        raise Wrong(written.mark, "must be the name of a program, or the path of its manifest (program.yaml)")
    try:
        path = store.find(written.text, base)
    except DataError as error:
        raise Wrong(written.mark, str(error)) from None
    program = store.load(path)
    if VARIANT not in value.entries:
        if len(program.variants) > 1:
            text = f"needs the key variant: {program.name} has {', '.join(program.variants)}"
            raise Wrong(value.mark, text)
        return program, next(iter(program.variants.values()))
    named = value.entries[VARIANT]
    if not isinstance(named, Scalar) or named.is_null:
        raise Wrong(named.mark, "must be the name of a variant")
    return program, _variant(program, named.text, named)


def _variant(program: Program, name: str, written: Scalar) -> Variant:
    if name not in program.variants:
        hint = suggest(name, program.variants, "variant")
        raise Wrong(written.mark, f'{program.name} has no variant "{shorten(name)}"{hint}')
    return program.variants[name]


def values_of(value: Node, program: Program, variant: Variant, ignore: tuple[str, ...]) -> dict[str, str]:
    """The values of all parameters: those written with the scheme, those of the variant, the defaults."""
    values = defaults(program, variant)
    if not isinstance(value, Mapping):
        return values
    for name, mark, written in value:
        if name in ignore:
            continue
        if name not in program.parameters:
            known = did_you_mean(name, program.parameters)
            known = known or f"; it has {', '.join(program.parameters) or 'none'}"
            raise Wrong(mark, f"unknown parameter of {program.name}{known}")
        if not isinstance(written, Scalar) or written.is_null:
            raise Wrong(written.mark, "must be a word or a number")
        values[name] = written.text
    return values


def defaults(program: Program, variant: Variant) -> dict[str, str]:
    """The defaults of all parameters of a variant."""
    return {name: parameter.default for name, parameter in program.parameters.items()} | variant.values


def plan(program: Program, variant: Variant, values: dict[str, str]) -> Plan:
    """A program in the form of cells, with the placeholders that only the agent can fill in."""
    here = program.path.resolve().parent
    # The agent fills in the others.
    words = {**values, HERE: str(here)}
    if program.build is not None:
        words[BUILT] = str(folder_of(program.name, program.build))

    def fill(text: str) -> str:
        # A value may itself contain placeholders, such as {log}/trace.
        for _ in range(2):
            for name in placeholders(text):
                if name in words:
                    text = text.replace(f"{{{name}}}", words[name])
        return text

    def file(text: str) -> str:
        text = fill(text)
        if program.root is not None:
            return text
        return text if text.startswith("{") else str(here / text)

    def command(words: tuple[str, ...]) -> list[str]:
        filled = [fill(word) for word in words]
        return [file(words[0]) if "/" in filled[0] else filled[0], *filled[1:]] if filled else []

    def side(side_of: SideOf, more: tuple[str, ...]) -> Side:
        return Side(
            command=command((*side_of.command, *more)),
            env={name: fill(text) for name, text in side_of.env.items()},
            folder=None if side_of.folder is None else file(side_of.folder),
            stdin=side_of.stdin,
            ready=side_of.ready,
        )

    signals = {"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "TERM": 15}
    end, limits = program.end, program.limits
    return Plan(
        name=program.name,
        variant=variant.name,
        unavailable=program.unavailable or None,
        manifest=program.sha256,
        data=program.data,
        shared=program.shared,
        frames=program.frames or None,
        segments=program.segments or None,
        reports={report.name: report.to_json() for report in program.reports},
        version=command(program.version),
        files=[file(item) for item in program.files],
        root=None if program.root is None else prepare(program.root),
        listener=side(program.listener, variant.listener),
        connector=side(program.connector, variant.connector),
        end=End(when=end.when, signal=signals[end.signal], grace_ns=end.grace),
        limits=Limits(
            ready_ns=limits.ready,
            file_bytes=limits.files,
            output_bytes=limits.output,
            memory_bytes=limits.memory,
            cpu_ns=limits.cpu,
            time_ns=limits.time,
        ),
    )


def is_filled(text: str) -> bool:
    """True if a text contains no placeholder that only the agent can fill in."""
    return not any(name in PLACEHOLDERS for name in placeholders(text))
