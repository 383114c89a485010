"""What is stored of a table is what is read again."""

import time
from dataclasses import replace

import pytest

from walstream.config import PolledTable
from walstream.errors import StateDamaged, WalstreamError
from walstream.sources.report import TableReport
from walstream.sources.sql.progress import (
    GapBounds,
    Horizon,
    TableProgress,
    Trouble,
    bounds_of,
)
from walstream.testing import MemoryStore

BOUNDS = GapBounds(3600.0, 2)


def progress(positions: MemoryStore) -> TableProgress:
    return TableProgress(positions, "t", BOUNDS, lambda: 50.0)


def test_nothing_is_known_of_a_table_before_its_first_poll() -> None:
    found = progress(MemoryStore()).report()
    assert (found.key, found.at, found.oldest_gap) == (None, None, None)
    assert (found.rows, found.missing_keys, found.given_up) == (0, 0, 0)
    assert (found.held, found.error) == (False, "")


def test_what_was_stored_is_reported_after_a_restart() -> None:
    positions = MemoryStore()
    before = progress(positions)
    before.key, before.given_up = 12, 3
    before.trouble = Trouble("too large", "raise it", "do this")
    before.gaps.note([(4, 6), (8, 8)], 40.0, 7)
    before.delivered(8)
    before.store()
    found = progress(positions).report()
    # people are told by the wall clock
    assert found.oldest_gap is not None
    assert time.time() - found.oldest_gap == pytest.approx(10, abs=5)
    assert found.at == pytest.approx(time.time(), abs=60)
    assert replace(found, oldest_gap=None, at=None) == TableReport(
        key=12,
        rows=8,
        gaps=2,
        missing_keys=4,
        given_up=3,
        held=True,
        error="too large",
        hint="raise it",
        repair="do this",
    )


def test_a_delivery_of_nothing_is_none() -> None:
    found = progress(MemoryStore())
    found.delivered(0)
    assert found.at is None


def test_a_ledger_that_cannot_be_read_is_damage_with_the_way_out() -> None:
    positions = MemoryStore()
    positions.write({"poll/t": {"key": 1, "gaps": [["x"]]}})
    with pytest.raises(StateDamaged, match="missing keys of table 't'") as raised:
        progress(positions)
    assert "positions reset" in raised.value.hint


def test_the_bounds_are_those_of_the_configuration() -> None:
    rules = PolledTable.model_validate(
        {"primary_key": "id", "gap_timeout": "1min", "max_gaps": 7}
    )
    assert bounds_of(rules) == GapBounds(60.0, 7)


def test_a_rewind_forgets_what_will_be_read_again_and_keeps_the_rest() -> None:
    positions = MemoryStore()
    found = progress(positions)
    found.key = 20
    found.gaps.note([(4, 6), (9, 12), (15, 15)], 40.0, None)
    found.rewind(10)
    after = progress(positions).report()
    assert (after.key, after.missing_keys) == (10, 5)


def test_a_rewind_that_would_skip_rows_is_a_defect() -> None:
    found = progress(MemoryStore())
    with pytest.raises(WalstreamError, match="not below the stored None"):
        found.rewind(1)
    found.key = 20
    with pytest.raises(WalstreamError, match="key 21 is not below the stored 20"):
        found.rewind(21)


def test_what_waits_for_an_operator_goes_on_with_a_rewind_to_where_it_is() -> None:
    positions = MemoryStore()
    found = progress(positions)
    found.key, found.origin, found.trouble = 20, "1 2 3", Trouble("they start anew")
    found.rewind(20)
    again = progress(positions)
    assert (again.key, again.origin, again.trouble) == (20, "", Trouble())


def test_a_table_that_begins_anew_has_no_gaps_of_before() -> None:
    positions = MemoryStore()
    found = progress(positions)
    found.key, found.horizon = 20, Horizon(30, 1.0)
    found.gaps.note([(4, 6)], 40.0, None)
    found.begin_anew(0)
    again = progress(positions)
    assert (again.key, again.horizon, len(again.gaps)) == (0, None, 0)


def test_keys_of_another_column_start_again() -> None:
    positions = MemoryStore()
    before = TableProgress(positions, "t", BOUNDS, lambda: 50.0, column="id")
    before.key = 200
    before.gaps.note([(4, 6)], 40.0, None)
    before.store()
    for _ in range(2):  # it is not forgotten with the first store
        found = TableProgress(positions, "t", BOUNDS, lambda: 50.0, column="seq")
        assert (found.restarted, found.former) == (True, "id")
        found.store()
    found.rewind(50)
    found = TableProgress(positions, "t", BOUNDS, lambda: 50.0, column="seq")
    assert (found.restarted, found.former, found.key) == (False, "", 50)
    # the column may have another name alone: then these are still to come
    assert len(found.gaps) == 1


@pytest.mark.parametrize(("stored", "key"), [("", 200), ("id", None)])
def test_a_position_of_no_known_column_is_of_any(stored: str, key: int | None) -> None:
    positions = MemoryStore()
    before = TableProgress(positions, "t", BOUNDS, lambda: 50.0, column=stored)
    before.key = key
    before.store()
    found = TableProgress(positions, "t", BOUNDS, lambda: 50.0, column="seq")
    assert not found.restarted
