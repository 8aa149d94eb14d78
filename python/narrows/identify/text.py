"""Cards and their differences for people: a terminal of 80 columns, and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.documents.identify import Card, Differences, Line
from narrows.identify.features import FEATURES
from narrows.text import markdown_table, plural

if TYPE_CHECKING:
    from rich.console import Console

_DIGITS = {feature.name: feature.digits for feature in FEATURES}


def title_of(line: Line) -> str:
    """The feature with its unit."""
    return f"{line.title} [{line.unit}]" if line.unit else line.title


def value_of(line: Line) -> str:
    """The value in words."""
    if line.words:
        total = sum(line.words.values())
        if len(line.words) == 1:
            return str(line.word)
        return ", ".join(f"{word} {100 * count / total:.0f} %" for word, count in line.words.items())
    return "" if line.value is None else _number(line, float(line.value))


def interval_of(line: Line) -> str:
    """The interval in words; a range of a few samples is marked."""
    if line.low is None or line.high is None:
        return ""
    text = f"{_number(line, float(line.low))} to {_number(line, float(line.high))}"
    return text if line.error is not None else f"{text} *"


def seconds_of(line: Line) -> str:
    """The seconds of a run that the line was taken from."""
    if not line.spans:
        return ""
    first = min(float(span.from_s) for span in line.spans)
    last = max(float(span.to_s) for span in line.spans)
    return f"{first:.0f}-{last:.0f} s" if last - first >= 2 else f"{first:.1f}-{last:.1f} s"


def _number(line: Line, value: float) -> str:
    digits = next((_DIGITS[name] for name in (line.name, line.name.rpartition("-")[0]) if name in _DIGITS), 3)
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def print_card(console: Console, card: Card) -> None:
    """Prints a card: measured lines by probe, then what could not be measured and why."""
    from narrows.console import Listing

    console.print(
        f"{card.what} ({card.where})" if card.what == card.scheme else f"{card.what}: {card.scheme}"
    )
    for probe in dict.fromkeys(line.probe for line in card.lines):
        lines = [line for line in card.lines if line.probe == probe]
        measured = [line for line in lines if line.why is None]
        runs = max((line.runs for line in measured), default=0)
        console.print()
        if not measured:
            console.print(f"{probe}: {lines[0].why}", soft_wrap=False)
            continue
        shown = Listing(
            f"{probe}, {plural(runs, 'run')}",
            "value",
            "95 % interval",
            "seconds",
            whole=["95 % interval", "seconds"],
        )
        for line in measured:
            shown.add_row(title_of(line), value_of(line), interval_of(line), seconds_of(line))
        console.print(shown)
        for why, titles in reasons_of(lines):
            console.print(f"  not measured, {why}: {titles}")
    for note in card.notes:
        console.print(f"note: {note}")
    if any(line.value is not None and line.error is None for line in card.lines):
        console.print("\n* the range of fewer than four samples, not an interval")


def reasons_of(lines: list[Line]) -> list[tuple[str, str]]:
    """Why lines are not measured: each reason with the titles of its lines."""
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.why is not None:
            reasons.setdefault(line.why, []).append(line.title)
    return [(why, "; ".join(titles)) for why, titles in reasons.items()]


def samples_of(line: Line) -> str:
    """The number of samples and runs in words."""
    return f"{plural(line.samples, 'sample')} in {plural(line.runs, 'run')}"


def headline(differences: Differences) -> str:
    """The differences in a sentence."""
    count = len(differences.lines)
    lines = f"{count} of {plural(differences.compared, 'line')}"
    text = f"{differences.other} differs from {differences.base} in {lines}"
    if not count:
        text = (
            f"{differences.other}: no difference from {differences.base} is shown in"
            f" {plural(differences.compared, 'line')}"
        )
    if differences.undecided:
        text += f"; {plural(differences.undecided, 'line')} had too few samples to compare"
    return f"{text}."


def method(differences: Differences) -> str:
    """How the differences were decided."""
    return (
        "Welch's test on runs (from four on) or samples, Fisher's for kinds of behaviour, with Holm's"
        f" correction: a wrong difference has a probability of {100 * float(differences.level):g} % at most."
    )


def print_differences(console: Console, differences: Differences) -> None:
    """Prints the lines that differ."""
    from narrows.console import Listing

    console.print(headline(differences), soft_wrap=False)
    if differences.lines:
        console.print()
        shown = Listing("", "probe", "base", "other", whole=["base", "other"])
        for line in differences.lines:
            probe = line.probe.removeprefix("probe-")
            shown.add_row(title_of(line.base), probe, both_of(line.base), both_of(line.other))
        console.print(shown)
    console.print()
    console.print(method(differences))


def both_of(line: Line) -> str:
    """The value with its interval."""
    return value_of(line) if line.words else f"{value_of(line)}\n({interval_of(line)})"


def markdown(cards: list[Card], differences: list[Differences]) -> str:
    """Cards, or with differences these alone, in Markdown."""
    parts = []
    for item in differences:
        parts.append(f"### {headline(item)}\n")
        if item.lines:
            rows = [
                [
                    title_of(line.base),
                    line.probe,
                    *(both_of(side).replace("\n", " ") for side in (line.base, line.other)),
                ]
                for line in item.lines
            ]
            parts.append(markdown_table(["feature", "probe", item.base, item.other], rows))
        parts.append(f"<sub>{method(item)}</sub>\n")
    for card in cards if not differences else []:
        parts.append(f"### {card.what}\n")
        rows = [
            [title_of(line), line.probe, value_of(line), interval_of(line), seconds_of(line)]
            for line in card.lines
            if line.why is None
        ]
        parts.append(markdown_table(["feature", "probe", "value", "95 % interval", "seconds"], rows))
    return "\n".join(parts)
