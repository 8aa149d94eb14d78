"""Reads and checks a user's crate."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from narrows import __version__, scratch
from narrows.documents.extensions import ExtensionCrate
from narrows.errors import DataError, reason
from narrows.extend.kinds import KINDS
from narrows.files import read_bytes
from narrows.text import any_of, did_you_mean, printable, shorten

MANIFEST = "Cargo.toml"
#: Names of entries, which are also names of files, modules and words in scenarios.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CRATE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
#: Words that can't name a module or a crate.
_RESERVED = frozenset({
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue", "core",
    "crate", "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "proc_macro", "pub",
    "ref", "return", "self", "static", "std", "struct", "super", "test", "trait", "true", "try", "type",
    "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
})  # fmt: skip
#: A crate is source text; a folder with more was named by mistake.
_MOST_FILES, _MOST_BYTES = 500, 20_000_000
_ENDING = ".crate"
#: The section of `package.metadata`.
_SECTION = "narrows"

Table = Mapping[str, object]


class _Requirement(msgspec.Struct, frozen=True):
    version: str | None = None


class _Package(msgspec.Struct, frozen=True):
    name: str
    version: str = "0.0.0"
    edition: str = "2021"
    metadata: dict[str, dict[str, list[str]]] = {}
    build: str | bool = False


class _Manifest(msgspec.Struct, frozen=True):
    package: _Package
    dependencies: dict[str, str | dict[str, object]] = {}
    dev: Annotated[dict[str, str | dict[str, object]], msgspec.Meta()] = msgspec.field(
        name="dev-dependencies", default_factory=dict
    )
    features: dict[str, list[str]] = {}


@dataclass(frozen=True)
class Crate:
    """A user's crate that may be added: its files by their paths, with the manifest of the workspace."""

    described: ExtensionCrate
    files: dict[str, bytes]
    #: Its dependencies besides Narrows, in TOML.
    dependencies: dict[str, str]

    @property
    def name(self) -> str:
        """The name in its manifest."""
        return self.described.name

    def entries(self) -> Iterator[tuple[str, str]]:
        """The kind and the name of each entry."""
        return ((kind, name) for kind, names in self.described.adds.items() for name in names)

    def files_of(self, entry: str) -> dict[str, bytes]:
        """The files of an entry by their paths in the folder of the registry's entries: `NAME.rs`, and those
        of its folder.
        """
        inside = (path.removeprefix("src/") for path in self.files if path.startswith("src/"))
        return {
            path: self.files[f"src/{path}"]
            for path in inside
            if path == f"{entry}.rs" or path.startswith(f"{entry}/")
        }


def check_name(name: str, place: str = "") -> str:
    """The name of an entry. Raises `DataError`, which begins with `place`, if nothing can have it."""
    if not _NAME.fullmatch(name):
        raise DataError(
            f'{place}"{printable(shorten(name))}" can\'t name an entry: use small letters, digits and _, at'
            " most 40, and a letter first"
        )
    if name in _RESERVED:
        raise DataError(f'{place}"{name}" is a word of Rust and can\'t name an entry; choose another name')
    return name


@contextmanager
def open_folder(place: Path) -> Iterator[Path]:
    """The folder of a crate, given as a folder or as an archive that `cargo package` made."""
    if place.is_dir():
        yield place
        return
    if place.suffix != _ENDING:
        what = "is not a folder" if place.exists() else "does not exist"
        raise DataError(f"{place}: {what}; name the folder of a crate, or a {_ENDING} file of cargo package")
    with scratch.working_folder("narrows-crate") as folder:
        try:
            with tarfile.open(place, "r:gz") as archive:
                archive.extractall(folder, filter="data")
        except (tarfile.TarError, OSError, EOFError) as error:
            raise DataError(f"{place}: can't be unpacked: {shorten(str(error))}") from None
        manifests = sorted(folder.glob(f"*/{MANIFEST}"))
        if not manifests:
            raise DataError(f"{place}: has no {MANIFEST}; cargo package makes such archives")
        yield manifests[0].parent


