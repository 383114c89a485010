"""Decimals: bytes of the golden records, and of Java's BigInteger."""

from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from walstream.formats.debezium import numeric

LONG = "9" * 5000


def _fail(reason: str) -> None:
    raise AssertionError(reason)


@pytest.mark.parametrize(
    ("modifier", "precision", "scale"),
    [
        (327686, 5, 2),  # as PostgreSQL gave them
        (524292, 8, 0),
        (198658, 3, -2),
        ((1000 << 16 | 1000) + 4, 1000, 1000),
        ((1000 << 16 | (-1000 & 0x7FF)) + 4, 1000, -1000),
    ],
)
def test_a_modifier_has_precision_and_scale(
    modifier: int, precision: int, scale: int
) -> None:
    assert numeric.precision_of(modifier) == precision
    assert numeric.scale_of(modifier) == scale


@pytest.mark.parametrize(
    ("scale", "text", "written"),
    [
        (2, "-12.30", '"+zI="'),
        (0, "12345678", '"ALxhTg=="'),
        (2, "0.00", '"AA=="'),
        (2, "1.28", '"AIA="'),
        (2, "-1.28", '"gA=="'),
        (2, "5", '"AfQ="'),  # fewer decimals than the type has
        (2, "1.500", '"AJY="'),
        (-2, "12300", '"ew=="'),
        (-2, "0", '"AA=="'),
        (-2, "-12300", '"hQ=="'),
    ],
)
def test_a_decimal_has_the_bytes_of_javas(scale: int, text: str, written: str) -> None:
    assert numeric.fixed(scale, _fail)(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1.50", '{"scale":1,"value":"Dw=="}'),
        ("2.25", '{"scale":2,"value":"AOE="}'),
        ("-0.001", '{"scale":3,"value":"/w=="}'),
        ("0.000", '{"scale":0,"value":"AA=="}'),
        ("1000", '{"scale":0,"value":"A+g="}'),
        (
            "123456789012345678901234567890.123456789",
            '{"scale":9,"value":"XODppWAV/sWq36MorjmBFQ=="}',
        ),
    ],
)
def test_a_numeric_without_a_scale_has_its_own(text: str, written: str) -> None:
    assert numeric.variable(_fail)(text) == written


def test_a_number_may_have_more_digits_than_python_reads_at_once() -> None:
    assert len(numeric.variable(_fail)(LONG)) > 2500
    assert numeric.fixed(1, _fail)(f"{LONG}.0") != numeric.fixed(1, _fail)(f"{LONG}.1")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_finite_number_is_counted_or_a_text(text: str) -> None:
    lost: list[str] = []
    assert numeric.fixed(2, lost.append)(text) == "null"
    assert numeric.variable(lost.append)(text) == "null"
    assert lost == [numeric.NO_NUMBER] * 2
    assert numeric.as_text(text) == f'"{numeric.SPECIAL[text]}"'
    assert numeric.as_double(text) == f'"{text}"'


@pytest.mark.parametrize(
    ("text", "digits", "double"),
    [
        ("$1,234.56", "1234.56", "1234.56"),
        ("-$0.01", "-0.01", "-0.01"),
        ("$0.00", "0.00", "0.0"),
        (
            "-$92,233,720,368,547,758.08",
            "-92233720368547758.08",
            "-9.223372036854776E16",
        ),
    ],
)
def test_money_is_its_digits(text: str, digits: str, double: str) -> None:
    assert numeric.money_text(text) == f'"{digits}"'
    assert numeric.money_double(text) == double


def test_money_is_rounded_half_up() -> None:
    whole = numeric.money(0, numeric.fixed(0, _fail))
    assert [whole(text) for text in ("$2.50", "-$2.50", "$2.49")] == [
        numeric.fixed(0, _fail)(text) for text in ("3", "-3", "2")
    ]
    assert numeric.money(3, numeric.fixed(3, _fail))("$1.50") == '"Bdw="'


@pytest.mark.parametrize(
    "render",
    [
        numeric.fixed(2, _fail),
        numeric.variable(_fail),
        numeric.as_text,
        numeric.as_double,
    ],
)
@pytest.mark.parametrize("text", ["", "-", "1_000", "0x1", "1e5", "1.2.3", "+1", "nan"])
def test_other_texts_are_refused(render: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match=r"not a number|more decimals"):
        render(text)


def test_money_of_more_digits_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        numeric.money(2, numeric.fixed(2, _fail))(f"${'9' * 40}.00")


def test_money_without_digits_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        numeric.money_text("$")


def test_more_decimals_than_the_type_has_are_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        numeric.fixed(2, _fail)("1.501")


_EDGES = sorted({(1 << bits) + step for bits in range(66) for step in (-1, 0, 1)})


@given(st.integers(-(1 << 66), 1 << 66) | st.sampled_from(_EDGES))
@example(0)
def test_a_number_is_the_fewest_bytes_of_twos_complement(number: int) -> None:
    size = 1
    while not -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
        size += 1
    raw = number.to_bytes(size, "big", signed=True)
    assert numeric.base64(number) == b64encode(raw).decode()


def test_each_size_meets_its_edges() -> None:
    for number in _EDGES:
        raw = number.to_bytes((number.bit_length() >> 3) + 1, "big")
        assert numeric.base64(number) == b64encode(raw).decode()
