"""Which data exceptions of a stream come again for ever, and what is said of them."""

import pytest

from tests.support.postgres_error import server_error
from walstream.errors import HistoryError
from walstream.postgres.unreadable_row import is_unreadable, stop


@pytest.mark.parametrize(
    ("state", "for_ever"),
    [
        ("22P05", True),
        ("22021", True),
        ("22012", True),
        ("22003", True),
        ("22023", False),  # of a setting: a slot that is not there, for one
        ("53200", False),
        ("57P01", False),
        ("58P01", False),
        ("XX000", False),
    ],
)
def test_data_that_cannot_be_decoded_never_passes(
    state: str, *, for_ever: bool
) -> None:
    assert is_unreadable(server_error(state, "words")) is for_ever


def test_the_stop_names_where_and_what_to_do_and_no_value() -> None:
    said = 'value "secret" is out of range for type integer\nmore'
    error = stop(server_error("22003", said), 0x1_0000_00AB)
    assert isinstance(error, HistoryError)
    assert str(error.args[0]) == (
        "streaming: a change after 1/AB cannot be sent, because the server cannot "
        'print or filter a row in it: value "…" is out of range for type integer '
        "(22003)"
    )
    assert "row filter" in error.hint
    assert error.repair.command.startswith("walstream positions reset")


def test_encodings_are_no_values() -> None:
    said = (
        'character with byte sequence 0x81 in encoding "WIN1252" has no equivalent in '
        'encoding "UTF8"'
    )
    error = stop(server_error("22P05", said), 1)
    assert said in str(error.args[0])
    assert "Correct the row's text" in error.hint
