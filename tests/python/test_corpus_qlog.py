"""Qlogs of real stacks, against `jq` over the same files."""

from __future__ import annotations

import pytest

from corpus_kit import Case, Truth, check_folder, check_line, lines_of


@pytest.mark.parametrize(("case", "line"), lines_of("qlog"))
def test_every_number_of_qlogs_is_that_of_jq(case: Case, line: Truth) -> None:
    check_line(case, line)


def test_every_qlog_of_the_corpus_has_its_truth() -> None:
    check_folder("qlog")
