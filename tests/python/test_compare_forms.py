"""`narrows compare`: tables for a terminal, Markdown, HTML and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compare_kit import campaign, compare, on_terminal, run_command, runs, ten
from narrows.comparison.document import Request
from narrows.errors import UsageError

LONG = "linux:cubic with a name that is rather long (alpha 0.25, beta 0.7, delay 20 ms)"


def many(count: int) -> list[str]:
    return [LONG, *(f"scheme-{number}" for number in range(count - 1))]


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("count", [2, 17, 24])
def test_no_number_and_no_name_is_cut(tmp_path: Path, columns: int, count: int) -> None:
    schemes = {name: runs(place) for place, name in enumerate(many(count))}
    verdicts = {("scheme-0", 2): "degraded"}
    before = campaign(tmp_path / "a", schemes)
    after = campaign(
        tmp_path / "b", {name: runs(90 + place) for place, name in enumerate(many(count))}, verdicts=verdicts
    )
    for folders in ((before, after), (after,)):
        text = on_terminal("compare", *folders, columns=columns)
        assert "…" not in text
        assert "..." not in text
        assert "10, 1 degraded" in text
        for name in schemes:
            assert name in text
        for line in text.splitlines():
            assert len(line) <= columns or str(tmp_path) in line, line
        # Numbers have all their decimals: nothing is cut off after a point.
        assert not re.search(r"\d\.(?!\d)(?=[^\s])", text.replace(str(tmp_path), ""))


def test_left_out_columns_are_named(tmp_path: Path) -> None:
    before, after = (campaign(tmp_path / name, {"reno": runs(place)}) for place, name in enumerate("ab"))
    metrics = "throughput,goodput,p50 OWD,p95 OWD,p99 OWD,max OWD,loss,util,mean OWD"
    narrow = run_command(before, after, "--metrics", metrics, columns=80).stdout
    assert "No room for" in narrow
    wide = run_command(before, after, "--metrics", metrics, columns=200).stdout
    assert "No room for" not in wide


def test_markdown_is_a_table_for_a_pull_request(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a_b", {"bbr3": runs(1), LONG: runs(2)})
    after = campaign(tmp_path / "c", {"bbr3": runs(3, factor=0.9), LONG: runs(4)})
    result = run_command(before, after, "--markdown", "--fail-on", "thr worse by 5 %")
    assert result.exit_code == 5
    lines = result.stdout.splitlines()
    assert lines[0].startswith("### 2 of 10 comparisons show a difference: 2 worse.")
    row = re.compile(r"\| bbr3 \| thr \\\[Mbit/s\\\] \| [\d.]+ \| [\d.]+ \| -\d+\.\d % \|")
    assert any(map(row.match, lines))
    tables = [line for line in lines if line.startswith("|")]
    widths = {line.replace("\\|", "").count("|") for line in tables}
    assert len(widths) == 2
    assert "a\\_b" in result.stdout


def test_html_has_everything_in_it(tmp_path: Path) -> None:
    before = campaign(tmp_path / "a", {"bbr3": runs(1), "<b>x</b>": runs(2)})
    after = campaign(tmp_path / "b", {"bbr3": runs(3, factor=0.9), "<b>x</b>": runs(4)})
    target = tmp_path / "page.html"
    result = run_command(before, after, "--html", "-o", target)
    assert result.exit_code == 0, result.output
    text = target.read_text()
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x" in text
    assert not re.search(r"(src|href)=\"(?!data:)", text)
    assert "-10." in text or "-9." in text
    assert text == run_command(before, after, "--html").stdout
    assert run_command(tmp_path / "a", "--html").exit_code == 0


def test_json_is_one_document(tmp_path: Path) -> None:
    before, after = (campaign(tmp_path / name, ten(place)) for place, name in enumerate("ab"))
    document = json.loads(run_command(before, after, "--json").stdout)
    assert document["format"] == "narrows/compare/1"
    assert document["error_rate"] == 0.05
    assert document["tests"] == sum(len(row["metrics"]) for row in document["rows"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--json", "--html"], "are different forms"),
        (["page.html"], "to write there: -o page.html"),
        (["--pair", "cubic"], "is not a pair"),
        (["--across", "netwrk"], 'did you mean "network"?'),
        (["--metrics", "thru"], "does not exist"),
        (["--schemes", "cubix"], 'did you mean "cubic"?'),
        (["--flow", "7"], "has no flow"),
        (["--tolerance", "5"], "has no unit"),
    ],
)
def test_usage_errors_exit_with_2(tmp_path: Path, options: list[str], says: str) -> None:
    before, after = (campaign(tmp_path / name, {"cubic": runs(place)}) for place, name in enumerate("ab"))
    result = run_command(before, after, *options)
    assert result.exit_code == 2, result.output
    assert says in str(result.exception)


def test_a_campaign_is_not_compared_with_itself(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"cubic": runs(1)})
    with pytest.raises(UsageError, match="named twice"):
        compare(Request([folder, folder]))


#: Texts that GitHub and others turn into a mention, a reference or a link, at any position.
_BARE = re.compile(r"(?i)(?<!\w)@[a-z0-9]|(?<![\w&])#\d|https?://|www\.|[\w.+-]+@[\w-]+\.|\bGH-\d|mailto:")


def test_names_in_markdown_mention_nobody_and_link_nowhere(tmp_path: Path) -> None:
    names = [
        "@torvalds",
        "see https://evil.example/?a=1",
        "www.evil.example",
        "a@b.example",
        "x#12 GH-7",
        "![i](j)",
    ]
    folders = [
        campaign(tmp_path / one, {name: runs(place) for place, name in enumerate(names)}, first_seed=seed)
        for seed, one in ((1, "a"), (2, "b"))
    ]
    text = run_command(*folders, "--markdown", "--no-traces").stdout
    assert "torvalds" in text and "evil" in text
    plain = re.sub(r"\\(.)", r"\1", text.replace(str(tmp_path), ""))
    assert not _BARE.findall(plain), _BARE.findall(plain)
    assert "![" not in text
