"""`python -m validation identify-emulated`: how often names of real senders are right.

Each sender is probed in network namespaces as by `narrows identify --where emulate`, on paths that differ
from the probes' as those of the library do. Each attempt is a line of a CSV file, and attempts that the file
has are not repeated, so a study can be interrupted and extended.
"""

from __future__ import annotations

import csv
import io
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Annotated

from narrows.api.campaign import Campaign
from narrows.campaign.json_files import read_run, write_atomically
from narrows.cli.parameters import argument, option
from narrows.console import say
from narrows.errors import DataError, UnavailableError
from narrows.files import read_text
from narrows.identify.naming import NONE, best_of
from narrows.identify.probe_paths import SPREAD, UNCHANGED, PathFactors
from narrows.identify.running import DEFAULT_CERTAINTY, EMULATE, Order, name_cards, run_probes
from narrows.identify.scheme_families import family_of, name_of
from narrows.schemes.listing import BPF, LINUX, list_schemes
from narrows.text import markdown_table

#: Seeds that the library does not have.
FIRST_SEED = 9301
#: The most time that an identification may take.
BUDGET_S = 120.0
#: The answer of an attempt without a run that can be measured.
NOTHING = "no valid run"
TEXT = Path(__file__).with_name("emulated.md.in")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An emulated identification."""

    sender: str
    #: The name of its algorithm.
    expected: str
    seed: int
    #: By how much the path differed from the probes'.
    rate: float
    rtt: float
    buffer: float
    #: The answer, its probability, and the scheme whose runs are most like the sender's.
    answer: str
    probability: float
    nearest: str
    #: Probes that have run, and their runs by verdict.
    probes: int
    ok: int
    degraded: int
    invalid: int
    #: Wall time, and what entered the links of the paths.
    seconds: float
    megabytes: float

    @property
    def is_named(self) -> bool:
        """True if its name is right."""
        return self.answer == self.expected

    @property
    def is_in_family(self) -> bool:
        """True if the family of its name is right."""
        return self.answer not in (NONE, NOTHING) and family_of(self.answer) == family_of(self.expected)


def run(
    senders: Annotated[
        list[str] | None,
        argument(metavar="[SENDER...]", help="[default: the kernel's schemes and ours inside the kernel]"),
    ] = None,
    attempts: Annotated[int, option("--attempts", min=1, help="Attempts for each sender.")] = 1,
    shipped: Annotated[bool, option("--shipped-paths", help="On the probes' own paths.")] = False,
    data: Annotated[
        Path, option("--data", metavar="FILE", help="The CSV file of the attempts, which is continued.")
    ] = Path("docs/verification/names-emulated.csv"),
    page: Annotated[Path | None, option("--page", metavar="FILE", help="Write the page in Markdown.")] = None,
) -> None:
    """Identify emulated senders, and count how often the name is right. Needs an idle machine."""
    known = read_attempts(data) if data.exists() else []
    kernel = [item.name for item in list_schemes() if item.kind in (LINUX, BPF) and not item.missing]
    for seed in range(FIRST_SEED, FIRST_SEED + attempts):
        factors = UNCHANGED if shipped else PathFactors.from_seed(seed, SPREAD)
        for sender in senders or kernel:
            if any((item.sender, item.seed, item.rate) == (sender, seed, factors.rate) for item in known):
                continue
            known.append(identify(sender, seed, factors))
            say(_sentence(known[-1]))
            write_attempts(data, known)
    made = "\n".join(tables(known)).strip()
    if page is not None:
        page.write_text(read_text(TEXT).replace("@tables@", made), encoding="utf-8")
    print(made)


def identify(sender: str, seed: int, factors: PathFactors) -> Attempt:
    """Probes a sender until its name is certain, or two minutes are over."""
    started = time.monotonic()
    answer, probability, nearest = NOTHING, 1.0, ""
    with tempfile.TemporaryDirectory(prefix="narrows-") as place:
        folder = Path(place)
        order = Order(
            EMULATE,
            1,
            seed,
            budget_s=BUDGET_S,
            budget="2 min",
            certainty=DEFAULT_CERTAINTY,
            factors=factors,
        )
        try:
            (card,) = name_cards([run_probes(sender, folder, order)])
        except UnavailableError:
            raise
        except DataError:
            card = None
        if card is not None and card.naming is not None:
            (answer, probability), nearest = best_of(card.naming), card.naming.nearest
        seconds = time.monotonic() - started
        verdicts, megabytes = _runs_below(folder)
    return Attempt(
        sender=sender,
        expected=name_of(sender.partition(":")[2] if _is_program(sender) else sender),
        seed=seed,
        rate=factors.rate,
        rtt=factors.rtt,
        buffer=factors.buffer,
        answer=answer,
        probability=round(probability, 3),
        nearest=nearest,
        probes=len(verdicts),
        ok=sum(probe.count("ok") for probe in verdicts),
        degraded=sum(probe.count("degraded") for probe in verdicts),
        invalid=sum(probe.count("invalid") for probe in verdicts),
        seconds=round(seconds, 1),
        megabytes=round(megabytes, 1),
    )


def _is_program(sender: str) -> bool:
    return ":" in sender and not sender.startswith(("linux:", "bpf:", "{"))


def _runs_below(folder: Path) -> tuple[list[list[str]], float]:
    """The verdicts of the runs of each probe, and the megabytes that left their bottlenecks."""
    verdicts: list[list[str]] = []
    size = 0.0
    for place in sorted(folder.glob("*/campaign.json")):
        runs = Campaign(place.parent).runs
        verdicts.append([run.verdict or run.state for run in runs])
        for run in runs:
            if (run.path / "run.json").is_file():
                elements = read_run(run.path).elements
                size += sum(element.out_bytes for element in elements if element.name.endswith(".0")) / 1e6
    return verdicts, size


def _sentence(attempt: Attempt) -> str:
    return f"{attempt.sender}: {attempt.answer}, {attempt.probability:g}, in {attempt.seconds:.0f} s"


def read_attempts(file: Path) -> list[Attempt]:
    """The attempts in a CSV file."""
    kinds = {"str": str, "int": int, "float": float}
    return [
        Attempt(**{item.name: kinds[str(item.type)](row[item.name]) for item in fields(Attempt)})
        for row in csv.DictReader(io.StringIO(read_text(file)))
    ]


def write_attempts(file: Path, attempts: Sequence[Attempt]) -> None:
    """Writes attempts into a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [item.name for item in fields(Attempt)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(attempt) for attempt in attempts)
    write_atomically(file, text.getvalue())


