"""Episodes of one or many environments: their courses, seeds, rewards and what they report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from narrows._native import Worlds, gym_counters, gym_rewards
from narrows.errors import DataError, UsageError
from narrows.gym.courses import DEFAULT_COURSES, DEFAULT_PATH, Course, load_courses
from narrows.sweep.engines import usable_processors

#: Infos and options of Gymnasium.
Info = dict[str, object]
#: Counters of a step, each an array with a value for each agent; `COUNTERS` gives their meanings.
Counters = Mapping[str, NDArray[np.float64]]
#: A reward of one's own: from the counters of the last steps and the facts of the courses to one reward for
#: each agent.
RewardFunction = Callable[[Counters, Counters], NDArray[np.floating[Any]]]

#: Names of the counters of a step, with their meanings.
COUNTERS: dict[str, str] = dict(gym_counters())
#: Names of the built-in rewards, with their meanings.
REWARDS: dict[str, str] = dict(gym_rewards())
#: Properties of a course, in the order of the extension module.
FACTS = ("capacity_bps", "base_rtt_ns", "buffer_bytes", "best_window", "flows")
#: Values of the array of endings.
RUNNING, AFTER_STEPS, AFTER_RUN, FAULT = range(4)
#: Words for endings in `info`.
ENDINGS = {AFTER_STEPS: "steps", AFTER_RUN: "duration"}
FAULT_TEXT = "the action is not a number"
#: Seeds are numbers of JSON.
_MAX_SEED = 1 << 53


@dataclass(frozen=True)
class Settings:
    """Settings that environments of all kinds share."""

    #: The scenario of the paths: a file, a shipped name, or its content.
    path: str | Path | Mapping[str, Any] = DEFAULT_PATH
    #: The scheme that acts, as scenarios write it; by default the scenario's.
    scheme: str | Mapping[str, Any] | None = None
    reward: str | RewardFunction = "power"
    #: Decisions of an episode.
    steps: int = 1000
    #: Most paths that are drawn from the scenario.
    paths: int = DEFAULT_COURSES
    #: Keys of the scenario to change, as `--set` does.
    changes: Mapping[str, Any] | None = None
    #: Whether to search the best window of each path, for `info` and the reward `imitation`.
    oracle: bool = False
    #: Threads for many episodes; by default one for each processor.
    threads: int | None = None

    def list_courses(self) -> list[Course]:
        """The courses of the episodes."""
        changes = dict(self.changes or {})
        if self.scheme is not None:
            changes |= {"schemes": [self.scheme]}
        return load_courses(self.path, self.paths, changes)


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Options of `reset`."""

    #: The course of the episodes.
    course: int | None = None
    #: Courses to draw from, for curricula.
    courses: list[int] | None = None
    #: The seed of the run.
    seed: Annotated[int, msgspec.Meta(ge=0, lt=_MAX_SEED)] | None = None
    #: Of many environments, those in which an episode begins.
    reset_mask: list[bool] | None = None

    @classmethod
    def read(cls, options: Info | None) -> Options:
        """Checks the options of a caller; raises `UsageError`."""
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in (options or {}).items()
        }
        try:
            return msgspec.convert({name: _as_list(value) for name, value in plain.items()}, cls)
        except msgspec.ValidationError as error:
            raise UsageError(f"options of reset: {error}") from None

    def choices(self, known: int) -> NDArray[np.int64]:
        """The courses to draw from, of `known` ones."""
        chosen = self.courses if self.course is None else [self.course]
        choices = np.arange(known) if chosen is None else np.asarray(chosen, dtype=np.int64)
        if len(choices) == 0 or choices.min() < 0 or choices.max() >= known:
            raise UsageError(f"options of reset: courses are numbered from 0 to {known - 1}")
        return choices


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, range | tuple) else value


class _Params(msgspec.Struct, frozen=True):
    step: str | None = None


class _Flow(msgspec.Struct, frozen=True):
    params: _Params = _Params()
    background: bool = False


class _HostSettings(msgspec.Struct, frozen=True):
    noise: str | None = None


class _Host(msgspec.Struct, frozen=True):
    settings: _HostSettings = _HostSettings()


class _Network(msgspec.Struct, frozen=True):
    hosts: list[_Host] = []


class _Cell(msgspec.Struct, frozen=True):
    """The members of a cell by which several agents can act together."""

    flows: list[_Flow]
    network: _Network


