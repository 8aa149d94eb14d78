"""Manifests of programs (`narrows/program/1`), read as strictly as scenarios."""

from __future__ import annotations

import hashlib
import re
import shlex
from pathlib import Path, PurePath

from msgspec import convert

from narrows.documents.programs import CONNECTOR, LISTENER
from narrows.errors import DataError, Problem, ScenarioError
from narrows.files import read_whole
from narrows.scenario.keys import Key
from narrows.scenario.params import Context, read_value
from narrows.scenario.problems import Problems, Wrong, mapping_of
from narrows.scenario.programs.keys import (
    BUILD,
    BUILT,
    END,
    LIMITS,
    LISTENS,
    MANIFEST,
    PARAMETER,
    PLACEHOLDERS,
    PORT,
    REPORT,
    SCHEMA,
    SIDE,
    VARIANT,
    End,
    Limits,
    ManifestKeys,
    ParameterKeys,
    SideKeys,
    VariantKeys,
    placeholders,
)
from narrows.scenario.programs.program import Parameter, Program, SideOf, Variant
from narrows.scenario.programs.recipe import Recipe, read_recipe
from narrows.scenario.programs.reports import file_in_log, read_reports
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, parse_value
from narrows.text import any_of, did_you_mean, shorten

#: The variant of a manifest without variants.
ONLY_VARIANT = "default"
#: Names of programs, variants and parameters.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}$")
#: A longer file was named by mistake.
MOST_BYTES = 100_000

#: Programs that run the first file in their arguments, and the suffixes of such files.
_INTERPRETER = re.compile(r"(?:python|perl|ruby|lua|node|php)[0-9.]*|(?:ba|da|z|k)?sh|Rscript|java|julia")
_SCRIPTS = (".py", ".sh", ".pl", ".rb", ".js", ".lua", ".jl", ".R", ".php")
_PARAMETER = re.compile(r"[a-z][a-z0-9_]{0,39}$")


def read(path: Path, name: str | None = None) -> Program:
    """The program of a manifest; raises `DataError` with all errors in it."""
    try:
        data = read_whole(path, "manifest", MOST_BYTES)
        text = data.decode("utf-8-sig")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not UTF-8 text; save the file as UTF-8") from None
    return read_text(text, path, name or path.stem)


def read_text(text: str, path: Path, name: str) -> Program:
    """The program of a manifest's text that is, or would be, at `path`."""
    source = str(path)
    tree = parse_value(text, source)
    if not isinstance(tree, Mapping):
        wrong = f"a manifest is keys with values, and starts with schema: {SCHEMA}"
        raise ScenarioError([Problem(f"{source}:1:1", "", wrong)])
    return _Reader(tree, path).program(name, hashlib.sha256(text.encode()).hexdigest())


