"""The answer that a report opens with: a few sentences, made of the comparison alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from narrows.analysis.metrics import four_digits
from narrows.text import plural

Json = Mapping[str, Any]

#: Sentences on the order as a whole, by the share of pairs of schemes in the published order.
_ORDER = (
    (0.9, "The published order of the schemes is found again"),
    (0.75, "The published order of the schemes is found again for the most part"),
    (0.6, "The published order of the schemes is found again in part"),
    (0.0, "The published order of the schemes is not found again"),
)
#: Errors below these shares are counted.
CLOSE, NEAR = 0.1, 0.3
_FINDINGS = 6


def sentences(document: Json) -> list[str]:
    """The answer, sentence by sentence."""
    if not document["experiments"]:
        return ["Nothing has been run yet."]
    found = _order(document) + _values(document) + _relations(document) + _limits(document)
    if not has_published(document):
        several = len(document["experiments"]) > 1
        found += [
            f"{one['name']}: {text}" if several else text
            for one in document["experiments"]
            for text in one.get("answer") or ()
        ][:_FINDINGS]
    if document["not_run"]:
        names = ", ".join(document["not_run"])
        found.append(f"Not run yet: {names}.")
    if document["quick"]:
        found.append(f"These were quick runs: {document['quick']}")
    return found


def has_published(document: Json) -> bool:
    """True if there are published values beside those that were measured."""
    return any(column["all"]["cells"] for column in document["columns"])


def _order(document: Json) -> list[str]:
    same = sum(column["ranked"]["same"] for column in document["columns"])
    turned = sum(column["ranked"]["reversed"] for column in document["columns"])
    if not same + turned:
        return []
    share = same / (same + turned)
    words = next(text for least, text in _ORDER if share >= least)
    taus = [(column["ranked"]["tau"], column["label"]) for column in document["columns"]]
    known = [(tau, label) for tau, label in taus if tau is not None]
    ends = ""
    if len(known) > 1:
        (low, worst), (high, best) = min(known), max(known)
        ends = f"; Kendall's tau is {high:.2f} for {inside(best)} and {low:.2f} for {inside(worst)}"
    return [f"{words}: {same} of {plural(same + turned, 'pair')} have the same order{ends}."]


def _values(document: Json) -> list[str]:
    errors = [
        abs(cell["relative"])
        for column in document["columns"]
        for cell in column["cells"]
        if cell["relative"] is not None
    ]
    if not errors:
        return []
    close, near = (sum(error <= most for error in errors) for most in (CLOSE, NEAR))
    text = (
        f"Of {plural(len(errors), 'published value')} {close} {'is' if close == 1 else 'are'} met within"
        f" {CLOSE:.0%}, {near} within {NEAR:.0%}"
    )
    means = [
        (column["all"]["mean_relative_error"], column["label"])
        for column in document["columns"]
        if column["all"]["mean_relative_error"] is not None
    ]
    if len(means) > 1:
        (low, best), (high, worst) = min(means), max(means)
        text += f"; the mean error is {_share(low)} for {inside(best)} and {_share(high)} for {inside(worst)}"
    return [f"{text}.".replace("%", " %").replace("  %", " %")]


def _relations(document: Json) -> list[str]:
    told = [one for one in document["relations"] if one["published"] == "holds"]
    if not told:
        return []
    kept = [one for one in told if one["here"] == "holds"]
    lost = [one for one in told if one["here"] == "does not hold"]
    text = f"{len(kept)} of {plural(len(told), 'statement')} of the original hold here too"
    if len(told) == 1:
        text = (
            "The statement of the original holds here too"
            if kept
            else "The statement of the original does not hold"
        )
    found = [f"{text}."]
    told_why: set[str] = set()
    for one in lost:
        because = f" {one['because']}" if one["because"] and one["because"] not in told_why else ""
        told_why.add(str(one["because"]))
        ours = one["values"]["ours"]
        theirs = one["values"]["theirs"]
        there, here = (f"{more} and {less}" for more, less in (theirs, ours))
        found.append(f"Not so: {one['says']} (there {there}, here {here}).{because}")
    return found


def _limits(document: Json) -> list[str]:
    if not document["expect"]:
        return []
    broken = [one for one in document["expect"] if one["outcome"] == "does not hold"]
    labels = {column["name"]: column["label"] for column in document["columns"]}
    if not broken:
        return [
            f"All {len(document['expect'])} limits are kept."
            if len(document["expect"]) > 1
            else "The limit is kept."
        ]
    texts = "; ".join(limit(one, labels) for one in broken)
    return [f"{len(broken)} of {plural(len(document['expect']), 'limit')} broken: {texts}."]


#: Statistics for people.
STATISTICS = {
    "mean_absolute_error": "mean absolute error",
    "mean_relative_error": "mean relative error",
    "mean_log_error": "mean |ln(ours/theirs)|",
    "tau": "Kendall's tau",
    "same_signs": "share of pairs in the same order",
}


def limit(one: Json, labels: Mapping[str, str]) -> str:
    """`Jain's index (16 ms): Kendall's tau 0.62, at least 0.8`."""
    case = f" ({one['case']})" if one["case"] else ""
    value = "no value" if one["value"] is None else number(one["value"], one["statistic"])
    ends: Sequence[str] = [
        f"{word} {number(one[key], one['statistic'])}"
        for key, word in (("at_least", "at least"), ("at_most", "at most"))
        if one[key] is not None
    ]
    label = labels.get(one["column"], one["column"])
    return f"{label}{case}: {STATISTICS[one['statistic']]} {value}, {', '.join(ends)}"


def number(value: float | None, statistic: str) -> str:
    """A statistic for people; `–` where there is none."""
    if value is None:
        return "–"
    if statistic in ("mean_relative_error", "same_signs"):
        return _share(value)
    return four_digits(value)


def _share(value: float) -> str:
    return f"{value * 100:.{0 if value >= 0.1 else 1}f} %"


def inside(label: str) -> str:
    """A label inside of a sentence: only the first letter of a plain word changes."""
    first = label.split(" ", 1)[0]
    plain = first[1:].islower() and not first.startswith("Jain")
    return label[:1].lower() + label[1:] if plain else label
