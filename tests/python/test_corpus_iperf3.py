"""Documents of the real iperf3, against its own sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus_kit import Case, Truth, check_folder, check_line, check_refusal, lines_of, refusals_of


@pytest.mark.parametrize(("case", "line"), lines_of("iperf3"))
def test_every_number_of_iperf3_documents_is_iperf3s_own(case: Case, line: Truth) -> None:
    check_line(case, line)


@pytest.mark.parametrize("case", refusals_of("iperf3"))
def test_documents_that_cannot_be_read_are_named(case: Case, tmp_path: Path) -> None:
    check_refusal(case, tmp_path / "c")


def test_every_document_of_the_corpus_has_its_truth() -> None:
    check_folder("iperf3")
