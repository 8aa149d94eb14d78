"""Logs in the form that mahimahi's source prints, compared with their input."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus_kit import Case, Truth, check_folder, check_line, check_refusal, lines_of, refusals_of


@pytest.mark.parametrize(("case", "line"), lines_of("mahimahi"))
def test_every_number_of_mahimahis_logs_is_that_of_its_form(case: Case, line: Truth) -> None:
    check_line(case, line)


@pytest.mark.parametrize("case", refusals_of("mahimahi"))
def test_logs_that_cannot_be_read_are_named(case: Case, tmp_path: Path) -> None:
    check_refusal(case, tmp_path / "c")


def test_every_log_of_the_corpus_has_its_truth() -> None:
    check_folder("mahimahi")
