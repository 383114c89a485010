"""Values of JSON."""

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from walstream.formats.encodings import json_value


@given(number=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_has_the_fewest_digits_that_mean_it(number: float) -> None:
    found = json_value.single(number)
    assert isinstance(found, float)
    assert struct.pack("f", found) == struct.pack("f", number)
    assert len(repr(found)) <= len(repr(number))


def test_what_is_no_number_is_a_word() -> None:
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    for number, word in words.items():
        assert json_value.double(number) == json_value.single(number) == word
    assert json_value.double(math.nan) == json_value.single(math.nan) == "NaN"
    assert json_value.double(0.1) == 0.1
    assert json_value.base64(b"\0\xff") == "AP8="
