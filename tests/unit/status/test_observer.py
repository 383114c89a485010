"""What a worker told stands for what nobody asks."""

from dataclasses import replace
from pathlib import Path

import pytest

from walstream.config import Config, KafkaSource, PostgresSource, load
from walstream.postgres.slot_health import SlotHealth
from walstream.sources.figures import RelayFigures
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.detached.detached_sink import AWAY, BACK
from walstream.sources.report import (
    BackfillLeft,
    DetachedReport,
    ErrorReport,
    RelayReport,
    SourceReport,
    StreamReport,
    WorkerReport,
)
from walstream.status.observer import ReportObserver
from walstream.status.worker_state import WorkerState

_FILE = """
[sources.app]
kind = "postgres"
dsn = "postgresql://localhost/shop"
sinks = ["rows"]
[sinks.rows]
kind = "log"
"""
_BROKERS = {"bootstrap.servers": "localhost:9092"}
_HEALTH = SlotHealth(7, "reserved", None, 100)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "walstream.toml"
    file.write_text(_FILE)
    return load(file)


def told(source: SourceReport | None = None) -> WorkerState:
    return WorkerState(report=WorkerReport(source=source))


def postgres(config: Config) -> PostgresSource:
    return config.postgres_source("app")


@pytest.mark.parametrize(
    ("received", "flush_lsn"), [(None, 100), (90, 100), (120, 120)]
)
def test_what_was_streamed_since_the_server_had(
    config: Config, received: int | None, flush_lsn: int
) -> None:
    worker = told(StreamReport(health=_HEALTH, received=received))
    health, error = ReportObserver(config, {}).health(postgres(config), worker)
    assert error is None
    assert health is not None
    assert (health.flush_lsn, health.retained_wal) == (flush_lsn, 7)


def test_a_worker_that_did_not_ask_yet_tells_of_no_slot(config: Config) -> None:
    assert ReportObserver(config, {}).health(postgres(config), told()) == (None, None)


@pytest.mark.parametrize(
    ("worker", "stale"),
    [
        (WorkerState(pid=1), False),
        (WorkerState(pid=1, silent=True), True),
        (WorkerState(), True),
    ],
)
def test_a_worker_that_is_gone_or_silent_tells_of_the_past(
    config: Config, worker: WorkerState, stale: bool
) -> None:
    assert ReportObserver(config, {}).stale(worker) is stale


def test_detached_sinks_are_told_of_by_their_own_workers(config: Config) -> None:
    note = DetachedReport(AWAY, "s_rows", 1.0, "it lags")
    away = {"rows": note, "back": replace(note, phase=BACK)}
    own = WorkerReport(
        error=ErrorReport(error="full"), source=StreamReport(health=_HEALTH)
    )
    eyes = ReportObserver(config, {"app/rows": WorkerState(report=own)})
    kept = eyes.kept("app", told(StreamReport(away=away)))
    found = eyes.away(postgres(config), "app", kept)
    assert found.keys() == {"rows"}
    assert (found["rows"].retained_wal, found["rows"].error) == (7, "full")


def test_of_a_group_the_worker_alone_tells(config: Config) -> None:
    source = KafkaSource.model_validate(
        {"kind": "kafka", "topics": ["t"], "sinks": ["rows"], "consumer": _BROKERS}
    )
    kept, group = ReportObserver(config, {}).chained(
        "up", source, told(RelayReport(ops=3))
    )
    assert kept.figures == RelayFigures(ops=3)
    assert not group.asked


def test_what_is_left_of_a_backfill_is_what_its_worker_keeps(config: Config) -> None:
    record = BackfillProgress(9, ("public.a",), rows=3, failed={"public.b": "broken"})
    left = BackfillLeft(9, ("public.a",), rows=3, failed={"public.b": "broken"})
    worker = told(StreamReport(backfill_record=left))
    assert ReportObserver(config, {}).kept("app", worker).backfill == record
    assert ReportObserver(config, {}).kept("app", told()).backfill is None
