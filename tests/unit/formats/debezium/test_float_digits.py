"""Digits of floating-point numbers, as PostgreSQL 18 wrote them."""

from decimal import Decimal

import pytest

from walstream.formats.debezium.float_digits import float_digits


@pytest.mark.parametrize(
    "text",
    [
        *("5.7792226679659456e+16", "1.5", "1e+300", "9007199254740992"),
        *("9007199254740994", "0.1", "5e-324", "1.7976931348623157e+308", "-2.5", "0"),
    ],
)
def test_a_float8_has_the_fewest_that_are_not_half_way(text: str) -> None:
    assert float_digits(float(text)) == Decimal(text)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (1.0458202e08, "1.04582016e+08"),
        (8.612554e07, "8.6125536e+07"),
        (1.0295224e09, "1.02952243e+09"),
        (1.1, "1.1"),
        (1e39, "1e+39"),  # no float4
    ],
)
def test_a_float4_likewise(read: float, text: str) -> None:
    assert float_digits(read, 4) == Decimal(text)
