"""Which source a group may go on with."""

import pytest

from consumer.group.assigned_partition import Place
from consumer.state.source import AcceptSource, accepts, foreign_source


@pytest.mark.parametrize(
    ("accepted", "named", "goes_on"),
    [
        (None, "1/db/3", False),
        ("1/db/3", "1/db/3", True),
        ("1/db/2", "1/db/3", False),
        (True, "1/db/3", True),
        (True, "9/db/0", True),
        (True, "1/db/1", False),  # an earlier history: a replay
        (True, "1/db/2", True),
        (True, "1/db/none", True),  # it is not known which is the earlier one
    ],
)
def test_only_what_is_accepted_goes_on(
    accepted: AcceptSource, named: str, *, goes_on: bool
) -> None:
    assert accepts(accepted, "1/db/2", named) is goes_on


def test_a_source_of_which_no_history_is_known_has_no_earlier_one() -> None:
    assert accepts(True, "1/db/none", "1/db/1")


def test_the_error_tells_both_ways_out() -> None:
    error = foreign_source("it's", Place("t", 1), 7, "1/db/0", "1/db/1")
    assert 'accept_source="1/db/1"' in error.hint
    assert "group_id = 'it''s' AND topic = 't';" in error.repair.sql
    assert error.repair.sql.count("DELETE FROM") == 3
