"""A polled source is what its worker tells, else what was stored; and why it is red."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from walstream.config import SqlSource
from walstream.errors import StateDamaged
from walstream.sources.report import (
    ErrorReport,
    PollReport,
    SinkReport,
    TableReport,
    WorkerReport,
)
from walstream.status.sql import (
    PolledState,
    StoredPolls,
    beyond_table,
)
from walstream.status.worker_state import WorkerState

SOURCE = SqlSource.model_validate(
    {
        "kind": "sql",
        "url": "sqlite:///x",
        "sinks": ["rows"],
        "tables": {"t": {"primary_key": "id"}},
    }
)
STORED = TableReport(
    key=12,
    rows=9,
    at=40.0,
    gaps=1,
    missing_keys=3,
    oldest_gap=30.0,
    given_up=2,
)


def state(
    stored: TableReport | None = None, told: WorkerState | None = None
) -> PolledState:
    return PolledState(SOURCE, StoredPolls({"t": stored} if stored else {}), told)


def polling(**table: Any) -> WorkerState:
    report = PollReport(tables={"t": replace(STORED, **table)})
    return WorkerState(report=WorkerReport(state="polling", source=report), pid=7)


def starting(**sinks: SinkReport) -> WorkerState:
    return WorkerState(report=WorkerReport(source=PollReport(sinks=sinks)), pid=7)


def test_at_rest_what_was_stored_is_told() -> None:
    at_rest = state(STORED)
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
    running = state(STORED, told)
    assert running.state() == ("polling", 0)
    table = running.tables()["t"]
    assert (table.position, table.rows_per_s) == (20, 5.0)
    assert table.low_water_mark == datetime.fromtimestamp(50, UTC)


def test_what_a_worker_does_not_tell_yet_is_what_was_stored() -> None:
    begins = state(STORED, starting())
    assert begins.state() == ("starting", 0)
    assert begins.tables()["t"].position == 12


def test_a_mark_of_which_nothing_is_known_is_none() -> None:
    assert state(STORED, polling(low=0)).tables()["t"].low_water_mark is None
    table = state(STORED, polling(low=None, lacks_mark="no right")).tables()["t"]
    assert (table.low_water_mark, table.lacks_mark) == (None, "no right")


def test_a_row_that_no_topic_takes_is_red_while_it_lasts_and_at_rest() -> None:
    for held_up in (
        state(replace(STORED, error="too large")),
        state(STORED, polling(error="too large")),
    ):
        name, code = held_up.state()
        assert code == 5
        assert list(held_up.problems(name)) == ["blocked: too large"]


def test_what_ended_it_is_not_said_twice() -> None:
    error = ErrorReport(error="too large", final=True, exit_code=3)
    kept = StoredPolls({"t": replace(STORED, error="too large")}, error=error)
    assert list(PolledState(SOURCE, kept, None).problems("failed")) == ["too large"]


def test_a_sink_that_waits_for_kafka_is_red_until_rows_flow() -> None:
    sinks = {"rows": SinkReport(waiting=True), "more": SinkReport()}
    begins = state(STORED, starting(**sinks))
    assert begins.state() == ("starting", 5)
    assert list(begins.problems("starting")) == ["sink 'rows' waits for Kafka"]
    report = WorkerReport(state="polling", source=PollReport(sinks=sinks))
    flowing = state(STORED, WorkerState(report=report, pid=7))
    assert flowing.state() == ("polling", 0)


def test_a_full_ledger_is_red() -> None:
    held = state(STORED, polling(held=True, gaps=100_000))
    assert held.state() == ("polling", 5)
    (problem,) = held.problems("polling")
    assert "table 't': no new rows are read: 100,000 gaps" in problem


def test_what_stopped_it_is_worse_than_what_holds_up_a_table() -> None:
    error = ErrorReport(error="no such table", final=True, exit_code=2)
    kept = StoredPolls({"t": replace(STORED, held=True)}, error=error)
    stopped = PolledState(SOURCE, kept, None)
    assert stopped.state() == ("failed", 2)
    assert next(stopped.problems("failed")) == "no such table"


def test_a_folder_that_cannot_be_believed_is_a_failure() -> None:
    damaged = PolledState(
        SOURCE, StoredPolls(problem=StateDamaged("it is damaged")), None
    )
    assert damaged.state() == ("failed", 3)
    assert list(damaged.problems("failed")) == ["it is damaged"]


@pytest.mark.parametrize(("position", "newest"), [(None, 3), (3, None), (3, 3), (3, 4)])
def test_a_position_that_no_row_is_below_is_fine(
    position: int | None, newest: int | None
) -> None:
    assert beyond_table("t", position, newest) is None
