"""The result at the top of the README equals the output of its commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_of_the_readme_equals_the_output_of_its_commands(tmp_path: Path) -> None:
    block = re.search(r"^```text\n(\$ narrows run .*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    assert block is not None
    run, compare, *expected = block.group(1).splitlines()
    for line in (run, compare):
        assert line.startswith("$ narrows ")
    narrows = str(Path(sys.executable).with_name("narrows"))
    environment = {**os.environ, "COLUMNS": "90", "NO_COLOR": "1"}

    def printed(line: str, *more: str) -> list[str]:
        done = subprocess.run(
            [narrows, *shlex.split(line)[2:], *more],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return [text.rstrip() for text in done.stdout.splitlines()]

    printed(run, "--no-report")
    output = printed(compare)
    start = output.index(expected[0])
    assert output[start : start + len(expected)] == expected
