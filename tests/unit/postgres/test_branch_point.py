"""Branches of a server's timelines, as its history file tells them."""

from dataclasses import replace

import pytest

from tests.unit.postgres.test_start_table import SERVER
from walstream.errors import HistoryError, Transient
from walstream.postgres.branch_point import branches_of, check_former, left_at


def test_each_older_timeline_was_left_at_its_own_place() -> None:
    found = branches_of("1\t0/300\tno recovery target\n\n# a word\n2\t0/400\n")
    assert found == {1: 0x300, 2: 0x400}


def test_a_later_timeline_is_waited_for_and_an_unknown_one_stops() -> None:
    server = replace(SERVER, timeline=3)
    assert left_at("app", 1, server, {1: 0x300}) == 0x300
    with pytest.raises(HistoryError, match="timeline 2, which is not in the history"):
        left_at("app", 2, server, {1: 0x300})
    with pytest.raises(Transient, match="it is a former primary"):
        left_at("app", 4, server, {1: 0x300})
    check_former(3, server)
