"""Tables for papers: LaTeX compiles as it was written, and the CSV has the numbers of the results."""

from __future__ import annotations

import csv
import io
import shutil
import statistics
import subprocess
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from campaign_kit import narrows
from compare_kit import campaign, ten
from narrows import latex
from narrows.blocks.latex import MOST_ROWS, write_latex, write_standalone
from narrows.blocks.model import Cell, Column, Note, Table
from narrows.errors import UsageError
from narrows.paper.forms import FORMS, form_of, warning

ASCII = "".join(map(chr, range(33, 127)))
LETTERS = "äöüßéèçñåÅøŁşğ µ × ± ≤ ≥ α Ω → – — … ° ²"
VERDICTS = {("cubic", 2): "invalid", ("cubic", 3): "degraded", ("linux:bbr_100%", 1): "failed"}


def made(folder: Path) -> Path:
    """A campaign of two schemes with ten runs each, of which one is invalid, one degraded and one failed."""
    schemes = {"cubic": ten(1)["cubic"], "linux:bbr_100%": ten(2)["cubic"]}
    return campaign(folder, schemes, verdicts=VERDICTS, skipped={"bpf:bic": "no rights"})


def hostile(text: str) -> Table:
    """A table with this text in every place that users fill."""
    columns = (Column(text, "left"), Column("thr", unit="Mbit/s"))
    rows = (
        (text, Cell("-5.0", small="[-6.0, -4.0]", marks=("*",), data=(-5.0,))),
        ("[x]", Cell("1", data=(1.0,), kind="total")),
    )
    return Table.new(columns, rows, [Note("", text), Note("", "1 run.")], sources=(text,))


def typeset(text: str, folder: Path) -> str:
    """The text of the PDF that pdfTeX makes of a document, without spaces."""
    if shutil.which("pdflatex") is None or shutil.which("pdftotext") is None:
        pytest.skip("pdflatex and pdftotext are not installed")
    (folder / "t.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    words = subprocess.run(["pdftotext", "t.pdf", "-"], cwd=folder, capture_output=True, check=True)
    # The map of a font may name the sign of ohm, or a ligature.
    return "".join(unicodedata.normalize("NFKC", words.stdout.decode()).split())


def test_every_character_survives_typesetting(tmp_path: Path) -> None:
    table = hostile(f"{ASCII} {LETTERS} -- ,, 漢")
    seen = typeset(write_standalone(table), tmp_path)
    # Fonts of TeX have other quotation marks and accents, and draw the underscore as a rule.
    for letter in set(ASCII) - set("\"'`-^~_"):
        assert letter in seen, letter
    for word in ("μ", "×", "α", "Ω", "U+6F22", "--", ",,"):
        assert word in seen, word
    assert "−5.0[−6.0,−4.0]" in seen.replace("*", "")


def test_a_table_goes_twice_into_a_document_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "one.tex").write_text(write_latex(hostile("a_b & c")), encoding="utf-8")
    seen = typeset(
        "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
        "\\begin{table}\\centering\\input{one}\\caption{First}\\end{table}"
        "\\begin{table}\\input{one}\\caption{Second}\\end{table}\\end{document}",
        tmp_path,
    )
    assert seen.count("[−6.0,−4.0]") == 2 and "Second" in seen


@given(st.text(max_size=30))
def test_any_text_is_ascii_with_balanced_braces(text: str) -> None:
    escaped = latex.escape(text)
    assert escaped.isascii()
    plain = escaped.replace(r"\{", "").replace(r"\}", "")
    assert plain.count("{") == plain.count("}")


@pytest.mark.parametrize("form", FORMS)
@given(text=st.text(max_size=20))
def test_every_form_writes_any_text(form: str, text: str) -> None:
    written = FORMS[form].write(hostile(text))
    if form == "csv":
        rows = list(csv.reader(io.StringIO(written, newline="")))
        assert [len(row) for row in rows] == [2, 2, 2]
        assert float(rows[1][1]) == -5.0


