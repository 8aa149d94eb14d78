"""The tables and the page of the study of names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from narrows.files import read_text
from narrows.identify.features import PROBES
from narrows.identify.naming import NONE, Namer
from narrows.identify.scheme_families import FAMILIES, family_of, name_of
from narrows.scenario import load
from narrows.scenario.overrides import Override
from narrows.text import markdown_table
from validation.identify import gains

#: A wrong name with more than this probability misleads.
MISLEADING = 0.8
#: Edges of stated probabilities in the table of reliability.
_EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
#: The algorithms that the kernel of Linux has, by the names of the native schemes.
LINUX = (
    "reno", "bic", "cubic", "westwood", "htcp", "highspeed", "hybla", "vegas-linux", "scalable", "lp", "veno",
    "yeah", "illinois", "dctcp", "bbr1",
)  # fmt: skip
TEXT = Path(__file__).with_name("page.md.in")


@dataclass(frozen=True)
class Trial:
    """A card of a scheme, and its names by the library with and without the scheme's family."""

    scheme: str
    seed: int
    closed: tuple[str, float]
    open: tuple[str, float]
    #: The name of a path outside the library; empty for one around the probes.
    path: str = ""
    #: Processor time of the card and its name.
    seconds: float = 0.0
    #: The name by the probes that run until an answer is certain, and their number.
    early: tuple[str, float] = (NONE, 1.0)
    probes: int = 0

    @property
    def is_named(self) -> bool:
        """True if its name is right."""
        return self.closed[0] == name_of(self.scheme)

    @property
    def is_in_family(self) -> bool:
        """True if the family of its name is right."""
        return self.closed[0] != NONE and family_of(self.closed[0]) == family_of(name_of(self.scheme))

    @property
    def is_refused(self) -> bool:
        """True if the library without its family calls it none of these."""
        return self.open[0] == NONE

    @property
    def misleads(self) -> bool:
        """True if it has the name of a wrong family with a large probability."""
        return self.closed[0] != NONE and not self.is_in_family and self.closed[1] > MISLEADING

    @property
    def misleads_without(self) -> bool:
        """The same by the library without its family."""
        return not self.is_refused and self.open[1] > MISLEADING


def _share(trials: Sequence[Trial], member: str) -> str:
    """The share of trials of which a property is true."""
    return f"{100 * np.mean([getattr(trial, member) for trial in trials]):.1f} %"


def report(trials: Sequence[Trial]) -> Iterator[str]:
    """The tables of a study in Markdown."""
    around = [trial for trial in trials if not trial.path]
    yield summary(around)
    yield reliability(around)
    yield confusion(around)
    if strangers := strangers_named(around):
        yield strangers
    if outside := [trial for trial in trials if trial.path]:
        yield by_path(outside)
    yield stopping(around)
    seconds = [trial.seconds for trial in around]
    time_s = f"{np.median(seconds):.1f} s of processor time each (median), {max(seconds):.1f} s at most"
    yield f"{len(around)} cards; {time_s}."


def stopping(trials: Sequence[Trial]) -> str:
    """How often names are right if no probe starts after a certain answer, and how many probes that takes."""
    early = [replace(trial, closed=trial.early) for trial in trials]
    members = [
        ("right name", "is_named"),
        ("right family", "is_in_family"),
        (f"wrong family with more than {MISLEADING:g}", "misleads"),
    ]
    rows = [[title, _share(trials, member), _share(early, member)] for title, member in members]
    numbers = [trial.probes for trial in trials]
    rows.append(["probes, mean (most)", str(len(PROBES)), f"{np.mean(numbers):.1f} ({max(numbers)})"])
    return markdown_table(["of cards", "all probes", "until certain"], rows)


def summary(trials: Sequence[Trial]) -> str:
    """Shares of right and of misleading names, for all schemes and for those of Linux."""
    linux = [trial for trial in trials if trial.scheme in LINUX]
    members = [
        ("right name", "is_named"),
        ("right family", "is_in_family"),
        (f"wrong family with more than {MISLEADING:g}", "misleads"),
        ("none of these, without the family in the library", "is_refused"),
        (f"a name with more than {MISLEADING:g}, without it", "misleads_without"),
    ]
    schemes = len({trial.scheme for trial in trials})
    rows = [
        [title, _share(trials, member), _share(linux, member) if linux else ""] for title, member in members
    ]
    return markdown_table(["of cards", f"{schemes} schemes", f"{len(LINUX)} of Linux"], rows)


