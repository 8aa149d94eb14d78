"""Programs that tests build themselves, once for all tests."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from narrows.errors import NarrowsError, UnavailableError
from narrows.programs.build import build
from narrows.scenario.programs import store
from narrows.scenario.programs.recipe import FOLDER_VARIABLE

ROOT = Path(__file__).resolve().parent.parent.parent
#: `.ci/programs` builds them here, too.
FOLDER = Path(os.environ.get(FOLDER_VARIABLE, ROOT / "build" / "programs"))


def need(*names: str) -> dict[str, str]:
    """The environment in which shipped programs are built; skips the test if one can't be built."""
    for name in names:
        program = store.load(ROOT / "programs" / f"{name}.yaml")
        patch = pytest.MonkeyPatch()
        patch.setenv(FOLDER_VARIABLE, str(FOLDER))
        try:
            build(program, lambda line: None)
        except UnavailableError as error:
            pytest.skip(str(error))
        except NarrowsError as error:
            # Debian's compilers may be older than the libraries require.
            if "requires" not in str(error) and "newer" not in str(error):
                raise
            pytest.skip(str(error))
        finally:
            patch.undo()
    return {FOLDER_VARIABLE: str(FOLDER)}


def fake_tool(folder: Path, name: str, script: str) -> Path:
    """A folder for PATH in which a tool is a shell script, beside the programs that such scripts need."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    for tool in ("sh", "mkdir", "cat", "chmod"):
        if not (folder / tool).exists():
            place = shutil.which(tool)
            assert place is not None, f"{tool} is not on PATH"
            (folder / tool).symlink_to(place)
    return folder
