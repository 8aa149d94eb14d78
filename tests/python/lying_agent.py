#!/usr/bin/env python3
"""Sits between us and an agent, and replaces one line of its answers.

lying_agent.py NUMBER WORDS AGENT ARGUMENTS...
"""

import subprocess
import sys


def main() -> int:
    number, words, *command = sys.argv[1:]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
        assert agent.stdout
        for index, line in enumerate(agent.stdout):
            said = words.encode() + b"\n" if index == int(number) else line
            sys.stdout.buffer.write(said)
            sys.stdout.buffer.flush()
    return agent.returncode


if __name__ == "__main__":
    sys.exit(main())
