"""The keys of program manifests, from `format.yaml`, and the values of those that are numbers and words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import field as key

from narrows.files import read_packaged
from narrows.scenario.keys import Key, KeyEntry, keys_of
from narrows.scenario.sections import Section
from narrows.scenario.yaml_tree import Node


class _Format(msgspec.Struct, frozen=True):
    manifest: dict[str, KeyEntry]
    side: dict[str, KeyEntry]
    variant: dict[str, KeyEntry]
    parameter: dict[str, KeyEntry]
    build: dict[str, KeyEntry]
    end: dict[str, KeyEntry]
    limits: dict[str, KeyEntry]
    report: dict[str, KeyEntry]
    placeholders: dict[str, str]


FORMAT = msgspec.convert(read_packaged(Path(__file__).with_name("format.yaml")), _Format)
#: Keys of each part of a manifest.
MANIFEST, SIDE, VARIANT, PARAMETER, BUILD, END, LIMITS, REPORT = map(
    keys_of,
    (
        FORMAT.manifest,
        FORMAT.side,
        FORMAT.variant,
        FORMAT.parameter,
        FORMAT.build,
        FORMAT.end,
        FORMAT.limits,
        FORMAT.report,
    ),
)
SCHEMA = MANIFEST["schema"].example
#: Placeholders that need no parameter, with their meanings.
PLACEHOLDERS = FORMAT.placeholders

#: Signs of readiness that are an open port: TCP, UDP, or either.
LISTENS = ("tcp", "udp", "port")
PORT = "{port}"
#: The placeholder for the folder of the build.
BUILT = "built"
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def placeholders(text: str) -> list[str]:
    """The placeholders in a text."""
    return _PLACEHOLDER.findall(text)


class ManifestKeys(Section, frozen=True, kw_only=True):
    """The keys of a manifest that are read one by one."""

    schema: Node | None = None
    variants: Node | None = None
    files: Node | None = None
    build: Node | None = None


class ParameterKeys(Section, frozen=True, kw_only=True):
    """The keys of a parameter that are read one by one."""

    default: Node | None = None


class VariantKeys(Section, frozen=True, kw_only=True):
    """The keys of a variant that are read one by one."""

    values: Node | None = key(name="set", default=None)


class SideKeys(Section, frozen=True, kw_only=True):
    """The keys of a side."""

    command: Node | None = None
    folder: Node | None = None
    stdin: Node | None = None
    ready: Node | None = None
    env: Node | None = None


@dataclass(frozen=True)
class End:
    """How the processes end."""

    when: str
    signal: str
    grace: int

    @classmethod
    def default(cls) -> End:
        """The end of a manifest that says nothing of it."""
        return msgspec.convert(_defaults(END), cls)


@dataclass(frozen=True)
class Limits:
    """The limits of the processes and of their files."""

    ready: int
    memory: int | None
    cpu: int | None
    time: int | None
    files: int
    output: int

    @classmethod
    def default(cls) -> Limits:
        """The limits of a manifest that names none."""
        return msgspec.convert(_defaults(LIMITS), cls)


def _defaults(keys: dict[str, Key]) -> dict[str, object]:
    return {name: key.param.default for name, key in keys.items() if key.param}
