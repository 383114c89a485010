"""When the figures of all sources are put into the log."""

import time

import pytest
from structlog.testing import capture_logs

from tests.unit.service.http.conftest import config
from walstream.config import Config
from walstream.service.stats_log import StatsLog
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.status import of_run

NOW = 1000.0


def every(interval_s: float) -> Config:
    return config().model_copy(update={"stats_interval": interval_s})


def test_they_are_due_an_interval_after_the_start_and_after_each() -> None:
    stats = StatsLog(every(60.0), NOW)
    assert [stats.is_due(NOW + 59), stats.is_due(NOW + 60)] == [False, True]
    snapshot = InstanceSnapshot(
        at=time.time(),
        made_at=NOW,
        pid=7,
        started_at=time.time(),
        stopping=False,
        log_level="info",
        sources={},
        away={},
        counted={},
    )
    with capture_logs() as said:
        stats.write(of_run(every(60.0), snapshot), NOW + 61)
    assert {one["event"] for one in said} == {"stats"}
    assert said[0]["line"].startswith("source=app ")
    assert [stats.is_due(NOW + 120), stats.is_due(NOW + 121)] == [False, True]


def test_without_an_interval_they_are_never_due() -> None:
    assert not StatsLog(every(0.0), NOW).is_due(NOW + 1e6)


@pytest.mark.parametrize(
    ("before_s", "after_s", "due_s"),
    [
        (600.0, 10.0, 110.0),  # a shorter one counts from the reload on
        (110.0, 600.0, 110.0),  # of a longer one the one that was near still comes
    ],
)
def test_another_interval_puts_nothing_off(
    before_s: float, after_s: float, due_s: float
) -> None:
    stats = StatsLog(every(before_s), NOW)
    stats.take(every(after_s), NOW + 100)
    assert [stats.is_due(NOW + due_s - 1), stats.is_due(NOW + due_s)] == [False, True]


def test_an_interval_of_none_ends_them() -> None:
    stats = StatsLog(every(10.0), NOW)
    stats.take(every(0.0), NOW + 5)
    assert not stats.is_due(NOW + 100)