def tables(attempts: Sequence[Attempt]) -> list[str]:
    """The tables of a study in Markdown: shares of right names, and each sender with its answers."""
    return [_summary(attempts), _by_sender(attempts)]


def _summary(attempts: Sequence[Attempt]) -> str:
    parts = {
        "the kernel": [item for item in attempts if item.sender.startswith("linux:")],
        "ours inside the kernel": [item for item in attempts if item.sender.startswith("bpf:")],
        "programs": [item for item in attempts if _is_program(item.sender)],
        "native, over our transport": [item for item in attempts if ":" not in item.sender],
    }
    rows = []
    for title, some in parts.items():
        if some:
            named = sum(item.is_named for item in some)
            family = sum(item.is_in_family for item in some)
            wrong = sum(item.answer not in (NONE, NOTHING) and not item.is_in_family for item in some)
            longest, largest = max(item.seconds for item in some), max(item.megabytes for item in some)
            rows.append(
                [
                    title,
                    str(len(some)),
                    str(named),
                    str(family),
                    str(wrong),
                    f"{longest:.0f}",
                    f"{largest:.0f}",
                ]
            )
    header = ["senders", "attempts", "right name", "right family", "wrong", "s, at most", "MB, at most"]
    return markdown_table(header, rows)


def _by_sender(attempts: Sequence[Attempt]) -> str:
    rows = [
        [
            f"`{item.sender}`",
            f"{item.answer}, {item.probability:.2f}",
            "yes" if item.is_named else "family" if item.is_in_family else "no",
            f"{item.ok} / {item.degraded} / {item.invalid}",
            f"{item.seconds:.0f}",
            f"{item.megabytes:.0f}",
            f"{item.rate:g} / {item.rtt:g} / {item.buffer:g}",
        ]
        for item in sorted(attempts, key=lambda item: (item.sender, item.seed))
    ]
    header = [
        "sender", "answer", "right", "runs ok / degraded / invalid", "s", "MB", "path: rate / RTT / buffer"
    ]  # fmt: skip
    return markdown_table(header, rows)
