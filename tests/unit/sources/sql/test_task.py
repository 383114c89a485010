"""What becomes of a range that did not get through; tests/integration reads rows."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from walstream.errors import PermissionLacking, Restart, Transient, WalstreamError
from walstream.kafka.bulk_producer import Outgoing
from walstream.kafka.bulk_producer_pool import BulkProducerPool
from walstream.kafka.errors import SizeRefused
from walstream.sources.sql import task as tasks
from walstream.sources.sql.table_reader import TableReader
from walstream.sources.sql.task import Ahead, PollTask, Range, RowTarget
from walstream.spark.outcome import ChunkFailed, ChunkRefused, refusal

PART = Range(7, "t", Ahead(0, 9))
TARGET = RowTarget(Outgoing("k", {"acks": "all"}), "t", 1, 70, "murmur2")
TASK = PollTask(
    "app", "t", cast("TableReader", None), (TARGET,), secrets=frozenset({"s3cret"})
)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[WalstreamError], PollTask]:
    """Make a task whose attempts raise this."""
    monkeypatch.setattr(tasks, "_AGAIN_S", 0.0)

    def do(error: WalstreamError) -> PollTask:
        def attempt(*_: Any) -> Any:
            raise error

        monkeypatch.setattr(tasks, "_Attempt", attempt)
        return TASK

    return do


def test_what_passes_is_tried_by_spark_and_what_lasts_is_not(
    failing: Callable[[WalstreamError], PollTask],
) -> None:
    with pytest.raises(ChunkFailed, match=r"\*\*\*"):
        failing(Transient("refused to s3cret"))(PART)
    outcome = failing(PermissionLacking("the password"))(PART)
    assert isinstance(outcome, ChunkRefused)
    assert type(outcome.error) is PermissionLacking


def test_a_size_that_brokers_refuse_is_settled_first(
    failing: Callable[[WalstreamError], PollTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def settled(error: WalstreamError, written: Any) -> WalstreamError:
        asked.append((type(error), list(written)))
        return Restart("the topic takes less")

    monkeypatch.setattr(tasks, "settled", settled)
    task = failing(SizeRefused("too large"))
    outcome = task(PART)
    assert isinstance(outcome, ChunkRefused)
    assert isinstance(refusal(outcome), Restart), "Spark does not try it again"
    with pytest.raises(Restart):
        task.here(PART, lambda: None, BulkProducerPool())
    assert asked == [(SizeRefused, [({"acks": "all"}, {"t": 70})])] * 2
