"""Becomes another program, after reporting the shell in which it runs: `python exec_in_shell.py SETTINGS
PROGRAM ARGUMENT...`.

SETTINGS is a JSON object: `settings` of this network namespace (kernel settings by full name), and `cpus`,
the processors to use (empty: all).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

#: Set by the agent in the shells that it starts.
SHELL_VARIABLE = "NARROWS_SHELL"


def apply_sysctls(settings: dict[str, str]) -> None:
    """Sets kernel settings in the current network namespace. Some kernels do not allow a namespace to set
    some of them; the caller can compare the values that were read back."""
    for name, value in settings.items():
        with contextlib.suppress(OSError):
            Path("/proc/sys", *name.split(".")).write_text(value)


def main() -> None:
    """See the head of this file."""
    environment = json.loads(sys.argv[1])
    apply_sysctls(environment["settings"])
    if environment["cpus"]:
        os.sched_setaffinity(0, environment["cpus"])
    print(json.dumps({"event": "exec_in_shell", "shell": os.environ.get(SHELL_VARIABLE, "")}), flush=True)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
