"""Manifests of programs (`narrows/program/1`), read as strictly as scenarios."""

from __future__ import annotations

import hashlib
import re
import shlex
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from msgspec import convert, field

from narrows.documents import programs as document
from narrows.documents.data import Part
from narrows.documents.programs import CONNECTOR, LISTENER
from narrows.scenario.declarations import reader
from narrows.scenario.declarations.declaration import Key
from narrows.scenario.declarations.value import Value
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.programs.keys import (
    BUILT,
    FORMAT,
    HERE,
    LISTENS,
    PLACEHOLDERS,
    PORT,
    SCHEMA,
    End,
    Limits,
    placeholders,
)
from narrows.scenario.programs.program import Parameter, Program, SideOf, Variant
from narrows.scenario.programs.recipe import Recipe, read_packages, read_recipe, read_sources
from narrows.scenario.programs.reports import (
    ERRORS,
    FINDERS,
    MOST,
    OUTPUT,
    Report,
    file_in_log,
    read_pattern,
    read_unit,
)
from narrows.scenario.programs.root import PATH, Root, check_words, read_root
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence
from narrows.text import any_of, did_you_mean, shorten, suggest

#: The variant of a manifest without variants.
ONLY_VARIANT = "default"
#: Names of programs, variants and parameters.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}$")
#: A longer file was named by mistake.
MOST_BYTES = 100_000

#: Programs that run the first file in their arguments, and the suffixes of such files.
_INTERPRETER = re.compile(r"(?:python|perl|ruby|lua|node|php)[0-9.]*|(?:ba|da|z|k)?sh|Rscript|java|julia")
_SCRIPTS = (".py", ".sh", ".pl", ".rb", ".js", ".lua", ".jl", ".R", ".php")


def read(path: Path, name: str | None = None) -> Program:
    """The program of a manifest; raises `DataError` with all errors in it."""
    return read_text(reader.read_text(path, "manifest", MOST_BYTES), path, name or path.stem)


def read_text(text: str, path: Path, name: str) -> Program:
    """The program of a manifest's text that is, or would be, at `path`."""
    tree = reader.parse_file(text, str(path), "manifest", SCHEMA)
    return _Reader(tree, path).program(name, hashlib.sha256(text.encode()).hexdigest())


class _Written(Part, frozen=True, kw_only=True):
    """The content of a manifest."""

    what: str
    source: str
    licence: str
    version: tuple[str, ...]
    data: str
    listener: SideOf
    connector: SideOf
    variants: dict[str, Variant]
    parameters: dict[str, Parameter]
    files: tuple[str, ...]
    build: Recipe | None
    root: Root | None
    end: End
    limits: Limits
    reports: dict[str, Report]
    frames: str | None
    segments: str | None


class _Keys(Section, frozen=True, kw_only=True):
    """The keys on which others depend."""

    data: Node | None = None
    listeners: Node | None = None
    parameters: Node | None = None
    build: Node | None = None
    root: Node | None = None


class _SideKeys(Section, frozen=True, kw_only=True):
    """The keys of a side that fit each other or do not."""

    command: Node | None = None
    ready: Node | None = None
    stdin: Node | None = None
    folder: Node | None = None
    env: Node | None = None


class _Report(Part, frozen=True, kw_only=True):
    """A metric as written."""

    json: str | None
    ndjson: str | None
    regex: str | None
    side: str | None
    where: str = field(name="in")
    unit: str
    better: str | None
    combine: str
    flows: str | None
    what: str


def _is(node: Node | None, word: str) -> bool:
    return isinstance(node, Scalar) and node.text == word


