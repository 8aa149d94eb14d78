"""Becomes another program, after saying in which shell it runs: `python exec_in_shell.py SETTINGS PROGRAM
ARGUMENT...`.

SETTINGS is a JSON object: `settings` of this network namespace (kernel settings by full name), and `cpus`,
the processors to keep to (none: all).
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
    """Makes settings of the kernel in the network namespace that we are in. Some kernels do not let a
    namespace have some of them; whoever cares compares what was read back."""
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
