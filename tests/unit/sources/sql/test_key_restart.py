"""Which keys show that they start anew, and what the operator is told."""

import pytest
from structlog.testing import capture_logs

from walstream.errors import Transient
from walstream.sources.sql.key_restart import (
    Behind,
    KeyExtent,
    KeyWatch,
    are_restarted,
    beginning,
    error,
    is_another,
)
from walstream.sources.sql.progress import GapBounds, TableProgress
from walstream.testing import MemoryStore, Reject, faulty


@pytest.mark.parametrize(
    ("newest", "following", "restarted"),
    [
        (20, None, False),
        (21, None, False),
        (3, None, True),  # TRUNCATE and three rows; or the last rows were deleted
        (None, None, False),  # all rows were deleted: nothing shows a restart
        (3, 4, True),
        (3, 20, True),  # the next one is given out again
        (3, 21, False),  # the last rows were deleted: keys go on
        (None, 21, False),
        (None, 1, True),  # TRUNCATE ... RESTART IDENTITY
    ],
)
def test_the_engines_next_key_decides_else_the_greatest_one(
    newest: int | None, following: int | None, restarted: bool
) -> None:
    assert are_restarted(20, KeyExtent(None, newest, following)) == restarted


@pytest.mark.parametrize(
    ("before", "now", "another"),
    [
        ("", "7 8 9", False),
        ("7 8 9", "", False),
        ("7 8 9", "7 8 9", False),
        ("7 8 9", "7 10 9", True),  # RESTART
        ("7 8 9", "7 10 11", False),  # altered: another type, another cache
        ("7 8 9", "12 13 9", True),  # another table
        ("7 8 9", "12 13 14", True),
    ],
)
def test_a_sequence_that_only_has_other_settings_is_the_same(
    before: str, now: str, another: bool
) -> None:
    assert is_another(before, now) == another


def test_the_command_reads_all_that_is_there() -> None:
    found = error("a b", 20, KeyExtent(1, 3, 4))
    assert found.repair.command == (
        "walstream positions rewind {source} --table 'a b' --to 0"
    )
    assert "its greatest key is 3, and its position 20" in str(found)
    assert "or to 3 to send only rows that come from now on" in found.hint


def test_a_table_of_negative_keys_is_read_from_below_its_first() -> None:
    assert beginning(KeyExtent(-7, 3, None)) == -8
    assert beginning(KeyExtent(None, None, 1)) == 0


def test_keys_that_have_grown_past_the_position_are_said_to_be_of_another_table() -> (
    None
):
    found = error("t", 20, KeyExtent(1, 300, None))
    assert "was created again" in str(found)
    assert "or to 20 to send only rows of higher keys" in found.hint


def test_a_replica_is_waited_for_ten_minutes() -> None:
    now = [0.0]
    behind = Behind(lambda: now[0])
    behind.see(behind=True)
    now[0] = 599
    behind.see(behind=True)
    with pytest.raises(Transient, match="table 't'"):
        behind.wait("t")
    behind.see(behind=False)
    behind.see(behind=True)
    now[0] = 1198
    with pytest.raises(Transient):
        behind.wait("t")
    now[0] = 1199
    behind.wait("t")


def test_a_position_of_another_column_is_named() -> None:
    found = error("t", 200, KeyExtent(51, 150, 151), "id")
    assert "the position is of the column 'id'" in str(found)
    assert found.repair.command.endswith("--to 0")


class Restarted:
    """A table whose keys start again at 1."""

    def oldest(self) -> int | None:
        return 1

    def next_key(self) -> int | None:
        return 4

    def is_replica(self) -> bool:
        return False

    def origin(self) -> str:
        return ""


def test_known_keys_are_forgotten_though_the_restart_cannot_be_stored() -> None:
    """The next poll finds no restart: what never came of the former table may come."""
    lost = Transient("cannot write: ENOSPC")
    positions = faulty(MemoryStore(), write=[None, Reject(lost)])
    progress = TableProgress(positions, "t", GapBounds(3600.0, 9))
    progress.key = 20
    progress.store()
    forgotten: list[int | None] = []
    watch = KeyWatch(
        "t", progress, lambda: forgotten.append(progress.key), rereads=True
    )
    with capture_logs() as logs, pytest.raises(Transient):
        watch.see(Restarted(), 3)
    assert forgotten == [20]
    assert "its keys start again" in logs[0]["event"]
