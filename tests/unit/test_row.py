"""Values that were not sent never look like NULL."""

import orjson
import pytest

from walstream.row import OMITTED, UNCHANGED, NotSent, any_absent


def test_what_was_not_sent_prints_as_its_name() -> None:
    assert (repr(UNCHANGED), repr(OMITTED)) == ("UNCHANGED", "OMITTED")


def test_null_and_empty_text_were_sent() -> None:
    assert not any_absent([None, ""])
    assert not any_absent([])
    assert not any_absent(None)


@pytest.mark.parametrize("value", [UNCHANGED, OMITTED])
def test_one_absent_value_makes_a_row_absent(value: NotSent) -> None:
    assert any_absent(["1", value])


@pytest.mark.parametrize("value", [UNCHANGED, OMITTED])
def test_no_encoder_takes_an_absent_value_for_a_text(value: NotSent) -> None:
    with pytest.raises(TypeError):
        orjson.dumps([value])
