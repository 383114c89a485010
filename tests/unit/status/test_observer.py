"""What a worker told stands for what nobody asks."""

from pathlib import Path
from typing import Any

import pytest

from walstream.config import Config, KafkaSource, PostgresSource, load
from walstream.sources.postgres.detached.record import AWAY, BACK
from walstream.status.observer import ToldEyes

_FILE = """
[sources.app]
kind = "postgres"
dsn = "postgresql://localhost/shop"
sinks = ["rows"]
[sinks.rows]
kind = "log"
"""
_BROKERS = {"bootstrap.servers": "localhost:9092"}
_HEALTH = {
    "retained_wal": 7,
    "wal_status": "reserved",
    "safe_wal_size": None,
    "flush_lsn": 100,
    "lost": None,
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "walstream.toml"
    file.write_text(_FILE)
    return load(file)


def postgres(config: Config) -> PostgresSource:
    return config.postgres_source("app")


@pytest.mark.parametrize(
    ("received", "flush_lsn"), [(None, 100), (90, 100), (120, 120)]
)
def test_what_was_streamed_since_the_server_had(
    config: Config, received: int | None, flush_lsn: int
) -> None:
    told = {"health": _HEALTH, "received": received}
    health, error = ToldEyes(config).health(postgres(config), told)
    assert error is None
    assert health is not None
    assert (health.flush_lsn, health.retained_wal) == (flush_lsn, 7)


def test_a_worker_that_did_not_ask_yet_tells_of_no_slot(config: Config) -> None:
    assert ToldEyes(config).health(postgres(config), {}) == (None, None)


@pytest.mark.parametrize(
    ("told", "stale"),
    [
        ({"pid": 1, "silent": False}, False),
        ({"pid": 1, "silent": True}, True),
        ({"pid": None, "silent": False}, True),
    ],
)
def test_a_worker_that_is_gone_or_silent_tells_of_the_past(
    config: Config, told: dict[str, Any], stale: bool
) -> None:
    assert ToldEyes(config).stale(told) is stale


def test_detached_sinks_are_told_of_by_their_own_workers(config: Config) -> None:
    note = {"slot": "s_rows", "since": 1.0, "why": "it lags"}
    told = {
        "away": {"rows": {**note, "phase": AWAY}, "back": {**note, "phase": BACK}},
        "workers_away": {"app/rows": {"health": _HEALTH, "error": {"error": "full"}}},
    }
    eyes = ToldEyes(config)
    found = eyes.away(postgres(config), "app", eyes.kept("app", told), told)
    assert found.keys() == {"rows"}
    assert (found["rows"].retained_wal, found["rows"].error) == (7, "full")


def test_of_a_group_the_worker_alone_tells(config: Config) -> None:
    source = KafkaSource.model_validate(
        {"kind": "kafka", "topics": ["t"], "sinks": ["rows"], "consumer": _BROKERS}
    )
    kept, group = ToldEyes(config).chained("up", source, {"ops": 3})
    assert kept.figures == {"ops": 3}
    assert not group.asked