class _Reader:
    """Reads one manifest and collects its errors."""

    def __init__(self, tree: Mapping, path: Path) -> None:
        self.tree = tree
        self.keys = ManifestKeys.from_mapping(tree)
        self.path = path
        self.problems = Problems()
        #: The placeholders that are allowed.
        self.words: set[str] = set(PLACEHOLDERS)
        if self.keys.build is None:
            self.words.remove(BUILT)

    def program(self, name: str, sha256: str) -> Program:
        tree = self.tree
        self._keys(tree, MANIFEST)
        self._schema()
        if not NAME.match(name):
            text = f'the program would be called "{shorten(name)}"; name the file with lower-case letters,'
            self.problems.add(tree.mark, f'{text} digits, "-", "." and "_"')
        parameters = self._parameters()
        self.words |= parameters.keys()
        data = self._choice("data", (LISTENER, CONNECTOR), CONNECTOR)
        shared = self._choice("listeners", ("each", "one"), "each") == "one"
        sides = {side: self._side(side) for side in (LISTENER, CONNECTOR)}
        result = Program(
            name=name,
            path=self.path,
            sha256=sha256,
            what=self._text(tree, "what"),
            source=self._text(tree, "source"),
            licence=self._text(tree, "licence"),
            version=self._words(tree, "version"),
            data=data,
            listener=sides[LISTENER],
            connector=sides[CONNECTOR],
            variants=(variants := self._variants(parameters)),
            parameters=parameters,
            files=self._files(),
            build=self._build(),
            end=convert(self._values("end", END), End),
            limits=convert(self._values("limits", LIMITS), Limits),
            reports=read_reports(self._section("reports"), REPORT, data, shared, self.problems),
            frames=self._read_report_file("frames", shared),
            # The connector is the player if one listener serves all flows.
            segments=self._read_report_file("segments", shared and data == CONNECTOR),
            shared=shared,
            schemes=tuple(f"{name}:{variant}" for variant in variants),
        )
        self.problems.raise_if_any()
        return result

    def _keys(self, mapping: Mapping, keys: dict[str, Key]) -> None:
        for _ in self.problems.check_keys(mapping, keys):
            pass
        for name, key in keys.items():
            if key.required and name not in mapping.entries:
                text = f"the key {name} is missing; write for example {name}: {key.example}"
                self.problems.add(mapping.mark, text)

    def _schema(self) -> None:
        if (value := self.keys.schema) is not None and (
            not isinstance(value, Scalar) or value.text != SCHEMA
        ):
            self.problems.add(value.mark, f"must be {SCHEMA}")

    def _text(self, mapping: Mapping, key: str) -> str:
        value = mapping.entries.get(key)
        if value is None:
            return ""
        if not isinstance(value, Scalar) or value.is_null or not value.text.strip():
            self.problems.add(value.mark, "must be a text")
            return ""
        return " ".join(value.text.split())

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
                hint = did_you_mean(name, self.words) or f"; there are {', '.join(sorted(self.words))}"
                raise Wrong(value.mark, f"unknown placeholder {{{name}}}{hint}")
        return value.text

    def _words(self, mapping: Mapping, key: str) -> tuple[str, ...]:
        """A command: a list of words, or a line to be split."""
        value = mapping.entries.get(key)
        if value is None:
            return ()
        with self.problems.note():
            if isinstance(value, Sequence):
                words = [self._word(item) for item in value.items]
            else:
                try:
                    words = shlex.split(self._word(value))
                except ValueError as error:
                    raise Wrong(value.mark, f"can't be split into words: {str(error).lower()}") from None
            if not words:
                raise Wrong(value.mark, "needs at least one word")
            return tuple(words)
        return ()

    def _choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        value = self.tree.entries.get(key)
        if value is None:
            return default
        text = value.text if isinstance(value, Scalar) else ""
        if text not in choices:
            hint = did_you_mean(text, choices)
            self.problems.add(value.mark, f'"{shorten(text)}" is not {" or ".join(choices)}{hint}')
            return default
        return text

    def _side(self, name: str) -> SideOf:
        nothing = SideOf((), {}, None, "null", None)
        value = self.tree.entries.get(name)
        if value is None:
            return nothing
        with self.problems.note():
            mapping = mapping_of(value, MANIFEST[name].example)
            self._keys(mapping, SIDE)
            keys = SideKeys.from_mapping(mapping)
            command = self._words(mapping, "command")
            if keys.folder is None and keys.command is not None:
                self._check_here(command, keys.command.mark)
            return SideOf(
                command,
                self._env(keys.env),
                self._folder(keys.folder),
                self._stdin(keys.stdin),
                self._ready(keys, name),
            )
        return nothing

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

    def _env(self, written: Node | None) -> dict[str, str]:
        env = {}
        with self.problems.note():
            if written is not None:
                for name, mark, value in mapping_of(written, SIDE["env"].example):
                    with self.problems.note():
                        if not name or "=" in name:
                            raise Wrong(mark, "is not the name of a variable")
                        env[name] = self._word(value)
        return env

    def _folder(self, written: Node | None) -> str | None:
        with self.problems.note():
            if written is not None:
                return self._word(written)
        return None

    def _stdin(self, value: Node | None) -> str:
        choices = ("null", "open", "endless")
        if value is None or (isinstance(value, Scalar) and value.is_null):
            return "null"
        text = value.text if isinstance(value, Scalar) else ""
        if text not in choices:
            hint = did_you_mean(text, choices)
            self.problems.add(value.mark, f'"{shorten(text)}" is not one of {any_of(choices)}{hint}')
        return text

    def _ready(self, keys: SideKeys, side: str) -> dict[str, int | str | None] | None:
        value = keys.ready
        if side == CONNECTOR and value is None:
            return None
        if (
            value is not None
            and side == CONNECTOR
            and not (isinstance(value, Mapping) and list(value.entries) == ["line"])
        ):
            text = "is {line: TEXT} for a connector that starts ahead; without it, it starts with its flow"
            self.problems.add(keys.key_mark(value), text)
            return None
        if side == CONNECTOR and keys.stdin is not None:
            text = "can't be chosen where the connector has ready: a line on it says when the flow begins"
            self.problems.add(keys.key_mark(keys.stdin), text)
        example = "ready: tcp, ready: {tcp: 5000} or ready: {line: listening}"
        if value is None:
            self.problems.add(keys.mark, f"needs the key ready, such as {example}")
            return None
        with self.problems.note():
            if isinstance(value, Scalar) and value.text in LISTENS:
                return {value.text: None}
            if not isinstance(value, Mapping) or len(value.entries) != 1:
                raise Wrong(value.mark, f"must be one sign that it is ready, such as {example}")
            ((kind, mark, inner),) = value
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
        return None

    def _parameters(self) -> dict[str, Parameter]:
        parameters: dict[str, Parameter] = {}
        for name, mark, value in self._section("parameters"):
            with self.problems.note():
                if not _PARAMETER.match(name) or name in (*PLACEHOLDERS, "program", "scheme", "name"):
                    raise Wrong(mark, "can't be the name of a parameter; use another word of a-z, 0-9 and _")
                mapping = mapping_of(value, "{default: cubic}")
                self._keys(mapping, PARAMETER)
                default = ParameterKeys.from_mapping(mapping).default
                text = self._word(default, known=False) if default is not None else ""
                parameters[name] = Parameter(name, text, self._text(mapping, "what"))
        return parameters

    def _section(self, key: str) -> Mapping:
        value = self.tree.entries.get(key)
        empty = Mapping(self.tree.mark)
        if value is None:
            return empty
        return self.problems.expect_mapping(value, MANIFEST[key].example) or empty

    def _variants(self, parameters: dict[str, Parameter]) -> dict[str, Variant]:
        result: dict[str, Variant] = {}
        written = self._section("variants")
        if self.keys.variants is not None and not written.entries and not self.problems.entries:
            self.problems.add(self.keys.variants.mark, "needs at least one variant")
        for name, mark, value in written:
            with self.problems.note():
                if not NAME.match(name):
                    raise Wrong(mark, 'is not a name; use lower-case letters, digits, "-", "." and "_"')
                plain = isinstance(value, Scalar) and value.is_null
                mapping = Mapping(value.mark) if plain else mapping_of(value, "{set: {cc: cubic}}")
                self._keys(mapping, VARIANT)
                result[name] = Variant(
                    name,
                    self._text(mapping, "what"),
                    self._set(mapping, parameters),
                    self._words(mapping, LISTENER),
                    self._words(mapping, CONNECTOR),
                )
        return result or {ONLY_VARIANT: Variant(ONLY_VARIANT, "", {})}

    def _set(self, mapping: Mapping, parameters: dict[str, Parameter]) -> dict[str, str]:
        result: dict[str, str] = {}
        written = VariantKeys.from_mapping(mapping).values
        if written is None:
            return result
        for name, mark, value in mapping_of(written, VARIANT["set"].example):
            with self.problems.note():
                if name not in parameters:
                    hint = did_you_mean(name, parameters) or "; the key parameters lists those that there are"
                    raise Wrong(mark, f"unknown parameter{hint}")
                result[name] = self._word(value, known=False)
        return result

    def _files(self) -> tuple[str, ...]:
        if (value := self.keys.files) is None:
            return ()
        with self.problems.note():
            if not isinstance(value, Sequence):
                raise Wrong(value.mark, "must be a list of files such as [server.py]")
            return tuple(self._word(item) for item in value.items)
        return ()

    def _read_report_file(self, key: str, shared: bool) -> str | None:
        """The file of `frames` or `segments`."""
        with self.problems.note():
            if key in self.tree.entries:
                if shared:
                    text = f"one listener serves all flows, and its {key} cannot be assigned to a flow"
                    raise Wrong(self.tree.key_marks[key], text)
                return file_in_log(self.tree.entries[key])
        return None

    def _build(self) -> Recipe | None:
        with self.problems.note():
            if self.keys.build is not None:
                written = mapping_of(self.keys.build, MANIFEST["build"].example)
                self._keys(written, BUILD)
                if all(kind in BUILD for kind in written.entries):
                    return read_recipe(written, self.path.parent, self._words(written, "then"))
        return None

    def _values(self, key: str, keys: dict[str, Key]) -> dict[str, object]:
        """Single values, with their defaults."""
        mapping = self._section(key)
        self._keys(mapping, keys)
        context = Context(self.problems)
        values = {}
        for name, item in keys.items():
            assert item.param is not None
            value = mapping.entries.get(name)
            read = None if value is None else read_value(value, item.param, context)
            values[name] = item.param.default if read is None else read
        return values


def _is_file(path: Path) -> bool:
    """True if a path names a file; whole programs as words of a command are longer than any file name."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