class _Reader(reader.Reader):
    """Reads one manifest and collects its errors."""

    def __init__(self, tree: Mapping, path: Path) -> None:
        super().__init__(FORMAT, Problems(is_scenario=False))
        self.tree = tree
        self.path = path
        # Other keys depend on these, whose errors are noted with those of all.
        keys = _Keys.from_mapping(tree)
        self.data = LISTENER if _is(keys.data, LISTENER) else CONNECTOR
        self.shared = _is(keys.listeners, "one")
        self.parameters = list(keys.parameters.entries) if isinstance(keys.parameters, Mapping) else []
        #: The placeholders that are allowed.
        self.words = {*PLACEHOLDERS, *self.parameters}
        if keys.build is None:
            self.words.remove(BUILT)
        self.builds = keys.build is not None
        self.root_node = keys.root
        if self.root_node is not None:
            self.words.discard(HERE)

    def program(self, name: str, sha256: str) -> Program:
        """The program of that name."""
        if not NAME.match(name):
            text = f'the program would be called "{shorten(name)}"; name the file with lower-case letters,'
            self.problems.add(self.tree.mark, f'{text} digits, "-", "." and "_"')
        written = self.section(self.tree, "manifest")
        self.problems.raise_if_any()
        content = convert(written, _Written)
        variants = content.variants or {ONLY_VARIANT: Variant(ONLY_VARIANT, "", {})}
        return Program(
            **{
                **{key: getattr(content, key) for key in _Written.__struct_fields__},
                "variants": variants,
                "reports": tuple(content.reports.values()),
            },
            name=name,
            path=self.path,
            sha256=sha256,
            shared=self.shared,
            schemes=tuple(f"{name}:{variant}" for variant in variants),
        )

    # -- sections --------------------------------------------------------------------------------

    def read_of(self, node: Node, key: Key) -> Any:
        """A section, with the checks that several of its keys need."""
        mapping = mapping_of(node, key.example)
        content = self.section(mapping, key.section)
        if key.section == "build":
            known = all(name in FORMAT.keys(key.section) for name in mapping.entries)
            return read_recipe(mapping, content, self.path.parent) if known else None
        if key.section in (LISTENER, CONNECTOR):
            self._check_side(key.section, _SideKeys.from_mapping(mapping))
        return content

    def _check_side(self, side: str, keys: _SideKeys) -> None:
        if side == CONNECTOR and keys.ready is not None and keys.stdin is not None:
            text = "can't be chosen where the connector has ready: a line on it says when the flow begins"
            self.problems.add(keys.key_mark(keys.stdin), text)
        if keys.command is None:
            return
        # Errors in a root, a command or a variable alone are noted where it is read.
        if self.root_node is not None:
            with Problems().note():
                root, words = self._root[1], self._words(keys.command)
                with self.problems.note():
                    check_words(words, root, _search_path(keys.env), keys.command.mark)
        elif keys.folder is None:
            with Problems().note():
                self._check_here(self._words(keys.command), keys.command.mark)

    @cached_property
    def _root(self) -> tuple[Root, document.Root]:
        """The root, and its form in cells. Raises `Wrong`."""
        assert self.root_node is not None
        if self.builds:
            text = "can't be beside build, whose folder does not exist in a root; build it into the root"
            raise Wrong(self.tree.key_marks["root"], text)
        return read_root(self.root_node, self.path.parent)

    def read_root(self, _node: Node, _key: Key) -> Root:
        return self._root[0]

    def check_name(self, name: str, mark: Mark, key: Key) -> None:
        """Raises `Wrong` for the name of a variant, a parameter or a metric that can't be one."""
        if key.section == "parameter" and name in (*PLACEHOLDERS, "program", "scheme", "name"):
            raise Wrong(mark, "can't be the name of a parameter; use another word of a-z, 0-9 and _")
        if not re.match(key.names, name):
            what = "metric" if key.section == "report" else key.section
            letters = 'digits, "-", "." and "_"' if key.section == "variant" else "digits and _"
            raise Wrong(mark, f"can't be the name of a {what}; use lower-case letters, {letters}")

    def read_named(self, node: Node, key: Key) -> Any:
        """Sections by names; there is a largest number of metrics."""
        if key.section == "report" and isinstance(node, Mapping) and len(node.entries) > MOST:
            raise Wrong(node.mark, f"has {len(node.entries)} metrics; {MOST} are the most")
        return super().read_named(node, key)

    def read_entry(self, name: str, node: Node, key: Key) -> Any:
        """A variant, a parameter, or a metric that the program reports."""
        mapping = self.mapping_of_entry(node, key)
        content = self.section(mapping, key.section)
        if key.section == "variant":
            return convert({**content, "name": name}, Variant)
        if key.section == "parameter":
            return Parameter(name, **content)
        return self._report(name, mapping, convert(content, _Report))

    def _report(self, name: str, mapping: Mapping, content: _Report) -> Report:
        finders = [finder for finder in FINDERS if finder in mapping.entries]
        if len(finders) != 1:
            raise Wrong(mapping.mark, f"needs one of {any_of(FINDERS)}, and only one")
        side = content.side or self.data
        if self.shared and side == LISTENER:
            text = "one listener serves all flows, so only what the connector reports is of a flow"
            raise Wrong(mapping.mark, text)
        return Report(
            name=name,
            side=side,
            where=content.where,
            finder=finders[0],
            pattern=content.json or content.ndjson or content.regex or "",
            unit=content.unit,
            better=content.better,
            combine=content.combine,
            flows=content.flows,
            what=content.what,
        )

    # -- values ----------------------------------------------------------------------------------

    def read_words(self, node: Node, _key: Key) -> tuple[str, ...]:
        return self._words(node)

    def _words(self, node: Node) -> tuple[str, ...]:
        """A command: a list of words, or a line to be split."""
        if isinstance(node, Sequence):
            words = [self._word(item) for item in node.items]
        else:
            try:
                words = shlex.split(self._word(node))
            except ValueError as error:
                raise Wrong(node.mark, f"can't be split into words: {str(error).lower()}") from None
        if not words:
            raise Wrong(node.mark, "needs at least one word")
        return tuple(words)

    def read_word(self, node: Node, _key: Key) -> str:
        return self._word(node)

    def read_literal(self, node: Node, _key: Key) -> str:
        return self._word(node, known=False)

    def read_files(self, node: Node, _key: Key) -> list[str]:
        if not isinstance(node, Sequence):
            raise Wrong(node.mark, "must be a list of files such as [server.py]")
        return [self._place(item) for item in node.items]

    def read_place(self, node: Node, _key: Key) -> str:
        return self._place(node)

    def _place(self, node: Node) -> str:
        """A path of the machine, or of the root."""
        text = self._word(node)
        if self.root_node is not None and not text.startswith(("/", "{")):
            raise Wrong(
                node.mark, f'"{shorten(text)}" is not a path in the root, where all paths start with /'
            )
        return text

    def read_environment(self, node: Node, key: Key) -> dict[str, str]:
        env = {}
        for name, mark, value in mapping_of(node, key.example):
            with self.problems.note():
                if not name or "=" in name:
                    raise Wrong(mark, "is not the name of a variable")
                env[name] = self._word(value)
        return env

    def read_settings(self, node: Node, key: Key) -> dict[str, str]:
        """Values of parameters."""
        settings = {}
        for name, mark, value in mapping_of(node, key.example):
            with self.problems.note():
                if name not in self.parameters:
                    known = "; the key parameters lists those that there are"
                    raise Wrong(mark, f"unknown parameter{did_you_mean(name, self.parameters) or known}")
                settings[name] = self._word(value, known=False)
        return settings

    def read_sources(self, node: Node, _key: Key) -> str:
        return read_sources(node)

    def read_packages(self, node: Node, _key: Key) -> list[str]:
        return read_packages(node)

    def read_log(self, node: Node, key: Key) -> str:
        """The file of `frames` or `segments`; the connector is the player if one listener serves all."""
        if self.shared and (key.name == "frames" or self.data == CONNECTOR):
            text = f"one listener serves all flows, and its {key.name} cannot be assigned to a flow"
            raise Wrong(self.tree.key_marks[key.name], text)
        return file_in_log(node)

    def read_output(self, node: Node, _key: Key) -> str:
        if isinstance(node, Scalar) and node.text in (OUTPUT, ERRORS):
            return node.text
        return file_in_log(node, "output, errors, or a file")

    def read_unit(self, node: Node, key: Key) -> str:
        return read_unit(node, Value(node, key, self.context).text())

    def read_json(self, node: Node, key: Key) -> str:
        return read_pattern(key.name, node)

    read_ndjson = read_regex = read_json

    def read_sign(self, node: Node, key: Key) -> dict[str, int | str | None]:
        """The sign that a process is ready."""
        if not key.required and not (isinstance(node, Mapping) and list(node.entries) == ["line"]):
            text = "is {line: TEXT} for a connector that starts ahead; without it, it starts with its flow"
            raise Wrong(node.mark, text)
        example = "ready: tcp, ready: {tcp: 5000} or ready: {line: listening}"
        if isinstance(node, Scalar) and node.text in LISTENS:
            return {node.text: None}
        if not isinstance(node, Mapping) or len(node.entries) != 1:
            raise Wrong(node.mark, f"must be one sign that it is ready, such as {example}")
        ((kind, mark, inner),) = node
        if kind == "line":
            text = self._word(inner, known=False)
            if not text.strip() or "\n" in text:
                raise Wrong(inner.mark, "must be a part of one line")
            return {kind: text}
        if kind not in LISTENS:
            raise Wrong(mark, f"unknown sign{did_you_mean(kind, (*LISTENS, 'line'))}; write {example}")
        if self._word(inner, known=False) == PORT:
            return {kind: None}
        port = inner.integer if isinstance(inner, Scalar) else None
        if port is None or not 1 <= port <= 65535:
            raise Wrong(inner.mark, f'must be a port from 1 to 65535, or "{PORT}"')
        return {kind: port}

    def _word(self, value: Node, known: bool = True) -> str:
        """One word of a command or a variable, with its placeholders checked."""
        if isinstance(value, Mapping) and len(value.entries) == 1:
            # An unquoted placeholder is a mapping in YAML.
            name = next(iter(value.entries))
            raise Wrong(value.mark, f'must be a word; write "{{{name}}}" in quotes')
        if not isinstance(value, Scalar) or value.is_null:
            raise Wrong(value.mark, "must be a word")
        if "\0" in value.text:
            raise Wrong(value.mark, "has the character NUL in it")
        for name in placeholders(value.text) if known else ():
            if name not in self.words:
                if name == HERE and self.root_node is not None:
                    raise Wrong(
                        value.mark, "{here} is a folder of the machine, which does not exist in a root"
                    )
                hint = suggest(name, sorted(self.words), "placeholder")
                raise Wrong(value.mark, f"unknown placeholder {{{name}}}{hint}")
        return value.text

    def _check_here(self, command: tuple[str, ...], mark: Mark) -> None:
        """Notes words of a command that refer to files beside the manifest: processes run elsewhere."""
        runs_script = bool(command) and _INTERPRETER.fullmatch(PurePath(command[0]).name) is not None
        script = next((word for word in command[1:] if not word.startswith("-")), "") if runs_script else ""
        # The first word may be a path relative to the manifest.
        for word in dict.fromkeys(command[1:]):
            if word.startswith(("-", "/")) or placeholders(word):
                continue
            beside = bool(PurePath(word).suffix or "/" in word) and _is_file(self.path.parent / word)
            if beside or (word == script and word.endswith(_SCRIPTS)):
                name = word.removeprefix("./")
                text = f'"{shorten(word)}" is looked for where the process runs, in a folder of the record'
                text = f'{text}; write "{{here}}/{name}" for the file beside the manifest'
                self.problems.add(mark, text)


def _search_path(env: Node | None) -> dict[str, str]:
    """The variable that decides where a side's program is searched, if it is set."""
    path = env.entries.get(PATH) if isinstance(env, Mapping) else None
    return {PATH: path.text} if isinstance(path, Scalar) else {}


def _is_file(path: Path) -> bool:
    """True if a path names a file; whole programs as words of a command are longer than any file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
