"""`narrows shell`, before the agent takes over: the path in base units, and the program.

The elements are those of scenarios, read by the same code, so that the same paths can be described.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NoReturn

from msgspec import structs

from narrows.documents.data import Part, to_data
from narrows.documents.resolved import BACKWARD, DUMBBELL, FORWARD, Change, Network, lay_over
from narrows.errors import DataError, ProgramError, UnavailableError, UsageError, reason
from narrows.scenario import load
from narrows.scenario import registry as registries
from narrows.scenario.declarations.value import Context
from narrows.scenario.elements import Item, Link, list_items, same_names
from narrows.scenario.files import Files, name_in_store
from narrows.scenario.problems import Problems
from narrows.scenario.quick import in_order, option_value, read_queue
from narrows.scenario.registry import Registry
from narrows.scenario.yaml_tree import Mapping, Mark, Node, Scalar, Sequence, parse_value

FORMAT = "narrows/shell/1"
#: Up is from inside to outside.
UP, DOWN = FORWARD, BACKWARD
_EXAMPLE = 'narrows shell --rate "12 Mbit/s" --delay "20 ms" --queue "droptail 60 kB"'


@dataclass(frozen=True)
class ShellOptions:
    """The options of the command."""

    rate: str | None = None
    delay: str | None = None
    queue: str | None = None
    loss: str | None = None
    up: str | None = None
    down: str | None = None
    trace_up: str | None = None
    trace_down: str | None = None
    scenario: str | None = None
    congestion: str | None = None
    seed: int = 1
    log: Path | None = None
    summary: Path | None = None
    live: bool = False
    live_lines: bool = False
    quiet: bool = False

    @property
    def describes_path(self) -> bool:
        """True if any option describes the path itself."""
        options = (self.rate, self.delay, self.queue, self.loss, self.up, self.down)
        return any(option is not None for option in (*options, self.trace_up, self.trace_down))


class Plan(Part, frozen=True, kw_only=True, omit_defaults=False):
    """The plan of a shell for the agent."""

    format: str
    network: Network
    timeline: list[Change]
    seed: int
    congestion: str | None
    live: bool
    live_anywhere: bool
    quiet: bool
    log: str | None
    summary: str | None


def plan(options: ShellOptions) -> tuple[Plan, Files]:
    """The plan for the agent, and the files that it names."""
    if options.scenario is not None:
        if options.describes_path:
            raise UsageError(
                "--scenario brings the whole path; leave out either it or the other options that describe one"
            )
        network, timeline, seed, files = _from_scenario(options.scenario)
    elif options.describes_path:
        files = Files()
        network = _from_options(options, registries.load(), files)
        timeline, seed = [], options.seed
    else:
        raise UsageError(f"the path is not described; write for example {_EXAMPLE}")
    congestion = options.congestion and options.congestion.removeprefix("linux:")
    made = Plan(
        format=FORMAT,
        network=network,
        timeline=timeline,
        seed=seed,
        congestion=congestion,
        live=options.live,
        live_anywhere=options.live_lines,
        quiet=options.quiet,
        log=_absolute(options.log),
        summary="-" if str(options.summary) == "-" else _absolute(options.summary),
    )
    return made, files


def _absolute(path: Path | None) -> str | None:
    return str(path.absolute()) if path else None


def _from_scenario(name: str) -> tuple[Network, list[Change], int, Files]:
    loaded = load(name)
    scenario = loaded.scenario
    if scenario.drawn:
        # A shell is run number 1.
        scenario = lay_over(scenario, scenario.drawn[0].overlay)
    network = structs.replace(scenario.network, hosts=[])
    if not network.is_dumbbell:
        raise DataError(
            f"{loaded.path}: a shell takes scenarios with a single path; this one has several links"
        )
    # The program generates the traffic.
    known = {element.name for element in network.elements}
    timeline = [change for change in scenario.timeline if change.element in known]
    return network, timeline, scenario.seed, scenario.files


def _check_queue(entries: dict[str, Node], option: str | None) -> None:
    if option and "rate" not in entries:
        raise UsageError(f"{option}: a queue stands before a rate; write its rate as well")


def _from_options(options: ShellOptions, registry: Registry, files: Files) -> Network:
    problems = Problems()
    links = [
        _link(UP, "up", options.up, options.trace_up, options, problems),
        _link(DOWN, "down", options.down, options.trace_down, options, problems),
    ]
    context = Context(problems, files=files)
    for link in links:
        link.probe(registry, context)
    rtt = sum(link.delay_ns for link in links)
    for link in links:
        bdp = Fraction(min(link.rates) * rtt, 8 * 10**9) if link.rates and rtt else None
        link.resolve(registry, Context(problems, bdp, files=files))
    same_names(links, problems)
    problems.raise_if_any()
    up, down = (link.elements for link in links)
    if options.queue and not any(element.is_bottleneck for element in (*up, *down)):
        raise UsageError("--queue: a queue stands before a rate; write --rate as well")
    return Network(kind=DUMBBELL, forward=up, backward=down)


def _link(
    name: str, side: str, own: str | None, trace: str | None, options: ShellOptions, problems: Problems
) -> Link:
    """One direction: its own options, else those for both directions."""
    link = Link(name, side, side)
    entries: dict[str, Node] = {}
    for key in ("rate", "queue", "delay", "loss"):
        text = getattr(options, key)
        if text is not None:
            entries[key] = option_value(text, f"--{key}")
    if trace is not None:
        option = Mark(f"--trace-{side}")
        file = Scalar(option, trace)
        entries["rate"] = Mapping(option, {"trace": file}, {"trace": option})
    if own is not None:
        result = _own(own, f"--{side}", problems)
        if isinstance(result, Sequence):
            if trace is not None:
                raise UsageError(
                    f"--{side} lists all elements; put the trace of --trace-{side} into the list"
                )
            link.items = list_items(result.copy(side), name, problems)
            return link
        entries |= result.entries if result else {}
        _check_queue(entries, f"--{side}" if result and "queue" in result.entries else None)
    link.items = [Item(written, f"{name}.{index}") for index, written in enumerate(in_order(entries))]
    return link


def _own(text: str, option: str, problems: Problems) -> Mapping | Sequence | None:
    """A list of elements, or keys with values without braces around them."""
    stripped = text.strip()
    whole = stripped if stripped[:1] in ("[", "{") else f"{{{stripped}}}"
    result = parse_value(whole, option, is_option=True)
    if isinstance(result, Sequence):
        return result
    if not isinstance(result, Mapping) or any(
        isinstance(value, Scalar) and value.is_null for value in result.entries.values()
    ):
        problems.add(Mark(option), 'must be elements such as "rate: 1 Mbit/s, loss: 2 %"')
        return None
    entries = {
        key: read_queue(value.text, value.mark) if key == "queue" and isinstance(value, Scalar) else value
        for key, value in result.entries.items()
    }
    return Mapping(result.mark, entries, result.key_marks)


def run(agent: Path, options: ShellOptions, program: list[str]) -> NoReturn:
    """Becomes the agent, which runs the program; its exit code is the program's."""
    document, files = plan(options)
    environment = dict(os.environ)
    if not program:
        program = [os.environ.get("SHELL") or "/bin/sh"]
        environment |= _prompt(options, program[0])
    elif shutil.which(program[0]) is None:
        raise _unusable(program[0])
    folder = Path(tempfile.mkdtemp(prefix="narrows-shell-"))
    try:
        (folder / "files").mkdir()
        for sha256, content in files.contents.items():
            (folder / "files" / name_in_store(files.names[sha256], sha256)).write_bytes(content)
        (folder / "plan.json").write_text(json.dumps(to_data(document)))
        # Python ignores these signals; the program must not inherit that.
        for name in ("SIGPIPE", "SIGXFSZ"):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        arguments = ["shell", "--plan", str(folder / "plan.json"), "--consume", "--", *program]
        os.execve(agent, [str(agent), *arguments], environment)
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise UnavailableError(f"{agent} can't be started: {reason(error)}") from None


def _unusable(program: str) -> ProgramError:
    """Why a program can't be started, with the exit code that shells use for it."""
    if Path(program).exists() and "/" in program:
        what = "a folder" if Path(program).is_dir() else "a file that may not be executed"
        return ProgramError(f"{shlex.quote(program)} is {what}; chmod +x makes a file a program", 126)
    return ProgramError(f"there is no program {shlex.quote(program)}; check its name, or install it", 127)


def _prompt(options: ShellOptions, shell: str) -> dict[str, str]:
    """A reminder in the prompt, if the shell's prompt can be changed from outside."""
    if options.scenario is not None:
        words = [Path(options.scenario).stem]
    else:
        words = [word for word in (options.rate, options.delay, options.loss) if word]
    outer = os.environ.get("NARROWS_PROMPT", "")
    hint = f"{outer}[{' '.join(['narrows', *words])}] "
    prompt = {"NARROWS_PROMPT": hint}
    if Path(shell).name == "bash":
        # Runs before the first prompt, after the start files that set the prompt.
        prompt["PROMPT_COMMAND"] = 'PS1="$NARROWS_PROMPT$PS1"; unset PROMPT_COMMAND'
    else:
        prompt["PS1"] = f"{hint}$ "
    return prompt
