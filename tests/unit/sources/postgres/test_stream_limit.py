"""A lag that grows under a limit is said once; an open transaction has its time."""

import pytest
from structlog.testing import capture_logs

from tests.support.runtime import altered
from tests.unit.pipeline.test_rate_limit import Limited, frame, rows
from walstream.config import Config
from walstream.sources.postgres.stream_limit import LimitWatch, limit_of


class Watched:
    """A watch over a limit that holds, and looks every ten seconds."""

    def __init__(self) -> None:
        self.limited = Limited(rows=10)
        self.watch = LimitWatch(self.limited.limit, lambda: self.limited.now)

    def look(self, lag: int | None, *, held: bool = True) -> list[str]:
        self.limited.after(10, rows(50 if held else 0))
        self.limited.now += 0.01
        with capture_logs() as said:
            self.watch.see("s", lag)
        return [one["event"] for one in said]


def test_a_lag_that_grows_while_it_is_held_is_said_once() -> None:
    watched = Watched()
    assert [watched.look(lag) for lag in (1000, 2000)] == [[], []]
    (said,) = watched.look(1 << 20)
    assert said.startswith("max_rows_per_second holds the stream while its lag grows")
    assert watched.look(2 << 20) == []
    assert watched.look(0, held=False) == []  # the last hold ended since then
    assert watched.look(0, held=False) == ["the stream is no longer held by a limit"]
    assert watched.look(0, held=False) == []


def test_a_lag_that_shrinks_is_no_news() -> None:
    watched = Watched()
    assert [watched.look(lag) for lag in (3000, 2000, 1000, None)] == [[]] * 4


def test_a_lag_without_a_hold_is_no_news() -> None:
    watched = Watched()
    assert [watched.look(lag, held=False) for lag in (1, 2, 3, 4)] == [[]] * 4


def config(sink: dict[str, object], **source: object) -> Config:
    producer = {"bootstrap.servers": "localhost:9092"}
    return Config.model_validate(
        {
            "sources": {
                "app": {
                    "kind": "postgres",
                    "dsn": "postgresql://localhost/app",
                    "sinks": ["kafka"],
                    **source,
                }
            },
            "sinks": {"kafka": {"kind": "kafka", "producer": producer, **sink}},
        }
    )


def test_a_source_without_a_limit_has_none() -> None:
    found = config({})
    assert limit_of(found, found.postgres_source("app")) is None


@pytest.mark.parametrize(
    ("delivery", "passed"), [("idempotent", 1), ("transactional", 50)]
)
def test_a_transaction_in_kafkas_is_held_for_a_part_of_its_time(
    delivery: str, passed: int
) -> None:
    now = [100.0]
    with altered(monotonic=lambda: now[0]):
        found = config({"delivery": delivery}, max_rows_per_second=1)
        limit = limit_of(found, found.postgres_source("app"))
        assert limit is not None
        assert limit.take([frame("B"), *rows(2)], 0) == 2
        now[0] += 15.1  # of the sixty for which it may be open
        assert limit.take(rows(50), 0) == passed


def test_sizes_are_written_as_others() -> None:
    source = config({}, max_bytes_per_second="10MiB").postgres_source("app")
    assert source.max_bytes_per_second == 10 << 20
