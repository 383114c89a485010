"""A polled source is what its worker tells, else what was stored; and why it is red."""

from datetime import UTC, datetime
from typing import Any

import pytest

from walstream.config import SqlSource
from walstream.errors import StateDamaged
from walstream.status.sql import (
    Kept,
    PolledState,
    beyond_table,
)

SOURCE = SqlSource.model_validate(
    {
        "kind": "sql",
        "url": "sqlite:///x",
        "sinks": ["rows"],
        "tables": {"t": {"primary_key": "id"}},
    }
)
STORED = {
    "key": 12,
    "rows": 9,
    "at": 40.0,
    "gaps": 1,
    "missing_keys": 3,
    "oldest_gap": 30.0,
    "given_up": 2,
    "held": False,
    "error": "",
}
ALIVE = {"exit_code": None, "lent": False, "silent": False, "pid": 7}


def state(
    stored: dict[str, Any] | None = None, told: dict[str, Any] | None = None
) -> PolledState:
    tables = {} if stored is None else {"t": {**STORED, **stored}}
    return PolledState(SOURCE, Kept(tables), told or {})


def polling(**table: Any) -> dict[str, Any]:
    return {**ALIVE, "state": "polling", "tables": {"t": {**STORED, **table}}}


def test_at_rest_what_was_stored_is_told() -> None:
    at_rest = state({})
    assert at_rest.state() == ("stopped", 0)
    assert not list(at_rest.problems("stopped"))
    table = at_rest.tables()["t"]
    assert (table.position, table.rows, table.given_up) == (12, 9, 2)
    assert (table.missing_keys, table.gaps) == (3, 1)
    assert table.last_row_at == datetime.fromtimestamp(40, UTC)
    assert table.oldest_gap_at == datetime.fromtimestamp(30, UTC)
    assert (table.rows_per_s, table.low_water_mark) == (None, None)


def test_a_source_that_was_never_polled_is_new() -> None:
    assert state().state() == ("new", 0)
    assert state().tables()["t"].position is None


def test_what_a_worker_tells_is_newer() -> None:
    told = polling(key=20, rows_per_s=5.0, low=50_000_000, lacks_mark="")
    running = state({}, told)
    assert running.state() == ("polling", 0)
    table = running.tables()["t"]
    assert (table.position, table.rows_per_s) == (20, 5.0)
    assert table.low_water_mark == datetime.fromtimestamp(50, UTC)


def test_what_a_worker_does_not_tell_yet_is_what_was_stored() -> None:
    starting = state({}, {**ALIVE, "tables": {}})
    assert starting.state() == ("starting", 0)
    assert starting.tables()["t"].position == 12


def test_a_mark_of_which_nothing_is_known_is_none() -> None:
    assert state({}, polling(low=0)).tables()["t"].low_water_mark is None
    table = state({}, polling(low=None, lacks_mark="no right")).tables()["t"]
    assert (table.low_water_mark, table.lacks_mark) == (None, "no right")


def test_a_row_that_no_topic_takes_is_red_while_it_lasts_and_at_rest() -> None:
    for held_up in (
        state({"error": "too large"}),
        state({}, polling(error="too large")),
    ):
        name, code = held_up.state()
        assert code == 5
        assert list(held_up.problems(name)) == ["held up: too large"]


def test_what_ended_it_is_not_said_twice() -> None:
    error = {"error": "too large", "final": True, "exit_code": 3}
    kept = Kept({"t": {**STORED, "error": "too large"}}, error=error)
    assert list(PolledState(SOURCE, kept, {}).problems("failed")) == ["too large"]


def test_a_sink_that_waits_for_kafka_is_red_until_rows_flow() -> None:
    sinks = {"rows": {"waiting": True}, "more": {"waiting": False}}
    starting = state({}, {**ALIVE, "state": "starting", "sinks": sinks})
    assert starting.state() == ("starting", 5)
    assert list(starting.problems("starting")) == ["sink 'rows' waits for Kafka"]
    flowing = state({}, {**polling(), "sinks": sinks})
    assert flowing.state() == ("polling", 0)


def test_a_full_ledger_is_red() -> None:
    held = state({}, polling(held=True, gaps=100_000))
    assert held.state() == ("polling", 5)
    (problem,) = held.problems("polling")
    assert "table 't': no new rows are read: 100,000 gaps" in problem


def test_what_stopped_it_is_worse_than_what_holds_up_a_table() -> None:
    error = {"error": "no such table", "final": True, "exit_code": 2}
    kept = Kept({"t": {**STORED, "held": True}}, error=error)
    stopped = PolledState(SOURCE, kept, {})
    assert stopped.state() == ("failed", 2)
    assert next(stopped.problems("failed")) == "no such table"


def test_a_folder_that_cannot_be_believed_is_a_failure() -> None:
    damaged = PolledState(SOURCE, Kept(problem=StateDamaged("it is damaged")), {})
    assert damaged.state() == ("failed", 3)
    assert list(damaged.problems("failed")) == ["it is damaged"]


@pytest.mark.parametrize(("position", "newest"), [(None, 3), (3, None), (3, 3), (3, 4)])
def test_a_position_that_no_row_is_below_is_fine(
    position: int | None, newest: int | None
) -> None:
    assert beyond_table("t", position, newest) is None
