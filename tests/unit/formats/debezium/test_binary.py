"""bytea and bit strings in each form."""

import pytest

from walstream.formats.debezium import binary
from walstream.formats.debezium.spatial import java_shape


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("bytes", '"+/8A"'),
        ("base64", '"+/8A"'),
        ("base64-url-safe", '"-_8A"'),
        ("hex", '"fbff00"'),
    ],
)
def test_a_bytea_is_written_in_each_form(form: str, written: str) -> None:
    assert binary.bytea(binary.FORMS[form])("\\xfbff00") == written


def test_a_text_without_a_form_is_its_bytes() -> None:
    assert binary.opaque(binary.FORMS["hex"])("é") == '"c3a9"'
    line = binary.opaque(binary.FORMS["base64"], java_shape)
    assert line("{1,2,3}") == '"ezEuMCwyLjAsMy4wfQ=="'  # as in Debezium


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("101", '"BQ=="'),
        ("10101", '"FQ=="'),
        ("1000000000", '"AAI="'),
        ("000", '""'),
        ("", '""'),
    ],
)
def test_bits_are_bytes_the_last_one_first(text: str, written: str) -> None:
    assert binary.bits(text) == written


def test_one_bit_is_a_boolean() -> None:
    assert [binary.bit(text) for text in "01"] == ["false", "true"]


@pytest.mark.parametrize("text", ["x", "00ff", "\\x0", "2"])
def test_other_texts_are_refused(text: str) -> None:
    for render in (binary.bytea(binary.FORMS["hex"]), binary.bits, binary.bit):
        if render is binary.bits and text == "00ff":
            continue
        with pytest.raises(ValueError, match=r"."):
            render(text)
