"""Shipped scenarios with typical human and tool errors, given to the program in processes limited to 20 s of
processor time and 1 GB each.

`python mutated_kit.py plan|run SEED COUNT` prints a line of JSON for each unacceptable end, and finally the
number of ends of each kind.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from forked_commands import import_packages

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = sorted(path for path in ROOT.glob("scenarios/*/*.yaml"))


def _words(text: str) -> list[str]:
    return text.split()


#: Scenarios for which two seconds are a whole run.
SHORT = [
    path
    for path in SCENARIOS
    if path.parent.name in ("aqm", "bbr", "cellular", "geni", "pantheon", "parking-lot")
]
#: Acceptable ends: success, or one sentence about the scenario, the machine, an expectation or a cell.
GOOD = {0, 3, 4, 5, 6}
MOST_BYTES = 1 << 30
MOST_CPU_S = 20
#: Only a process that hangs without using a processor reaches this limit, however busy the machine is.
MOST_S = 300
LOOK_S = 0.005

NUMBERS = [
    *_words(
        """0 -1 1e400 -1e400 .nan .inf -.inf 1e99 1e-99 18446744073709551616 9223372036854775807 0x7fffffff
        1_000 0.1 1e18 4294967296 65536 007 1:30 +5 ١٢ 1e5 3 2 7.5 100"""
    ),
    "9" * 500,
]
UNITS = _words("s ms us ns kbit/s Mbit/s Gbit/s Tbit/s MB/s B kB MB TB packets bdp % h min Hz furlongs")
WORDS = _words(
    """~ null true no reno cubic bbr1 vegas udp linux:cubic bpf:reno nobody droptail codel fq_codel red
    unlimited onepacket bulk web cbr transfer requests arrivals forward backward simulate emulate hosts all
    access trace poisson constant loss delay jitter duplicate 2026-11-23 !!binary !!python/object:os.system
    ../../etc/passwd /dev/zero /proc/self/mem ~nouser/x"""
)
SHAPES = [
    "[]",
    "{}",
    "[[]]",
    "{a: {b: c}}",
    "[1, 2, 3]",
    "[reno, reno]",
    "''",
    '"\\u0000"',
    "|",
    "&x [*x]",
    "*nobody",
    "<<",
]

Change = Callable[[list[str], random.Random], None]


def _delete(lines: list[str], dice: random.Random) -> None:
    del lines[dice.randrange(len(lines))]


def _double(lines: list[str], dice: random.Random) -> None:
    at = dice.randrange(len(lines))
    lines.insert(dice.choice([at, dice.randrange(len(lines) + 1)]), lines[at])


def _indent(lines: list[str], dice: random.Random) -> None:
    at = dice.randrange(len(lines))
    lines[at] = (
        dice.choice(["  ", " ", "\t", "- "]) + lines[at] if dice.random() < 0.6 else lines[at].lstrip()
    )


def _swap(lines: list[str], dice: random.Random) -> None:
    """Exchanges the values of two keys."""
    keyed = [index for index, line in enumerate(lines) if ": " in line]
    if len(keyed) >= 2:
        one, two = dice.sample(keyed, 2)
        (key1, value1), (key2, value2) = lines[one].split(": ", 1), lines[two].split(": ", 1)
        lines[one], lines[two] = f"{key1}: {value2}", f"{key2}: {value1}"


def _within(pattern: str, new: Callable[[random.Random], str]) -> Change:
    """Replaces one match, except in comments and the title."""

    def change(lines: list[str], dice: random.Random) -> None:
        found = [
            (index, match)
            for index, line in enumerate(lines)
            if not line.lstrip().startswith(("#", "title", "question", "schema"))
            for match in re.finditer(pattern, line.split(" #")[0])
        ]
        if found:
            index, match = dice.choice(found)
            line = lines[index]
            lines[index] = line[: match.start()] + new(dice) + line[match.end() :]

    return change


def _value(dice: random.Random) -> str:
    return (
        dice.choice([NUMBERS, WORDS, SHAPES])[0]
        if dice.random() < 0.1
        else dice.choice(NUMBERS + WORDS + SHAPES)
    )


def _other(lines: list[str], dice: random.Random) -> None:
    """Inserts a section of another scenario."""
    blocks = re.split(r"(?m)^(?=\w)", dice.choice(SCENARIOS).read_text())
    lines.extend(dice.choice(blocks).splitlines())


def _deep(lines: list[str], dice: random.Random) -> None:
    depth = dice.choice([5, 50, 1000, 20_000])
    opening, closing = dice.choice([("[", "]"), ("{a: ", "}")])
    lines.append(f"{dice.choice(['path', 'flows', 'x', 'expect'])}: {opening * depth}{closing * depth}")


def _laughs(lines: list[str], dice: random.Random) -> None:
    """Adds aliases of aliases: a short text with endless content."""
    lines.append("a0: &a0 [x, x, x, x, x, x, x, x, x]")
    for level in range(1, dice.choice([2, 9, 30])):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")


def _long(lines: list[str], dice: random.Random) -> None:
    at, size = dice.randrange(len(lines)), dice.choice([300, 5_000, 1_000_000])
    lines[at] += dice.choice(["x", " ", "[", "- ", "9", "\u00e9"]) * size


def _many(lines: list[str], dice: random.Random) -> None:
    """Repeats one line of a list very often."""
    listed = [index for index, line in enumerate(lines) if line.lstrip().startswith("- ")]
    if listed:
        at = dice.choice(listed)
        lines[at:at] = [lines[at]] * dice.choice([3, 100, 20_000])


def _bytes(lines: list[str], dice: random.Random) -> None:
    at = dice.randrange(len(lines))
    cut = dice.randrange(len(lines[at]) + 1)
    odd = ["\0", "\x1b[2J", "\ufeff", "\u2028", "\ud800", "%", "@", "`", '"', "'", "{"]
    lines[at] = lines[at][:cut] + dice.choice(odd) + lines[at][cut:]


def _cut(lines: list[str], dice: random.Random) -> None:
    del lines[dice.randrange(len(lines)) :]


_NUMBER = _within(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])", lambda dice: dice.choice(NUMBERS))
_UNIT = _within(r"(?<=\d )[A-Za-z%][\w/%]*", lambda dice: dice.choice(UNITS))
_WORD = _within(r"(?<=[:\[,] )[a-z][\w-]*", lambda dice: dice.choice(WORDS))
_KEY = _within(
    r"[a-z_]+(?=:)",
    lambda dice: dice.choice(["rate", "queue", "delay", "start", "count", "x", "1", "?", "seed"]),
)
_VALUE = _within(r"(?<=: )\S.*$", _value)
_SCALED = _within(r"(?<![\w.])\d+(\.\d+)?(?= )", lambda dice: str(round(10 ** dice.uniform(0, 5))))
#: Mutations that leave most scenarios valid are more frequent: the others end in the parser.
MILD: list[Change] = [_NUMBER, _UNIT, _WORD, *[_SCALED] * 9]
WILD: list[Change] = [
    *MILD, _swap, _delete, _double, _indent, _KEY, _VALUE, _other, _deep, _laughs, _long, _many, _bytes, _cut,
]  # fmt: skip


def mutated(text: str, dice: random.Random, changes: list[Change]) -> str:
    """The text with one to three changes."""
    lines = text.splitlines()
    for _ in range(dice.choice([1, 1, 2, 3])):
        if lines:
            dice.choice(changes)(lines, dice)
    return "\n".join(lines) + "\n"


def arguments(task: str, file: Path, out: Path) -> list[str]:
    """The command line for one scenario."""
    if task == "plan":
        return ["narrows", "run", str(file), "--dry-run"]
    limits = ["--where", "simulate", "--time", "2 s", "--runs", "1", "--memory", "900 MB"]
    return ["narrows", "run", str(file), *limits, "--no-report", "--output", str(out)]


def ended(task: str, text: str, folder: Path) -> tuple[int, int, str]:
    """The end of the program: its exit code, the peak memory of one of its processes, and its message."""
    file, said = folder / "scenario.yaml", folder / "said"
    # Half of a surrogate pair is not text.
    file.write_bytes(text.encode("utf-8", "replace"))
    child = os.fork()
    if child == 0:
        _be(arguments(task, file, folder / "out"), said)
    looks = 0
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            break
        # The number of checks, not time: a pause of the machine does not count as a hang of the program.
        looks += 1
        if looks > MOST_S / LOOK_S:
            os.killpg(child, signal.SIGKILL)
        time.sleep(LOOK_S)
    code = os.waitstatus_to_exitcode(status)
    return code, usage.ru_maxrss * 1024, said.read_text(errors="replace")


def _be(argv: list[str], said: Path) -> None:
    """The child: the program, with standard error in a file, under limits."""
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 5))
        # Far beyond the allowed memory: address space is not memory, and the machine must survive.
        resource.setrlimit(resource.RLIMIT_AS, (8 * MOST_BYTES, 8 * MOST_BYTES))
        with said.open("wb") as errors, Path(os.devnull).open("r+b") as null:
            os.dup2(null.fileno(), 0)
            os.dup2(null.fileno(), 1)
            os.dup2(errors.fileno(), 2)
        sys.argv = argv
        from narrows.cli import main

        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def fault(code: int, most: int, said: str) -> str | None:
    """The fault of an end; empty if it is acceptable."""
    if code not in GOOD:
        return f"exit code {code}"
    if most > MOST_BYTES:
        return f"{most >> 20} MiB"
    if any(word in said for word in ("Traceback", "internal error", "panicked", "RUST_BACKTRACE")):
        return "no sentence"
    lines = [line for line in said.splitlines() if line.strip()]
    if code and not lines:
        return "silence"
    if max(map(len, lines), default=0) > 2000 or re.search(r"[\0-\x08\x0b-\x1f\x7f]", said):
        return "unreadable"
    return None


def main() -> None:
    """Tries scenarios; the last line counts the exit codes."""
    task, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    # Imported once, so that each child has it; no more than a run needs, since its memory is limited.
    import_packages("agent", "analysis", "campaign", "cli", "documents", "scenario")

    codes: Counter[int] = Counter()
    for number in range(seed, seed + count):
        dice = random.Random(number)
        origin = dice.choice(SCENARIOS if task == "plan" else SHORT)
        text = mutated(origin.read_text(), dice, WILD if task == "plan" or dice.random() < 0.2 else MILD)
        with tempfile.TemporaryDirectory(prefix="mutated-") as folder:
            code, most, said = ended(task, text, Path(folder))
        codes[code] += 1
        if why := fault(code, most, said):
            found = {
                "seed": number,
                "origin": str(origin.relative_to(ROOT)),
                "why": why,
                "said": said[-1500:],
            }
            print(json.dumps(found), flush=True)
    print(json.dumps({"ended": {str(code): many for code, many in sorted(codes.items())}}), flush=True)


if __name__ == "__main__":
    main()
