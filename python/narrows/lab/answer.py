"""The answer that opens a report: a few sentences that follow from the comparison alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from narrows.analysis.metrics import four_digits
from narrows.documents.laboratory import FAILS, HOLDS, AccuracyLimit, LabReport
from narrows.text import plural

#: Sentences about the order as a whole, by the share of pairs of schemes in the published order.
_ORDER = (
    (0.9, "The published order of the schemes is found again"),
    (0.75, "The published order of the schemes is found again for the most part"),
    (0.6, "The published order of the schemes is found again in part"),
    (0.0, "The published order of the schemes is not found again"),
)
#: Errors below these shares are counted.
CLOSE, NEAR = 0.1, 0.3
_FINDINGS = 6


def sentences(report: LabReport) -> list[str]:
    """The answer, sentence by sentence."""
    if not report.experiments:
        return ["Nothing has been run yet."]
    texts = _order(report) + _values(report) + _relations(report) + _limits(report)
    if not report.has_published:
        several = len(report.experiments) > 1
        texts += [
            f"{experiment.name}: {text}" if several else text
            for experiment in report.experiments
            for text in experiment.sentences
        ][:_FINDINGS]
    if report.not_run:
        names = ", ".join(report.not_run)
        texts.append(f"Not run yet: {names}.")
    if report.quick:
        texts.append(f"These were quick runs: {report.quick}")
    return texts


def _order(report: LabReport) -> list[str]:
    same = sum(column.ranked.same for column in report.columns)
    turned = sum(column.ranked.reversed for column in report.columns)
    if not same + turned:
        return []
    share = same / (same + turned)
    words = next(text for least, text in _ORDER if share >= least)
    taus = [(column.ranked.tau, column.label) for column in report.columns]
    known = [(tau, label) for tau, label in taus if tau is not None]
    ends = ""
    if len(known) > 1:
        (low, worst), (high, best) = min(known), max(known)
        ends = f"; Kendall's tau is {high:.2f} for {inside(best)} and {low:.2f} for {inside(worst)}"
    return [f"{words}: {same} of {plural(same + turned, 'pair')} have the same order{ends}."]


def _values(report: LabReport) -> list[str]:
    errors = [
        abs(cell.relative) for column in report.columns for cell in column.cells if cell.relative is not None
    ]
    if not errors:
        return []
    close, near = (sum(error <= most for error in errors) for most in (CLOSE, NEAR))
    text = (
        f"Of {plural(len(errors), 'published value')} {close} {'is' if close == 1 else 'are'} met within"
        f" {CLOSE:.0%}, {near} within {NEAR:.0%}"
    )
    means = [
        (column.all.mean_relative_error, column.label)
        for column in report.columns
        if column.all.mean_relative_error is not None
    ]
    if len(means) > 1:
        (low, best), (high, worst) = min(means), max(means)
        text += f"; the mean error is {_share(low)} for {inside(best)} and {_share(high)} for {inside(worst)}"
    return [f"{text}.".replace("%", " %").replace("  %", " %")]


def _relations(report: LabReport) -> list[str]:
    published = [relation for relation in report.relations if relation.published == HOLDS]
    if not published:
        return []
    kept = [relation for relation in published if relation.here == HOLDS]
    text = f"{len(kept)} of {plural(len(published), 'statement')} of the original hold here too"
    if len(published) == 1:
        text = (
            "The statement of the original holds here too"
            if kept
            else "The statement of the original does not hold"
        )
    texts = [f"{text}."]
    reasons: set[str] = set()
    for relation in published:
        if relation.here != FAILS:
            continue
        because = f" {relation.because}" if relation.because and relation.because not in reasons else ""
        reasons.add(str(relation.because))
        there, here = (f"{more} and {less}" for more, less in (relation.values.theirs, relation.values.ours))
        texts.append(f"Not so: {relation.says} (there {there}, here {here}).{because}")
    return texts


def _limits(report: LabReport) -> list[str]:
    if not report.expect:
        return []
    broken = [limit for limit in report.expect if limit.outcome == FAILS]
    if not broken:
        count = len(report.expect)
        return [f"All {count} limits are kept." if count > 1 else "The limit is kept."]
    texts = "; ".join(limit_text(limit, report.labels) for limit in broken)
    return [f"{len(broken)} of {plural(len(report.expect), 'limit')} broken: {texts}."]


#: Statistics for people.
STATISTICS = {
    "mean_absolute_error": "mean absolute error",
    "mean_relative_error": "mean relative error",
    "mean_log_error": "mean |ln(ours/theirs)|",
    "tau": "Kendall's tau",
    "same_signs": "share of pairs in the same order",
}


def limit_text(limit: AccuracyLimit, labels: Mapping[str, str]) -> str:
    """`Jain's index (16 ms): Kendall's tau 0.62, at least 0.8`."""
    case = f" ({limit.case})" if limit.case else ""
    value = "no value" if limit.value is None else number(limit.value, limit.statistic)
    ends: Sequence[str] = [
        f"{word} {number(end, limit.statistic)}"
        for end, word in ((limit.at_least, "at least"), (limit.at_most, "at most"))
        if end is not None
    ]
    label = labels.get(limit.column, limit.column)
    return f"{label}{case}: {STATISTICS[limit.statistic]} {value}, {', '.join(ends)}"


def number(value: float | None, statistic: str) -> str:
    """A statistic in words; `–` if there is none."""
    if value is None:
        return "–"
    if statistic in ("mean_relative_error", "same_signs"):
        return _share(value)
    return four_digits(value)


def _share(value: float) -> str:
    return f"{value * 100:.{0 if value >= 0.1 else 1}f} %"


def inside(label: str) -> str:
    """A label within a sentence: only the first letter of a plain word changes."""
    first = label.split(" ", 1)[0]
    plain = first[1:].islower() and not first.startswith("Jain")
    return label[:1].lower() + label[1:] if plain else label
