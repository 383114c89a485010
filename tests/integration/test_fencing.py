"""Tasks elsewhere: who fences their transactions has seen the last of their rows."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException, Producer

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.spark import Backfill
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from walstream.errors import Transient
from walstream.formats.op import OpEncoder
from walstream.kafka.fencing import TRANSACTION, fence
from walstream.op import Kind, ReplicationOp, Table
from walstream.postgres import server as servers
from walstream.postgres.connection import connect
from walstream.postgres.snapshot_holder import Holder
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.chunk import SnapshotGone, transactional_id
from walstream.sources.postgres.backfill.progress import BackfillProgress, Elsewhere
from walstream.sources.postgres.backfill.task_factory import transactions
from walstream.spark.outcome import ChunkDone, ChunkRefused
from walstream.state.store import LmdbStore

OLD = Table("public", "t", ("id",), key=(0,))
ONE = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1);"


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        yield made


class Task:
    """An attempt of a chunk that somebody makes elsewhere."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": name, **TRANSACTION}
        )
        self._producer.init_transactions(30)

    def send(self, topic: str) -> None:
        op = ReplicationOp(Kind.INSERT, OLD, 1, 1, new=["-1"], snapshot=True)
        self._producer.begin_transaction()
        self._producer.produce(topic, OpEncoder(OLD).encode(op), b"k", 0)
        assert self._producer.flush(30) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(30)


def never() -> bool:
    return False


def test_a_fenced_transaction_is_never_committed(
    kafka: KafkaServer, reader: Reader, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}t"
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    names = [f"{topic}-{number}" for number in range(1, 41)]
    open_one, idle, other = (
        Task(kafka.bootstrap, name) for name in (names[0], names[-1], f"{topic}-other")
    )
    open_one.send(topic)
    fence({"bootstrap.servers": kafka.bootstrap}, names, never)
    with pytest.raises(KafkaException, match="fenced"):
        open_one.commit()
    with pytest.raises(KafkaException, match="fenced"):  # noqa: PT012 - which says it first is the library's choice
        idle.send(topic)
        idle.commit()
    other.send(topic)
    other.commit()
    (record,) = reader.count(1)
    assert record.offset > 0  # behind what was open


def test_a_stop_is_heard_while_many_are_fenced() -> None:
    with pytest.raises(Transient, match="stopped"):
        fence(
            {"bootstrap.servers": "127.0.0.1:1"}, map(str, range(10_000)), lambda: True
        )


def test_a_later_snapshots_task_fences_before_it_reads(
    database: Database,
    backfills: Callable[..., Backfill],
    kafka: KafkaServer,
    reader: Reader,
    topic_prefix: str,
) -> None:
    database.execute(f"{ONE} CREATE PUBLICATION walstream FOR ALL TABLES")
    backfill = backfills(database.dsn, partitions=1)
    with backfill.holding() as snapshot:
        planned = backfill.plan("public.t")
        task = backfill.task(snapshot, planned, elsewhere=True)
        (target,) = task.targets
        name = transactional_id(target.transactions, 1)
        before = Task(kafka.bootstrap, name)
        before.send(f"{topic_prefix}public.t")
        gone = replace(task, snapshot="00000000-00000000-1", lsn=task.lsn + 1000)
        outcome = gone(planned[0])
        assert isinstance(outcome, ChunkRefused)
        assert isinstance(outcome.error, SnapshotGone)
        with pytest.raises(KafkaException, match="fenced"):
            before.commit()
        assert isinstance(task(planned[0]), ChunkDone)
    (record,) = reader.count(1)
    assert record.new == {"id": "1"}


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_a_start_fences_what_an_earlier_one_left_before_it_streams(
    database: Database,
    runs: Runs,
    backfills: Callable[..., Backfill],
    reader: Reader,
    delivery: str,
) -> None:
    database.execute(ONE)
    walstream = runs(database.dsn, sink={"delivery": delivery})
    walstream.start().streaming()
    assert walstream.terminate() == 0
    topic = f"{runs.prefix}public.t"
    with connect(database.dsn) as connection:
        origin = servers.look(connection).origin
    named = transactions(walstream.slot, "kafka", f"{origin}/0".encode())
    with backfills(database.dsn).holding() as snapshot:
        holder = Holder(database.dsn, snapshot, 1)
    with closing(holder):
        left = Elsewhere(holder.session, 3)
        with LmdbStore(walstream.state) as positions:
            record = BackfillProgress(99, (), elsewhere=left)
            stored_progress.StoredProgress(positions).store(record)
        tasks = [
            Task(runs.bootstrap, transactional_id(named, chunk)) for chunk in (1, 3)
        ]
        tasks[0].send(topic)
        walstream.start().streaming()
        database.execute("INSERT INTO t VALUES (2)")
        (streamed,) = reader.count(1)
        assert streamed.new == {"id": "2"}
        with pytest.raises(Transient):
            holder.check()
    with pytest.raises(KafkaException, match="fenced"):
        tasks[0].commit()
    with pytest.raises(KafkaException, match="fenced"):  # noqa: PT012 - as above
        tasks[1].send(topic)
        tasks[1].commit()
    assert walstream.terminate() == 0
    # a transactional sink looks for what is open: that of tasks has ended by then
    assert "a transaction is open" not in walstream.text
    with LmdbStore(walstream.state) as positions:
        found = stored_progress.read(positions)
    assert found is not None
    assert found.elsewhere is None
    assert len(reader.read()) == 1
