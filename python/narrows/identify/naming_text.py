"""The name of a sender for people: a sentence, and the lines that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrows.documents.identify import Evidence, Naming
from narrows.identify.naming import NONE, best_of, families_of
from narrows.text import plural

if TYPE_CHECKING:
    from rich.console import Console

#: Other answers below this probability are not mentioned.
_LEAST_MENTIONED = 0.01


def _in_words(probability: float) -> str:
    """A probability with two digits; nothing is certain."""
    return "> 0.99" if probability > 0.99 else f"{probability:.2f}"


def sentence(naming: Naming) -> str:
    """`most like cubic, 0.93 (family cubic, 0.98); scalable 0.01; none of these 0.01`."""
    best, probability = best_of(naming)
    first = naming.candidates[0]
    if best == NONE:
        text = f"{NONE}, {_in_words(probability)}; nearest is {first.name}, {float(first.probability):.2f}"
    else:
        text = f"most like {best}, {_in_words(probability)}"
        family = families_of(naming.candidates)[first.family]
        relatives = [item.name for item in naming.candidates[1:] if item.family == first.family]
        if relatives:
            text += f" (family {first.family}, {_in_words(family)})"
    others = [
        f"{item.name} {float(item.probability):.2f}"
        for item in naming.candidates[1:]
        if float(item.probability) >= _LEAST_MENTIONED
    ]
    if best != NONE and float(naming.none) >= _LEAST_MENTIONED:
        others.append(f"{NONE} {float(naming.none):.2f}")
    return "; ".join([text, *others])


def basis(naming: Naming) -> str:
    """The lines that the name rests on, in words."""
    text = f"From {plural(naming.lines, 'line')} against the library of references"
    return f"{text}, of which {plural(naming.unknown, 'line')} are unknown here" if naming.unknown else text


def row(item: Evidence) -> list[str]:
    """A line of evidence: title, probe, the measured value, and what is usual for both."""
    return [
        item.title,
        item.probe.removeprefix("probe-"),
        item.value,
        item.usual,
        f"{item.rival}: {item.rival_usual}",
    ]


def print_naming(console: Console, naming: Naming) -> None:
    """Prints the sentence and the evidence."""
    from narrows.console import Listing

    console.print(sentence(naming), soft_wrap=False)
    for title, items in (("decided by", naming.decisive), ("contradicted by", naming.contrary)):
        if items:
            console.print()
            shown = Listing(title, "probe", "here", naming.nearest, "other", whole=[])
            for item in items:
                shown.add_row(*row(item))
            console.print(shown)
    console.print(f"\n{basis(naming)}.", soft_wrap=False)


def markdown(naming: Naming) -> str:
    """The sentence and the evidence in Markdown."""
    from narrows.text import markdown_table

    rows = [row(item) for item in (*naming.decisive, *naming.contrary)]
    table = markdown_table(["line", "probe", "here", naming.nearest, "other"], rows) if rows else ""
    return f"**{sentence(naming)}**\n\n{table}"
