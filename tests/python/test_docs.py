"""The documents stay true: links resolve, commands parse, examples load, nothing private is mentioned."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from narrows.cli import quick
from narrows.cli.all_commands import app
from narrows.cli.run import _real_path
from narrows.lab.store import list_families
from narrows.report.plotting import kind_of
from narrows.scenario import load, shipped
from narrows.scenario.quick import QuickPath
from narrows.schemes.listing import list_schemes
from narrows.sweep.loading import load_sweep
from validation.program import program as validation

ROOT = Path(__file__).resolve().parents[2]
#: Generated or measured, not written by hand.
SKIPPED = {"target", "build", "results", "demo-results"}


def _documents() -> Iterator[Path]:
    for folder, names, files in os.walk(ROOT):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in SKIPPED)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".md"))


DOCUMENTS = list(_documents())
#: Documents with commands that a reader will type.
GUIDES = [
    path
    for path in DOCUMENTS
    if path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md")
    or path.parent.name in ("docs", "guide")
    or path.is_relative_to(ROOT / "labs")
]
#: In pieces, so that this file does not contain the words themselves.
FORBIDDEN = ["../" + "shared", "." + "library", "/work" + "/", "/tmp" + "/", "sub" + "agent"]

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Programs whose command lines documents show.
PROGRAMS = {"narrows ": app, "python -m validation ": validation}
INLINE = re.compile(rf"`((?:{'|'.join(PROGRAMS)})[^`]+)`")
#: As in `narrows report DIR`.
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b|\|")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _without_fences(text: str) -> str:
    return FENCE.sub("", text)


def _anchor(heading: str) -> str:
    """The anchor that common renderers give a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


