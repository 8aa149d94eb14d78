"""The submissions of a contest: files and folders in one folder, each a scheme named after its file.

mine.yaml       a scheme as scenarios write it: {scheme: exp, beta: 0.8}
mine.bpf.o      a congestion control for the kernel, a BPF object file
mine/           a crate with a scheme, such as examples/own-scheme
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from narrows.agent.location import USER, Location
from narrows.cargo import find_cargo, first_error
from narrows.errors import DataError
from narrows.files import read_whole
from narrows.scenario.overrides import Override
from narrows.text import shorten

#: The native scheme whose flows a crate's program simulates; its scenarios name it.
PLACEHOLDER = "exp"
_OBJECT, _ENTRY, _CRATE = ".bpf.o", ".yaml", "Cargo.toml"
#: Time limit for building a crate.
_BUILD_S = 1800.0
_LARGEST = 100_000


@dataclass(frozen=True)
class Submission:
    """A participant's submission."""

    name: str
    path: Path

    @property
    def is_crate(self) -> bool:
        """True if it contains its own simulator."""
        return self.path.is_dir()

    def change(self) -> Override:
        """The change of a scenario that inserts it. Raises `DataError` if its file names no scheme."""
        return Override(self.path.name, "schemes", f"[{self._entry()}]")

    def _entry(self) -> str:
        if self.is_crate:
            return f"{{scheme: {PLACEHOLDER}, name: {json.dumps(self.name)}}}"
        if self.path.name.endswith(_OBJECT):
            return json.dumps({"bpf": str(self.path.absolute())})
        try:
            result = yaml.safe_load(read_whole(self.path, "scheme", _LARGEST).decode("utf-8"))
        except DataError as error:
            raise DataError(f"{self.path.name}: {error}") from None
        except (UnicodeDecodeError, yaml.YAMLError):
            raise DataError(f"{self.path.name}: is not YAML; write a scheme as scenarios do") from None
        if not isinstance(result, str | dict):
            raise DataError(
                f"{self.path.name}: is not a scheme; write one as scenarios do: {{scheme: exp, beta: 0.8}}"
            )
        return yaml.safe_dump(
            result, default_flow_style=True, width=_LARGEST, allow_unicode=True
        ).removesuffix("...\n")

    def runner(self, target: Path) -> Location | None:
        """The program that simulates it in place of the agent, if it has one: built in the folder `target`.
        Raises `UnavailableError` or `DataError` if it can't be built.
        """
        if not self.is_crate:
            return None
        program = _build(self.path, target)
        return Location(self.name, [str(program), "in-place-of", PLACEHOLDER], USER)


def submissions_in(folder: Path) -> list[Submission]:
    """All submissions in a folder by name; raises `DataError` if there are none, or two with one name."""
    if not folder.is_dir():
        raise DataError(f"{folder}: does not exist")
    result: dict[str, Submission] = {}
    for path in sorted(folder.iterdir()):
        ending = next((text for text in (_OBJECT, _ENTRY) if path.name.endswith(text)), None)
        if path.name.startswith(".") or not (ending or (path / _CRATE).is_file()):
            continue
        name = path.name.removesuffix(ending or "")
        if name in result:
            raise DataError(f'{folder}: two submissions are called "{shorten(name)}"; rename one')
        result[name] = Submission(name, path)
    if not result:
        raise DataError(
            f"{folder}: no submission exists; a submission is NAME{_ENTRY} with a scheme, NAME{_OBJECT}, or a"
            " crate in the folder NAME"
        )
    return list(result.values())


def _build(crate: Path, target: Path) -> Path:
    """Builds the program of a crate."""
    words = [find_cargo("it"), "build", "--release", "--message-format=json-render-diagnostics"]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target.absolute())}
    try:
        done = subprocess.run(
            words, cwd=crate, env=environment, capture_output=True, text=True, timeout=_BUILD_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"it was not built after {_BUILD_S / 60:g} minutes") from None
    if done.returncode != 0:
        raise DataError(f"it can't be built: {first_error(done.stderr) or 'cargo failed'}")
    programs = [
        str(message["executable"])
        for message in map(_message, done.stdout.splitlines())
        if message.get("reason") == "compiler-artifact" and message.get("executable")
    ]
    if len(programs) != 1:
        raise DataError(
            f"it has {len(programs)} programs, and should have one, whose main calls narrows_sim::submission"
        )
    return Path(programs[0])


def _message(line: str) -> dict[str, object]:
    try:
        result = json.loads(line)
    except ValueError:
        return {}
    return result if isinstance(result, dict) else {}