def test_the_csv_of_a_campaign_has_the_medians_of_its_valid_runs(tmp_path: Path) -> None:
    folder = made(tmp_path / "c")
    done = narrows("show", folder, "-o", tmp_path / "t.csv")
    assert done.exit_code == 0, done.output
    assert done.stdout == f"table: {tmp_path / 't.csv'}\n"
    with (tmp_path / "t.csv").open(newline="") as stream:
        rows = {row["scheme"]: row for row in csv.DictReader(stream)}
    valid = [values["throughput_bps"] for values in ten(1)["cubic"][:1] + ten(1)["cubic"][2:]]
    median = statistics.median(value for value in valid if value is not None)
    cubic, bbr = rows["cubic"], rows["linux:bbr_100%"]
    assert float(cubic["throughput (Mbit/s)"]) == pytest.approx(median / 1e6, rel=1e-8)
    low, high = (float(cubic[f"throughput, {end} (Mbit/s)"]) for end in ("low", "high"))
    assert low <= median / 1e6 <= high and cubic["throughput, spread"] == "interval"
    assert [cubic[name] for name in ("runs", "valid", "degraded", "invalid", "failed")] == [
        *("10", "9", "1", "1", "0")
    ]
    assert [bbr[name] for name in ("runs", "valid", "degraded", "invalid", "failed")] == [
        *("10", "9", "0", "0", "1")
    ]


def test_notes_count_the_verdicts_and_name_the_schemes_that_did_not_run(tmp_path: Path) -> None:
    folder = made(tmp_path / "c")
    text = narrows("show", folder, "--format", "latex", "--columns", "thr,loss").stdout
    wanted = "20 runs: 1 degraded (counted), 1 invalid (excluded), 1 failed (excluded); all others are ok."
    assert wanted in text and "Not run: bpf:bic." in text
    assert "linux:bbr\\_100\\%" in text and "p95" not in text
    assert "% c: campaign 0123456789ab, simulate, Narrows 0.1.0" in text
    markdown = narrows("compare", folder, "--format", "csv", "--against", "cubic").stdout
    assert markdown.splitlines()[0].startswith("against cubic,metric,unit,base,other,")


def test_comparisons_have_their_estimates_in_the_csv(tmp_path: Path) -> None:
    one, other = (
        campaign(tmp_path / "one", {"cubic": ten(1)["cubic"]}),
        campaign(tmp_path / "other", {"cubic": ten(1, cubic=0.9)["cubic"]}),
    )
    done = narrows("compare", one, other, "--metrics", "thr", "-o", tmp_path / "t.csv")
    assert done.exit_code == 0, done.output
    (row,) = csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text()))
    assert row["shown"] == "worse"
    assert float(row["other"]) / float(row["base"]) == pytest.approx(0.9, abs=0.02)
    estimate, low, high = (float(row[f"difference, {word}"]) for word in ("estimate", "low", "high"))
    assert low <= estimate <= high < 0 and row["difference, unit"] == "%"


def test_a_comparison_compiles(tmp_path: Path) -> None:
    folder = made(tmp_path / "c")
    seen = typeset(narrows("compare", folder, "--format", "standalone").stdout, tmp_path)
    assert "bbr100%" in seen and "1failed(excluded)" in seen
    seen = typeset(
        narrows("compare", folder, "--against", "cubic", "--format", "standalone").stdout, tmp_path
    )
    assert "difference" in seen


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "x.doc"), "-o x.doc: the name must end in .tex, .csv or .md"),
        (("--columns", "thr"), "--columns chooses the columns of a table for a paper"),
        (("--format", "csv", "--json"), "--format, --json and --interval print different things"),
        (("--format", "csv", "--columns", "spead"), 'metric "spead" does not exist'),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = narrows("show", made(tmp_path / "c"), *words)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith(said)


def test_a_table_longer_than_a_page_is_announced() -> None:
    row = ("x",)
    table = Table.new([Column("x", "left")], [row] * (MOST_ROWS + 1))
    assert warning(table, "latex").startswith(f"the table has {MOST_ROWS + 1} rows")
    assert warning(table, "csv") == ""


def test_endings_choose_the_form() -> None:
    assert [form_of(Path(name)) for name in ("a.tex", "a.CSV", "a.md", "a.txt", "a")] == [
        *("latex", "csv", "markdown", None, None)
    ]