def read(folder: Path, origin: str) -> Crate:
    """Reads a crate. Raises `DataError` if it can't be added."""
    file = folder / MANIFEST
    text = _read_manifest(file)
    try:
        manifest = msgspec.convert(tomllib.loads(text), _Manifest)
        _check_versions(file, {**manifest.dependencies, **manifest.dev})
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{file}: {shorten(str(error), 200)}") from None
    package = manifest.package
    if not _CRATE_NAME.fullmatch(package.name) or package.name.startswith("narrows"):
        raise DataError(
            f"{file}: package.name: {printable(package.name)!r} can't be the name of an extension"
        )
    if package.build or (folder / "build.rs").exists():
        raise DataError(f"{file}: the crate has a build script; extensions are built without")
    adds = _read_entries(file, folder, package.metadata)
    files = _gather(folder)
    for kind, names in adds.items():
        for name in names:
            _check_self_contained(folder, kind, name, files)
    plain = {name: _dependency(file, name, value) for name, value in manifest.dependencies.items()}
    dev = {name: _dependency(file, name, value) for name, value in manifest.dev.items()}
    files[MANIFEST] = _write_manifest(package, plain, dev, manifest.features).encode()
    described = ExtensionCrate(
        name=package.name,
        version=package.version,
        sha256=digest(files),
        adds=adds,
        origin=origin,
    )
    others = {name: value for name, value in plain.items() if not name.startswith("narrows-")}
    return Crate(described, files, others)


def digest(files: Mapping[str, bytes]) -> str:
    """The SHA-256 of what `sha256sum` prints for the files in the order of their names."""
    lines = (f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n" for path in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _read_manifest(file: Path) -> str:
    try:
        return read_bytes(file, _MOST_BYTES).decode()
    except FileNotFoundError:
        raise DataError(f"{file}: does not exist; name the folder of a crate") from None
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else "is not UTF-8"
        raise DataError(f"{file}: can't be read: {why}") from None


def _read_entries(
    file: Path, folder: Path, metadata: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, list[str]]:
    listed = metadata.get(_SECTION, {})
    if not any(listed.values()):
        kinds = any_of(KINDS)
        raise DataError(
            f"{file}: lists no entries; write a section [package.metadata.narrows] with, for example,"
            f' queue = ["mine"], where src/mine.rs defines it (kinds: {kinds})'
        )
    adds: dict[str, list[str]] = {}
    for kind, names in listed.items():
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS)
            raise DataError(
                f"{file}: package.metadata.narrows.{printable(kind)}: this kind of entry does not exist"
                f"{hint}; kinds: {any_of(KINDS)}"
            )
        for name in names:
            check_name(name, f"{file}: package.metadata.narrows.{kind}: ")
            if not (folder / "src" / f"{name}.rs").is_file():
                raise DataError(f"{file}: package.metadata.narrows.{kind}: src/{name}.rs does not exist")
        adds[kind] = list(dict.fromkeys(names))
    return adds


def _check_versions(file: Path, dependencies: Mapping[str, object]) -> None:
    for name, value in dependencies.items():
        if not name.startswith("narrows-"):
            continue
        wanted = value if isinstance(value, str) else msgspec.convert(value, _Requirement).version
        if wanted is not None and not admits(wanted, __version__):
            raise DataError(
                f"{file}: requires {name} {printable(wanted)}, and this is Narrows {__version__}; adapt the"
                " crate, then its requirement"
            )


