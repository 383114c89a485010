"""What becomes of a chunk that did not get through: who is to blame decides."""

import pickle
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from walstream.config import Config
from walstream.errors import PermissionLacking, Restart, Transient, WalstreamError
from walstream.formats.context import Context
from walstream.kafka.bulk_producer import Outgoing
from walstream.kafka.errors import SizeRefused
from walstream.kafka.topic import Topic
from walstream.op import Table
from walstream.records.router import Router, RoutingRules
from walstream.sources.postgres.backfill import reader
from walstream.sources.postgres.backfill import task as tasks
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    Doubtful,
    SnapshotGone,
)
from walstream.sources.postgres.backfill.reader import SnapshotDatabase
from walstream.sources.postgres.backfill.task import ChunkTask
from walstream.sources.postgres.backfill.task_factory import TaskSnapshot, chunk_task
from walstream.sources.postgres.backfill.task_sink import TaskTarget, TopicShape
from walstream.spark.outcome import (
    ChunkFailed,
    ChunkPostponed,
    ChunkRefused,
    Unreadable,
    refusal,
)

CHUNK = Chunk(7, ChunkRelation("public", "t", 1, Table("public", "t", ("id",))), None)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[WalstreamError], Any]:
    """Do a chunk whose connection raises this."""
    monkeypatch.setattr(tasks, "_AGAIN_S", 0.0)

    def do(error: WalstreamError) -> Any:
        def connect(_dsn: str) -> psycopg.Connection[tuple[Any, ...]]:
            raise error

        monkeypatch.setattr(reader, "connect", connect)
        secret = frozenset({"s3cret"})
        return ChunkTask(SnapshotDatabase(""), "1-1", 1, (), secrets=secret)(CHUNK)

    return do


def test_what_passes_is_put_back_and_costs_no_try(
    failing: Callable[[WalstreamError], Any],
) -> None:
    outcome = failing(Transient("refused to s3cret", hint="wait"))
    assert isinstance(outcome, ChunkPostponed)
    assert outcome.number == 7
    assert outcome.error.args[0] == (
        'chunk 7: table "public.t", all rows: refused to ***'
    )


def test_what_is_no_fault_of_the_chunk_ends_all(
    failing: Callable[[WalstreamError], Any],
) -> None:
    for error in (
        PermissionLacking("the password"),
        SnapshotGone("gone"),
        Restart("the topic takes less"),
    ):
        outcome = failing(error)
        assert isinstance(outcome, ChunkRefused)
        assert type(outcome.error) is type(error)


def test_a_size_that_brokers_refuse_is_settled_first(
    failing: Callable[[WalstreamError], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = SizeRefused("too large")
    monkeypatch.setattr(tasks, "settled", lambda error, _: Restart(str(error)))
    outcome = failing(refused)
    assert isinstance(outcome, ChunkRefused)
    assert isinstance(outcome.error, Restart)
    assert refusal(outcome) is outcome.error, "its table is not to blame"


def test_a_task_knows_what_its_topics_took() -> None:
    shape = {"t": TopicShape(1, 7), "parked": TopicShape(1, 8)}
    target = TaskTarget(
        Outgoing("k", {"acks": "all"}),
        format="op",
        partitioner="murmur2",
        router=Router("app", RoutingRules({}, "{table}", "")),
        topics=shape,
        context=Context(),
    )
    task = ChunkTask(SnapshotDatabase(""), "1-1", 1, (target,))
    assert list(task._written()) == [({"acks": "all"}, {"t": 7, "parked": 8})]  # noqa: SLF001 - what brokers are asked of


def test_rows_that_nobody_can_read_are_refused_at_once(
    failing: Callable[[WalstreamError], Any],
) -> None:
    outcome = failing(Unreadable("division by zero"))
    assert isinstance(outcome, ChunkRefused)
    assert isinstance(outcome.error, Unreadable)
    assert outcome.error.args[0].startswith('chunk 7: table "public.t"')


def test_what_may_be_the_chunks_own_fault_is_tried_by_spark(
    failing: Callable[[WalstreamError], Any],
) -> None:
    with pytest.raises(ChunkFailed, match=r"chunk 7: .*could not read block"):
        failing(Doubtful("could not read block"))


def test_a_task_carries_its_own_tables_topics_alone() -> None:
    config = Config.model_validate(
        {
            "sources": {"app": {"kind": "postgres", "dsn": "dbname=x", "sinks": ["k"]}},
            "sinks": {
                "k": {
                    "kind": "kafka",
                    "topic": "{schema}.{table}",
                    "on_too_large": "large",
                    "producer": {"bootstrap.servers": "localhost:9092"},
                }
            },
        }
    )

    def task(tables: int) -> ChunkTask:
        names = ["large", *(f"public.t{number}" for number in range(tables))]
        found = {name: Topic(name, "id", 3, 1000) for name in names}
        return chunk_task(config, "app", TaskSnapshot("1-1", 1, b"1/x/0"), {"k": found})

    one = Chunk(
        1, ChunkRelation("public", "t1", 1, Table("public", "t1", ("id",))), None
    )
    whole = task(10_000)
    for number in range(100):  # asked for others before
        name = f"t{number}"
        table = Table("public", name, ("id",))
        whole.of(Chunk(1, ChunkRelation("public", name, 1, table), None))
    narrow = whole.of(one)
    assert set(narrow.targets[0].topics) == {"large", "public.t1"}
    carried = narrow.targets[0]
    assert len(pickle.dumps((carried.topics, carried.router))) < 1000
    assert narrow.targets[0].topics == task(2).of(one).targets[0].topics
