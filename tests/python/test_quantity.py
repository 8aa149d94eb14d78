"""Quantities with units."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrows.scenario import quantity
from narrows.scenario.quantity import QuantityError, convert, parse, show


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12 Mbit/s", "rate", 12_000_000),
        ("2.3 Mbit/s", "rate", 2_300_000),
        ("1Gbit/s", "rate", 10**9),
        ("1 MB/s", "rate", 8_000_000),
        ("1 Kibit/s", "rate", 1024),
        ("20 ms", "span", 20_000_000),
        ("0.5 us", "span", 500),
        ("3 µs", "span", 3000),
        ("1.5 min", "span", 90 * 10**9),
        ("150 kB", "bytes", 150_000),
        ("2 KiB", "bytes", 2048),
        ("1e3 B", "bytes", 1000),
        ("100 packets", "packets", 100),
        ("1 packet", "packets", 1),
        ("0.1 %", "ratio", 0.001),
        ("1.5 bdp", "bytes", 90_000),
        ("0.1 BDP", "bytes", 6000),
    ],
)
def test_quantities_are_converted_to_base_units(text: str, kind: str, value: float) -> None:
    assert convert(parse(text), kind, Fraction(60_000)) == value


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("12", "rate", "12 has no unit; write a rate, for example 12 Mbit/s"),
        ("12 Mbs", "rate", 'did you mean "Mbit/s"?'),
        ("12 MBIT/S", "rate", 'did you mean "Mbit/s"?'),
        ("75 kb", "bytes", "write kB (1000 bytes) or kbit/s"),
        ("-3 ms", "span", "-3 ms is negative; it must be 0 or more"),
        ("-1 bdp", "bytes", "negative"),
        ("0.3 ns", "span", "0.3 ns is not a whole multiple of 1 ns"),
        ("1e40 s", "span", "too large"),
        ("fast", "rate", '"fast" is not a rate such as 12 Mbit/s'),
        ("20 ms", "rate", "20 ms is not a rate such as 12 Mbit/s"),
        ("5 kB", "rate", "5 kB is not a rate"),
        ("", "rate", '"" is not a rate'),
    ],
)
def test_refusals(text: str, kind: str, words: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        convert(parse(text, kind), kind, Fraction(60_000))
    assert words in str(refusal.value)


def test_bdp_needs_a_rate_and_a_delay() -> None:
    with pytest.raises(QuantityError, match="needs a constant bottleneck rate"):
        convert(parse("1 bdp"), "bytes", None)


@given(st.integers(0, 2**53), st.sampled_from(["rate", "span", "bytes", "packets"]))
def test_displayed_quantities_can_be_read_back(value: int, kind: str) -> None:
    shown = convert(parse(show(kind, value)), kind, None)
    # Twelve significant digits are shown: enough for all values in practice.
    assert shown == pytest.approx(value, rel=1e-11)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_clearly(text: str) -> None:
    for kind in (None, "rate", "span", "bytes", "packets", "ratio"):
        try:
            parse(text, kind)
        except QuantityError as refusal:
            assert str(refusal)


def test_every_unit_has_a_kind_with_an_example() -> None:
    kinds = {kind for kind, _ in quantity.UNITS.values()} - {"bdp"}
    assert kinds <= set(quantity.EXAMPLES)