def _anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _without_fences(path.read_text(encoding="utf-8")), re.MULTILINE)
    return {_anchor(heading) for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_every_link_inside_the_tree_resolves(path: Path) -> None:
    for target in LINK.findall(_without_fences(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{_name(path)} links to {target}, which does not exist"
        assert ROOT in found.parents, f"{_name(path)} links to {target}, outside the tree"
        if anchor and found.suffix == ".md":
            assert anchor in _anchors(found), f"{_name(path)} links to {target}, which is not a heading there"


@pytest.mark.parametrize("path", DOCUMENTS, ids=_name)
def test_nothing_private_is_mentioned(path: Path) -> None:
    text = path.read_text(encoding="utf-8").lower()
    for word in FORBIDDEN:
        assert word not in text, f"{_name(path)} mentions {word}"


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        assert name == "README.md" or f"({name})" in index, f"docs/README.md does not list {name}"


@dataclass(frozen=True)
class Shown:
    """A command line that a document shows."""

    path: Path
    line: str

    def __str__(self) -> str:
        return f"{_name(self.path)}: {self.line}"


def _shown() -> Iterator[Shown]:
    for path in GUIDES:
        text = path.read_text(encoding="utf-8")
        for language, block in FENCE.findall(text):
            if language == "sh":
                for line in block.splitlines():
                    if line.startswith(tuple(PROGRAMS)):
                        yield Shown(path, line)
        for line in (" ".join(found.split()) for found in INLINE.findall(_without_fences(text))):
            if not PLACEHOLDER.search(line):
                yield Shown(path, line)


SHOWN = sorted(set(_shown()), key=str)


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    ends = [words.index(mark) for mark in (">", "|") if mark in words]
    first = words.index("validation") if words[0] == "python" else 0
    return words[first + 1 : min(ends, default=len(words))]


def test_documents_show_commands() -> None:
    assert len(SHOWN) > 20


@pytest.mark.parametrize("shown", SHOWN, ids=str)
def test_every_command_shown_parses(shown: Shown) -> None:
    """The command and its options exist, and a shipped scenario takes the changes that are shown."""
    words = _words(shown.line)
    program: Any = next(PROGRAMS[start] for start in PROGRAMS if shown.line.startswith(start))
    root = program.make_context("narrows", [], resilient_parsing=True)
    if words[0].startswith("-"):
        known = {name for parameter in program.get_params(root) for name in parameter.opts}
        assert set(words) <= known, shown.line
        return
    command = program.get_command(root, words[0])
    assert command is not None, f"there is no command {words[0]!r}"
    while hasattr(command, "commands") and len(words) > 1:
        words = words[1:]
        command = command.commands.get(words[0])
        assert command is not None, f"there is no command {words[0]!r} in {shown.line!r}"
    if len(words) == 1 or "--help" in words:
        return  # the name of a command, or its help
    context = command.make_context(words[0], words[1:])
    given = context.params
    if words[0] == "scenarios" and given["name"] is not None:
        assert given["name"] in {one.name for one in shipped.list_scenarios()}
    if words[0] == "plot":
        kind_of(given["figure"])
    is_lab = shown.line.startswith("narrows lab ") and "name" in given
    if is_lab and "/" not in given["name"]:
        # A laboratory by its name; folders are shown as paths.
        assert given["name"] in {family.name for family in list_families()}, shown.line
    takes_scenario = words[0] in ("run", "init") and "changes" in given  # not narrows lab run
    if takes_scenario and (given.get("scenario") or "").rpartition(".")[2] not in ("yaml", "-"):
        options = ("where", "schemes", "flows", "runs", "seed", "time")
        values = {key: given[key] for key in options}
        changed = quick.Changed(**values, changes=given["changes"] or [])
        more = _real_path(given["host"], given["prepare"]) if words[0] == "run" else []
        path = QuickPath(**{field.name: given[field.name] for field in fields(QuickPath)})
        quick.load_scenario(given.get("scenario"), path, changed, more)


def test_the_readme_shows_the_first_scenario_unchanged() -> None:
    """Its lines are those of the file, except for comments and the space before them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(block for language, block in FENCE.findall(text) if language == "yaml")
    file = (ROOT / "scenarios" / "basic" / "first-look.yaml").read_text(encoding="utf-8")

    def lines(source: str) -> list[str]:
        bare = (re.sub(r"\s+#.*$|^#.*$", "", line).rstrip() for line in source.splitlines())
        return [line for line in bare if line]

    assert lines(block) == lines(file)


@pytest.mark.parametrize("path", GUIDES, ids=_name)
def test_every_whole_scenario_shown_loads(path: Path, tmp_path: Path) -> None:
    for number, (language, block) in enumerate(FENCE.findall(path.read_text(encoding="utf-8"))):
        if language == "yaml" and "schema: narrows/scenario/1" in block:
            file = tmp_path / f"shown-{number}.yaml"
            file.write_text(block, encoding="utf-8")
            if "\nsweep:" in block:
                assert list(load_sweep(str(file), []).sweep.points())
            else:
                load(str(file), [])


def test_transport_parameters_are_documented_with_their_defaults() -> None:
    """The table of the guide names every parameter; its defaults are those of the generated reference."""
    row = re.compile(r"^\| `(\w+)` \| (.*?) \|", re.MULTILINE)
    guide = (ROOT / "docs" / "guide" / "transport.md").read_text(encoding="utf-8")
    reference = (ROOT / "docs" / "guide" / "scenario-reference.md").read_text(encoding="utf-8")
    section = reference[reference.index("## Parameters of our transport") :]
    generated = {name: default.strip("`") for name, default in row.findall(section)}
    written = {name: default.strip("`").replace("1500 B", "1.5 kB") for name, default in row.findall(guide)}
    assert written == generated


def test_schemes_named_in_the_readme_exist() -> None:
    names = {one.name for one in list_schemes()}
    assert {"reno", "cubic"} <= names


def test_the_package_claims_no_system_that_it_does_not_run_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    systems = [one for one in project["classifiers"] if one.startswith("Operating System ::")]
    assert systems == ["Operating System :: POSIX :: Linux"]