def admits(wanted: str, version: str) -> bool:
    """True if a requirement of Cargo (`0.1`, `^0.1.2`, `~0.1.2`, `=0.1.0`, `>=0.1, <0.3`, `*`) admits a
    version.
    """
    return all(_admits_part(part.strip(), version) for part in wanted.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split("-", maxsplit=1)[0].split("+", maxsplit=1)[0].split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def _admits_part(part: str, version: str) -> bool:
    match = re.fullmatch(r"(\^|~|=|>=|<=|>|<)?\s*([0-9][0-9A-Za-z.*+-]*|\*)", part)
    if match is None:
        return False
    sign, text = match[1] or "^", match[2]
    given, here = _numbers(text), _numbers(version)
    if not given:
        return True
    whole = (*given, 0, 0)[:3]
    match sign:
        case ">=":
            return here >= whole
        case ">":
            return here > whole
        case "<=":
            return here <= whole
        case "<":
            return here < whole
        case "=":
            return here[: len(given)] == given
        case "~":
            return here >= whole and here[: min(2, len(given))] == given[:2]
    # The first number that is not zero may not change.
    fixed = next((at for at, number in enumerate(given) if number), len(given) - 1) + 1
    return here >= whole and here[:fixed] == given[:fixed]


def _gather(folder: Path) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    size = 0
    for part in ("src", "tests"):
        for base, folders, names in os.walk(folder / part):
            folders.sort()
            for name in sorted(names):
                path = Path(base) / name
                if name.startswith("."):
                    continue
                try:
                    content = read_bytes(path, _MOST_BYTES)
                except OSError as error:
                    raise DataError(f"{path}: can't be read: {reason(error)}") from None
                files[path.relative_to(folder).as_posix()] = content
                size += len(content)
                if len(files) > _MOST_FILES or size > _MOST_BYTES:
                    raise DataError(
                        f"{folder}: src and tests have more than {_MOST_FILES} files or"
                        f" {_MOST_BYTES // 1_000_000} MB, so this is not the folder of an extension"
                    )
    return files


#: A path to the root of the crate, which is another crate once the file is in Narrows.
_ROOT_PATH = re.compile(r"^[^/\n]*?\$?\bcrate\s*::", re.MULTILINE)


def _check_self_contained(folder: Path, kind: str, name: str, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        if path != f"src/{name}.rs" and not path.startswith(f"src/{name}/"):
            continue
        match = _ROOT_PATH.search(content.decode(errors="replace"))
        if match:
            line = content[: match.start()].count(b"\n") + 1
            raise DataError(
                f"{folder / path}:{line}: uses crate::, which leads elsewhere once the"
                f" {KINDS[kind].what} is built"
                f" into Narrows; put shared code into src/{name}/ and use self:: and super::"
            )


def _dependency(file: Path, name: str, value: str | dict[str, object]) -> str:
    """A dependency in TOML, for the workspace."""
    table = {"version": value} if isinstance(value, str) else dict(value)
    if name.startswith("narrows-"):
        kept = {key: item for key, item in table.items() if key in ("features", "optional")}
        return _toml({"workspace": True, **kept})
    if "path" in table:
        raise DataError(
            f"{file}: dependencies.{name}: is a folder, which the crate's hash would not cover;"
            f" name a version or"
            " put its code into the crate"
        )
    return _toml(table)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{json.dumps(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _write_manifest(
    package: _Package, plain: Mapping[str, str], dev: Mapping[str, str], features: Mapping[str, list[str]]
) -> str:
    """The manifest inside the workspace: without paths and profiles, so that it is the same on all
    machines.
    """
    lines = ["[package]", f"name = {_toml(package.name)}", f"version = {_toml(package.version)}"]
    lines += [f"edition = {_toml(package.edition)}", "publish = false"]
    for title, table in (("dependencies", plain), ("dev-dependencies", dev)):
        lines += ["", f"[{title}]", *(f"{_toml(name)} = {value}" for name, value in sorted(table.items()))]
    if features:
        lines += ["", "[features]", *(f"{_toml(name)} = {_toml(on)}" for name, on in features.items())]
    return "\n".join(lines) + "\n"


def restore(described: ExtensionCrate, folder: Path) -> Crate:
    """A crate of a set, from its files there. Raises `DataError` if they are not those that were added."""
    files = _gather(folder)
    files[MANIFEST] = _read_manifest(folder / MANIFEST).encode()
    if digest(files) != described.sha256:
        raise DataError(f"{folder}: has changed since it was added; add {described.name} again")
    listed = msgspec.convert(tomllib.loads(files[MANIFEST].decode()), _Manifest).dependencies
    others = {name: _toml(value) for name, value in listed.items() if not name.startswith("narrows-")}
    return Crate(described, files, others)