def reliability(trials: Sequence[Trial]) -> str:
    """Stated probabilities of the first answer by the share of right ones, with and without the family."""
    answers = [(t.closed[1], t.is_named) for t in trials] + [(t.open[1], t.is_refused) for t in trials]
    probability, correct = np.array(answers, np.float64).T
    rows = []
    for low, high in pairwise(_EDGES):
        inside = (probability > low) & (probability <= high)
        if inside.any():
            rows.append(
                [
                    f"{low:g} to {high:g}",
                    f"{probability[inside].mean():.2f}",
                    f"{correct[inside].mean():.2f}",
                    str(int(inside.sum())),
                ]
            )
    return markdown_table(["stated", "mean", "right", "answers"], rows)


def confusion(trials: Sequence[Trial]) -> str:
    """The confusion matrix without its zeros: by scheme, how often each name was given."""
    rows = []
    for scheme in dict.fromkeys(trial.scheme for trial in trials):
        names = Counter(trial.closed[0] for trial in trials if trial.scheme == scheme)
        right = names.pop(name_of(scheme), 0)
        others = ", ".join(f"{name} {count}" for name, count in names.most_common())
        rows.append([f"`{scheme}`", family_of(name_of(scheme)), str(right), others])
    return markdown_table(["scheme", "family", "right", "other answers"], rows)


def strangers_named(trials: Sequence[Trial]) -> str:
    """The names of schemes whose family the library lacks, where it does not answer none of these."""
    taken = Counter((trial.scheme, trial.open[0]) for trial in trials if not trial.is_refused)
    certain = Counter((trial.scheme, trial.open[0]) for trial in trials if trial.misleads_without)
    rows = [[f"`{pair[0]}`", pair[1], str(n), str(certain[pair])] for pair, n in taken.items()]
    return markdown_table(["scheme", "named", "cards", f"above {MISLEADING:g}"], rows) if rows else ""


def by_path(trials: Sequence[Trial]) -> str:
    """Names on paths outside the library."""
    rows = []
    for path in dict.fromkeys(trial.path for trial in trials):
        some = [trial for trial in trials if trial.path == path]
        none = 100 * np.mean([trial.closed[0] == NONE for trial in some])
        shares = [_share(some, member) for member in ("is_named", "is_in_family", "misleads")]
        rows.append([path, str(len(some)), *shares[:2], f"{none:.1f} %", shares[2]])
    return markdown_table(["path", "cards", "right name", "right family", NONE, "misleading"], rows)


def families() -> str:
    """The families and why their members are together."""
    rows = [[", ".join(f.members), f.reason] for f in FAMILIES if len(f.members) > 1]
    return markdown_table(["schemes", "reason"], rows)


def write_page(page: Path, trials: Sequence[Trial], namer: Namer) -> None:
    """Writes the page of a study."""
    around = [trial for trial in trials if not trial.path]
    outside = [trial for trial in trials if trial.path]
    seeds = len({trial.seed for trial in around})
    measured, whole = gains.measure_gains(namer, {probe: _seconds(probe) for probe in PROBES})
    text = read_text(TEXT)
    parts = {
        "schemes": str(len({trial.scheme for trial in around})),
        "seeds": str(seeds),
        "cards": str(len(around)),
        "summary": summary(around),
        "stopping": stopping(around),
        "reliability": reliability(around),
        "confusion": confusion(around),
        "strangers": strangers_named(around) or "None.",
        "outside": by_path(outside) if outside else "Not simulated.",
        "outside-confusion": confusion(outside) if outside else "",
        "outside-runs": str(
            max((t.seed for t in outside), default=0) - min((t.seed for t in outside), default=1) + 1
        ),
        "gains": gains.table(measured),
        "linux": str(len(LINUX)),
        "whole": f"{100 * whole:.1f} %",
        "families": families(),
    }
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part.strip())
    page.write_text(text, encoding="utf-8")


def _seconds(probe: str) -> float:
    """The seconds of a probe with one run of each of its cells."""
    scenario = load(probe, [Override("WHAT", "schemes", "[reno]")]).scenario
    return scenario.duration_ns / 1e9 * len({row.label for row in scenario.schemes})
