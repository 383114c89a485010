"""Numbers as Java writes them; those of Float and Double are the manual's examples."""

import math

import pytest

from walstream.formats.debezium.float_text import float4, float8, python_float


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0", "0.0"),
        ("-0", "-0.0"),
        ("1", "1.0"),
        ("-1.5", "-1.5"),
        ("100", "100.0"),
        ("123.25", "123.25"),
        ("9999999", "9999999.0"),
        ("10000000", "1.0E7"),
        ("123456789.125", "1.23456789125E8"),
        ("0.001", "0.001"),
        ("0.000999", "9.99E-4"),
        ("0.012", "0.012"),
        ("0.1", "0.1"),
        ("1e+16", "1.0E16"),
        ("1e+21", "1.0E21"),
        ("2.2250738585072014e-308", "2.2250738585072014E-308"),
        ("1.7976931348623157e+308", "1.7976931348623157E308"),
        ("5e-324", "4.9E-324"),
        ("-1e-323", "-9.9E-324"),
        ("1.5e-323", "1.5E-323"),
        ("2e-323", "2.0E-323"),
        ("1e-322", "1.0E-322"),
        ("NaN", '"NaN"'),
        ("Infinity", '"Infinity"'),
        ("-Infinity", '"-Infinity"'),
    ],
)
def test_a_double_is_written_as_by_java(text: str, written: str) -> None:
    assert float8(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1.5", "1.5"),
        ("1e+10", "1.0E10"),
        ("3.4028235e+38", "3.4028235E38"),
        ("1.1754944e-38", "1.1754944E-38"),
        ("1e-45", "1.4E-45"),
        ("3e-45", "2.8E-45"),
        ("7e-45", "7.0E-45"),
        ("1e-44", "9.8E-45"),
        ("1e-43", "1.0E-43"),
    ],
)
def test_a_float_is_written_as_by_java(text: str, written: str) -> None:
    assert float4(text) == written


@pytest.mark.parametrize("text", ["", "x", "1,5", "1e", ".5", "--1", "nan", "\u0661"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        float8(text)


def test_numbers_of_python_are_written_likewise() -> None:
    found = [python_float(n) for n in (1e30, -0.01, 12300.0, math.inf, math.nan)]
    assert found == ["1.0E30", "-0.01", "12300.0", '"Infinity"', '"NaN"']