class Episodes:
    """`count` episodes with the agents `agents` (indices of flows), which advance together."""

    def __init__(self, settings: Settings, count: int, agents: Sequence[int] = (0,)) -> None:
        self.settings = settings
        self.count = count
        if settings.steps < 1:
            raise UsageError(f"steps is {settings.steps}; an episode has at least one")
        named = settings.reward if isinstance(settings.reward, str) else "power"
        if named not in REWARDS:
            raise UsageError(f"unknown reward '{named}'; use {', '.join(REWARDS)} or a function")
        self.function = None if isinstance(settings.reward, str) else settings.reward
        self.courses = settings.list_courses()
        threads = settings.threads or (1 if count == 1 else usable_processors())
        self.worlds = self._make(list(agents), named, threads)
        capacities = np.array([facts[0] for facts in self.worlds.facts()])
        self.facts = _columns(FACTS, np.array(self.worlds.facts(), dtype=np.float64))
        if named in ("power", "orca", "remy") and not np.isfinite(capacities).all():
            raise UsageError(
                f"the reward {named} needs the capacity of each path, and some have none before they run;"
                " use aurora or a function"
            )
        self.rows = count * len(agents)
        self.observations = self.worlds.observations.reshape(self.rows, self.worlds.inputs)
        self.counters = _columns(tuple(COUNTERS), self.worlds.counters.reshape(self.rows, len(COUNTERS)))
        self.rewards, self.clipped = self.worlds.rewards, self.worlds.clipped
        self.endings = self.worlds.endings
        #: Course and seed of each episode.
        self.course = np.zeros(count, dtype=np.int64)
        self.seed = np.zeros(count, dtype=np.int64)
        self._no_skip = np.zeros(count, dtype=np.bool_)

    def _make(self, agents: list[int], reward: str, threads: int) -> Worlds:
        with tempfile.TemporaryDirectory(prefix="narrows-") as folder:
            for course in self.courses:
                for name, content in course.files.items():
                    (Path(folder) / name).write_bytes(content)
            try:
                return Worlds(
                    [course.text for course in self.courses],
                    agents,
                    self.count,
                    reward=reward,
                    steps=self.settings.steps,
                    threads=threads,
                    oracle=self.settings.oracle or reward == "imitation",
                    files_dir=folder,
                )
            except ValueError as error:
                raise DataError(str(error)) from None

    def require_common_instants(self) -> None:
        """Raises `UsageError` unless the decisions of several agents are due at common instants."""
        for course in self.courses:
            cell = msgspec.json.decode(course.text, type=_Cell)
            if any(flow.params.step != "time" for flow in cell.flows if not flow.background):
                raise UsageError(
                    "several agents need the scheme policy with step: time, whose decisions are due together"
                )
            if any(host.settings.noise not in (None, "none") for host in cell.network.hosts):
                raise UsageError("several agents need hosts without noise, which react at once")

    # -- spaces ----------------------------------------------------------------------------------

    @property
    def observation_space(self) -> spaces.Box:
        """Observations of one agent."""
        return spaces.Box(-np.inf, np.inf, (self.worlds.inputs,), np.float32)

    @property
    def action_space(self) -> spaces.Discrete | spaces.Box:
        """Actions of one agent."""
        if self.worlds.choices is not None:
            return spaces.Discrete(self.worlds.choices)
        low, high = np.array(self.worlds.bounds, dtype=np.float32).T
        return spaces.Box(low, high, dtype=np.float32)

    # -- episodes --------------------------------------------------------------------------------

    def begin(
        self,
        which: NDArray[np.bool_],
        generators: Sequence[np.random.Generator],
        options: Options,
    ) -> None:
        """Begins new episodes where `which` is true, each with a course and a seed of its generator.

        Raises `UsageError` for courses that do not exist.
        """
        choices = options.choices(len(self.courses))
        starts: list[tuple[int, int] | None] = [None] * self.count
        for index in np.flatnonzero(which):
            generator = generators[int(index)]
            course = int(choices[generator.integers(len(choices))])
            seed = int(generator.integers(_MAX_SEED))
            seed = seed if options.seed is None else options.seed
            starts[index] = (course, seed)
            self.course[index], self.seed[index] = course, seed
        try:
            self.worlds.reset(starts)
        except ValueError as error:
            raise DataError(str(error)) from None

    def act(self, actions: NDArray[np.float32], skip: NDArray[np.bool_] | None = None) -> None:
        """Lets all agents act, except in episodes where `skip` is true."""
        self.worlds.step(actions, self._no_skip if skip is None else skip)
        if self.function is not None:
            agents = self.rows // self.count
            courses = np.repeat(self.course, agents)
            facts = {name: values[courses] for name, values in self.facts.items()}
            self.rewards[:] = self.function(self.counters, facts)

    # -- information -----------------------------------------------------------------------------

    def start_info(self, index: int) -> Info:
        """The info of `reset`: the path, and the cell, with which `narrows run` repeats the episode."""
        course = int(self.course[index])
        facts = {name: float(values[course]) for name, values in self.facts.items()}
        return {**facts, "course": course, "seed": int(self.seed[index]), "cell": self.cell(index)}

    def end_info(self, index: int) -> Info:
        """The info of the last step."""
        ending = int(self.endings[index])
        said = {"fault": FAULT_TEXT} if ending == FAULT else {"ending": ENDINGS[ending]}
        return {**said, "cell": self.cell(index)}

    def cell(self, index: int) -> str:
        """The cell of an episode in JSON."""
        cell = json.loads(self.courses[int(self.course[index])].text)
        return json.dumps(cell | {"seed": int(self.seed[index])})


def _columns(names: Sequence[str], values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {name: values[:, position] for position, name in enumerate(names)}
