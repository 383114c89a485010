"""The idempotent consumer with real servers: each op takes effect exactly once."""

import contextlib
import logging
import threading
import time
from asyncio import CancelledError
from itertools import count, pairwise

import psycopg
import pytest
from confluent_kafka import KafkaException, Producer
from psycopg.rows import dict_row

from consumer import (
    BarrierTimeout,
    ConsumerRecord,
    Fatal,
    ForeignSource,
    HandlerFailed,
    Kind,
    Measure,
    Op,
    Place,
    PoisonRecord,
    Retry,
    TopicReplaced,
    Transaction,
    TransactionEnded,
)
from consumer.state.advisory_lock import lock_key
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.loads.op_record import ITEM, Feed, backfilled, insert, truncate
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Running, Setting, apply
from walstream.errors import PermissionLacking
from walstream.formats.op import OpEncoder
from walstream.op import ReplicationOp, Table

pytestmark = pytest.mark.same_on_15


def test_each_op_takes_effect_once_in_order(on_both: Setting) -> None:
    setting = on_both
    feed = setting.make(partitions=2)
    for number in range(500):
        feed.insert(number, number % 2, source="1/db/0" if number < 2 else "")
    feed.flush()
    with setting.running() as running:
        setting.until(500)
        wait_until(
            lambda: set(running.consumer.lag().values()) == {0}, 10, "nothing lags"
        )
    assert setting.database.fetch(
        "SELECT count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(500,)]
    lsn, seq_id, next_offset, topic_id, source = setting.state(1)
    assert (int(lsn), int(seq_id)) == (1000 + 8 * 499, 0)
    assert next_offset == 250
    assert topic_id
    assert source == "1/db/0"


def test_a_replay_from_the_first_record_changes_nothing(on_both: Setting) -> None:
    setting = on_both
    feed = setting.make()
    for number in range(300):
        feed.insert(number, source="1/db/0" if number == 0 else "")
    feed.send(backfilled(900, 1, 0, ["7", "7"]))
    feed.send(backfilled(900, 2, 0, ["8", "8"]))
    feed.send(backfilled(900, 1, 3, ["9", "9"]))
    feed.flush()
    with setting.running():
        setting.until(303)
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    TopicAdmin(setting.kafka.bootstrap).forget_group(setting.group)
    feed.insert(300)
    feed.flush()
    setting.measures.update(dict.fromkeys(Measure, 0))
    with setting.running():
        setting.until(304)
    assert setting.measures[Measure.SKIPPED] == 303
    assert setting.measures[Measure.HANDLED] == 1


def test_a_state_moved_by_hand_is_noticed_and_obeyed(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    with setting.running():
        setting.until(1)
        setting.database.execute("UPDATE replication_consumer_state SET lsn = '1010'")
        with caplog.at_level(logging.WARNING):
            for number in range(1, 4):  # lsn 1008, 1016, 1024
                feed.insert(number)
            feed.flush()
            setting.until(3)
    assert setting.database.fetch("SELECT id FROM item ORDER BY n") == [
        (0,),
        (2,),
        (3,),
    ]
    assert "lsn 1000" in caplog.text
    assert "lsn 1010" in caplog.text


def test_next_offset_moved_back_by_hand_is_sought(setting: Setting) -> None:
    feed = setting.make()
    for number in range(5):
        feed.insert(number)
    feed.flush()
    with setting.running():
        setting.until(5)
        setting.database.execute(
            "UPDATE replication_consumer_state SET next_offset = 0, lsn = '1010'"
        )
        feed.insert(5)
        feed.flush()
        setting.until(5 + 3 + 1)


def test_a_group_that_was_reset_begins_again(setting: Setting) -> None:
    feed = setting.make()
    for number in range(5):
        feed.insert(number)
    feed.flush()
    with setting.running():
        setting.until(5)
    setting.database.execute("DELETE FROM replication_consumer_state")
    with setting.running():
        setting.until(10)


def test_retry_makes_only_its_partition_wait_and_keeps_order(setting: Setting) -> None:
    feed = setting.make(partitions=2)
    for number in range(40):
        feed.insert(number, number % 2)
    feed.flush()
    tries: list[int] = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if op.new["id"] == "20" and len(tries) < 3:
            tries.append(setting.count())
            if len(tries) == 3:
                wait_until(
                    lambda: setting.database.fetch(
                        "SELECT FROM applied WHERE partition = 1 AND lsn = 1312"
                    ),
                    20,
                    "the other partition reaches its end",
                )
            raise Retry(ValueError("not yet"))

    with setting.running(handle, batch=50):
        setting.until(40)
    assert setting.database.fetch(
        "SELECT array_agg(id) FROM (SELECT id FROM item WHERE id % 2 = 0"
        " ORDER BY ctid) AS found"
    ) == [(list(range(0, 40, 2)),)]
    assert setting.measures[Measure.RETRIED] == 3


@pytest.mark.parametrize(
    "cause",
    [Fatal(KeyError("x")), ZeroDivisionError("7"), SystemExit(), CancelledError()],
)
def test_any_other_error_stops_after_what_came_before(
    setting: Setting, cause: BaseException
) -> None:
    feed = setting.make()
    for number in range(10):
        feed.insert(number)
    feed.flush()

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if op.new["id"] == "7":
            raise cause

    with setting.running(handle) as running:
        error = running.fails(HandlerFailed)
    assert (error.topic, error.partition, error.offset) == (setting.topic, 0, 7)
    assert (error.table, error.lsn, error.seq_id) == ("public.item", 1056, 0)
    assert setting.count() == 7
    assert "1056" in str(error)
    with setting.running():
        setting.until(10)


@pytest.mark.parametrize(
    "statement", ["COMMIT", "ROLLBACK", "COMMIT; BEGIN", "method", "swallowed"]
)
def test_a_handler_that_ends_its_transaction_is_told(
    setting: Setting, statement: str
) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()

    def handle(tx: Transaction, _: Op) -> None:
        if statement == "method":
            tx.commit()
        elif statement == "swallowed":
            with contextlib.suppress(psycopg.Error):
                tx.execute("SELECT 1 / 0")
        else:
            tx.execute(statement)

    with setting.running(handle) as running:
        error = running.fails((TransactionEnded, HandlerFailed))
    assert isinstance(
        error, HandlerFailed if statement == "method" else TransactionEnded
    )


@pytest.mark.parametrize("then", ["return", "raise", "begin and raise"])
def test_what_a_handler_committed_is_not_handled_again(
    setting: Setting, then: str
) -> None:
    feed = setting.make()
    for number in range(3):
        feed.insert(number)
    feed.flush()

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if op.new["id"] != "2":
            return
        tx.execute("COMMIT")
        if then == "begin and raise":
            tx.execute("BEGIN")
        if then != "return":
            raise Retry

    with setting.consumer(handle) as consumer:
        error = Running(consumer).fails(TransactionEnded)
    assert (error.table, error.offset) == ("public.item", 2)
    assert "comes again" in error.hint
    assert setting.count() == 3


def test_chunks_of_snapshots_that_are_long_past_are_forgotten(setting: Setting) -> None:
    """By a snapshot that is far newer, or by streamed ops; nothing comes twice."""
    feed, far = setting.make(), 1 << 31
    kept = "SELECT lsn, chunk FROM replication_consumer_snapshot ORDER BY 1, 2"
    for chunk in range(1, 4):
        feed.send(backfilled(900, chunk, 0, [str(chunk), "1"]))
    feed.flush()
    with setting.running():
        setting.until(3)
        assert len(setting.database.fetch(kept)) == 3
        feed.send(backfilled(far, 1, 0, ["4", "1"]))
        feed.flush()
        setting.until(4)
        assert setting.database.fetch(kept) == [(str(far), 1)]
        feed.send(insert(2 * far, 0, ["5", "1"]))
        feed.flush()
        setting.until(5)
        assert setting.database.fetch(kept) == []
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    TopicAdmin(setting.kafka.bootstrap).forget_group(setting.group)
    feed.send(backfilled(900, 2, 1, ["6", "1"]))  # of a task that was cut off
    feed.send(insert(2 * far, 1, ["7", "1"]))
    feed.flush()
    with setting.running() as running:
        running.until_read(1)
    assert setting.count() == 6


def test_a_handler_may_change_the_rows_and_the_search_path(setting: Setting) -> None:
    feed = setting.make(partitions=2)
    feed.insert(0, source="1/db/0")
    feed.send(backfilled(900, 1, 0, ["7", "7"]))
    barrier = feed.next_lsn()
    for partition in range(2):
        feed.send(truncate(barrier, 2), partition)
    feed.insert(1)
    feed.flush()

    def handle(tx: Transaction, op: Op) -> None:
        tx.execute("SET search_path = public")
        apply(tx, op)
        tx.row_factory = dict_row
        tx.execute("SET search_path = elsewhere")

    with setting.running(handle, batch=1):
        setting.until(4)


def test_deadlocks_and_serialization_failures_pass(setting: Setting) -> None:
    feed = setting.make()
    for number in range(20):
        feed.insert(number)
    feed.flush()
    raised = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        for code, number in (("40001", "5"), ("40P01", "9")):
            if op.new["id"] == number and code not in raised:
                raised.append(code)
                tx.execute(f"DO $$BEGIN RAISE SQLSTATE '{code}'; END$$")

    with setting.running(handle):
        setting.until(20)
    assert raised == ["40001", "40P01"]


def test_what_was_seen_is_kept_over_an_error_that_passes(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0, source="1/db/0")
    feed.send_raw(b"no op")  # nothing shares a batch with it
    feed.flush()
    with setting.running(on_poison="skip"):
        setting.until(1)
    setting.database.execute(
        "UPDATE replication_consumer_state SET next_offset = 0, source = NULL"
    )
    feed.insert(1)
    feed.flush()
    raised: list[Op] = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if not raised:
            raised.append(op)
            tx.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")

    with setting.running(handle, on_poison="skip"):
        setting.until(2)
    assert setting.state()[4] == "1/db/0"


def test_an_op_that_always_fails_to_serialize_backs_off(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    tries: list[float] = []

    def handle(tx: Transaction, _: Op) -> None:
        tries.append(time.monotonic())
        tx.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")

    with setting.running(handle):
        wait_until(lambda: len(tries) >= 5, 20, "it is tried")
    waits = [later - one for one, later in pairwise(tries[:5])]
    # at least three quarters of 0.05 s, doubled each time; a slow machine adds to it
    assert all(wait > 0.035 * 2**number for number, wait in enumerate(waits)), waits


def test_sessions_ended_by_the_server_are_opened_again(setting: Setting) -> None:
    feed = setting.make()
    for number in range(40):
        feed.insert(number)
    feed.flush()
    ended = []

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if op.new["id"] in ("11", "30") and op.new["id"] not in ended:
            ended.append(op.new["id"])
            setting.database.execute(
                "SELECT pg_terminate_backend(%s)", tx.info.backend_pid
            )

    with setting.running(handle, batch=20):
        setting.until(40)


def test_a_deferred_constraint_is_blamed_on_its_op(setting: Setting) -> None:
    feed = setting.make()
    for number in (0, 1, 2, 1, 4):
        feed.insert(number)
    feed.flush()
    setting.database.execute(
        "ALTER TABLE item ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED"
    )
    with setting.running() as running:
        error = running.fails(HandlerFailed)
    assert error.offset == 3
    assert "(1)" not in str(error)
    assert setting.count() == 3


def test_poison_stops_is_skipped_or_is_shown(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.send_raw(b"no op")
    feed.send_raw(None)
    feed.insert(1)
    feed.flush()
    with setting.running() as running:
        error = running.fails(PoisonRecord)
    assert error.offset == 1
    assert setting.count() == 1
    seen: list[ConsumerRecord] = []
    with setting.running(on_poison=seen.append):
        setting.until(2)
    assert [record.value for record in seen] == [b"no op"]
    setting.database.execute("DELETE FROM replication_consumer_state")
    with setting.running(on_poison="skip"):
        setting.until(4)
    assert setting.measures[Measure.POISON] == 3


def test_a_foreign_source_stops_until_it_is_accepted(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0, source="1/db/0")
    feed.insert(1)
    feed.send(insert(5, 0, ["2", "2"]), source="1/db/1")  # an earlier LSN
    feed.send(insert(6, 0, ["3", "3"]))
    feed.flush()
    with setting.running() as running:
        error = running.fails(ForeignSource)
    assert setting.count() == 2
    assert error.offset == 2
    assert error.exit_code == 3
    assert 'accept_source="1/db/1"' in str(error)
    with setting.running(accept_source="1/db/2") as running:
        running.fails(ForeignSource)
    with setting.running(accept_source="1/db/1"):
        setting.until(4)
    assert setting.state()[4] == "1/db/1"
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    with setting.running(accept_source=True) as running:
        running.fails(ForeignSource)  # an earlier history comes back: a replay
    for statement in error.repair.sql.splitlines():
        setting.database.execute(statement)
    with setting.running(accept_source="1/db/1"):
        setting.until(8)


def test_another_topic_of_the_same_name_stops(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    with setting.running():
        setting.until(1)
    admin = TopicAdmin(setting.kafka.bootstrap)
    admin.delete(setting.topic)
    wait_until(lambda: _created(admin, setting.topic), 20, "the topic is made anew")
    with setting.running() as running:
        error = running.fails(TopicReplaced)
    assert "replication_consumer_state" in error.hint


def test_another_topic_of_the_same_name_stops_a_running_consumer(
    setting: Setting,
) -> None:
    """Though the client goes on in it at the offset of the former one."""
    feed = setting.make()
    for number in range(3):
        feed.insert(number)
    feed.flush()
    admin = TopicAdmin(setting.kafka.bootstrap)
    with setting.running() as running:
        setting.until(3)
        admin.delete(setting.topic)
        wait_until(lambda: _created(admin, setting.topic), 20, "it is made anew")
        other = Feed(setting.kafka.bootstrap, setting.topic, count(9000, 8))
        for number in range(3, 8):  # the first ones at the offsets of former ones
            other.insert(number)
        other.flush()

        def stopped() -> bool:
            other.insert(8)
            other.flush()
            return running.error is not None

        wait_until(stopped, 30, "it asks for the topic")
        error = running.fails(TopicReplaced)
    assert "was deleted and created again" in str(error)


def test_a_log_that_ends_too_early_stops(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    with setting.running():
        setting.until(1)
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 9")
    with setting.running() as running:
        assert running.fails(TopicReplaced).offset == 9


def test_records_deleted_before_a_running_consumer_read_them_stop_it(
    setting: Setting,
) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    producer = _transactional(setting)
    with setting.running() as running:
        setting.until(1)
        producer.begin_transaction()  # nobody reads the records before its end
        for number in range(1, 4):
            op = insert(9000 + number, 0, [str(number), "1"])
            producer.produce(setting.topic, OpEncoder(op.table).encode(op), b"k", 0)
        assert producer.flush(20) == 0
        TopicAdmin(setting.kafka.bootstrap).delete_before(setting.topic, 3)
        producer.commit_transaction(20)
        error = running.fails(TopicReplaced)
    assert error.offset == 1
    assert setting.count() == 1


@pytest.mark.parametrize("begin", ["earliest", "latest"])
@pytest.mark.parametrize("added", [False, True])
def test_records_deleted_between_two_runs_stop_it_where_none_was_ever_read(
    setting: Setting, begin: str, *, added: bool
) -> None:
    feed = setting.make(partitions=1 if added else 2)
    kafka = {"auto.offset.reset": begin}
    with setting.running(kafka=kafka) as running:
        running.until_read(1 if added else 2)
    assert setting.state(0)[2] == 0
    admin = TopicAdmin(setting.kafka.bootstrap)
    if added:
        admin.grow(setting.topic, 2)
        feed = Feed(setting.kafka.bootstrap, setting.topic)
    for number in range(5):
        feed.insert(number, 1)
    feed.flush()
    admin.delete_before(setting.topic, 4, 1)
    with setting.running(kafka=kafka) as running:
        error = running.fails(TopicReplaced)
    assert (error.partition, error.offset) == (1, 0)
    assert "begins at 4: Kafka deleted unread records" in str(error)
    assert setting.count() == 0
    for statement in error.repair.sql.splitlines():
        setting.database.execute(statement)
    with setting.running(kafka=kafka) as running:
        running.until_read(2)
    assert setting.count() == (begin == "earliest")


def test_members_that_join_at_once_begin_a_topic_together(setting: Setting) -> None:
    feed = setting.make(partitions=4)
    for number in range(8):
        feed.insert(number, number % 4)
    feed.flush()
    with setting.running(), setting.running():
        setting.until(8)
    assert [setting.state(partition)[2] for partition in range(4)] == [2] * 4


def test_holes_of_transactions_are_no_loss(setting: Setting) -> None:
    setting.make()
    producer = _transactional(setting)
    with setting.running():
        for number in range(3):
            producer.begin_transaction()
            op = insert(9000 + number, 0, [str(number), "1"])
            producer.produce(setting.topic, OpEncoder(op.table).encode(op), b"k", 0)
            producer.commit_transaction(20)
        setting.until(3)


def test_truncate_waits_for_all_partitions_and_runs_once(on_both: Setting) -> None:
    setting = on_both
    feed = setting.make(partitions=3)
    for number in range(300):
        feed.insert(number, number % 3)
    barrier = feed.next_lsn()
    for partition in range(3):
        feed.send(truncate(barrier, 3), partition)
    for number in range(300, 330):
        feed.insert(number, number % 3)
    feed.flush()
    slow = threading.Event()

    def handle(tx: Transaction, op: Op) -> None:
        if op.record.partition == 1 and op.kind is Kind.INSERT and op.new["id"] == "1":
            slow.wait(1)
        apply(tx, op)

    with setting.running(handle):
        setting.until(331)
    assert setting.database.fetch("SELECT count(*), min(id) FROM item") == [(30, 300)]
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    feed.insert(330)
    feed.flush()
    with setting.running():
        setting.until(332)


def test_a_barrier_that_is_not_reached_names_the_partitions(setting: Setting) -> None:
    feed = setting.make(partitions=3)
    for partition in (0, 1):
        feed.send(truncate(1000, 3), partition)
    feed.flush()
    with setting.running(barrier_timeout=600):
        barrier = "replication_consumer_barrier"
        made = f"SELECT to_regclass('{barrier}') IS NOT NULL"
        wait_until(lambda: setting.database.fetch(made) == [(True,)], 30, "it is made")
        wait_until(lambda: setting.count(barrier) == 2, 30, "both arrive")
    with setting.running(barrier_timeout=1) as running:
        error = running.fails(BarrierTimeout)
    assert "[2]" in str(error)
    feed.send(insert(1008, 0, ["1", "1"]), 2)  # a later op is an arrival, too
    feed.flush()
    with setting.running(barrier_timeout=60):
        setting.until(2)


def test_truncates_of_long_ago_are_forgotten(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.state.truncate_barrier._KEPT", 1)
    feed = setting.make(partitions=2)
    for number in range(5):
        feed.insert(number, number % 2)
        lsn = feed.next_lsn()
        for partition in range(2):
            feed.send(truncate(lsn, 2), partition)
    feed.flush()
    with setting.running():
        setting.until(10)
    assert setting.count("replication_consumer_barrier") == 1
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    feed.insert(5)
    feed.flush()
    with setting.running():
        setting.until(11)


def test_a_replay_of_long_ago_runs_no_backfills_truncate_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was replaced, then TRUNCATEs of another in the same topic."""
    monkeypatch.setattr("consumer.state.truncate_barrier._KEPT", 1)
    feed = setting.make(partitions=2)
    other = Table("public", "other", ("id",))
    emptied = ReplicationOp(
        Kind.TRUNCATE, ITEM, 900, 1 << 32, partitions=2, snapshot=True
    )
    lsns = [feed.next_lsn() for _ in range(3)]
    for partition in range(2):
        feed.send(emptied, partition)
        feed.send(backfilled(900, 2 + partition, 0, [str(partition), "1"]), partition)
        for lsn in lsns:
            feed.send(truncate(lsn, 2, other), partition)
    feed.flush()

    def handle(tx: Transaction, op: Op) -> None:
        if op.table.name == "item":
            apply(tx, op)

    with setting.running(handle):
        setting.until(3)
    setting.database.execute("UPDATE replication_consumer_state SET next_offset = 0")
    feed.insert(9)
    feed.flush()
    with setting.running(handle):
        setting.until(4)
    assert setting.database.fetch("SELECT id FROM item ORDER BY id") == [
        (0,),
        (1,),
        (9,),
    ]


def test_a_lock_that_somebody_keeps_is_told(
    setting: Setting,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("consumer.state.session._PATIENCE_S", 0.01)
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    with psycopg.connect(setting.database.dsn, autocommit=True) as holder:
        key = lock_key(setting.group, setting.topic, 0)
        holder.execute("SELECT pg_advisory_lock(%s)", (key,))
        told = f"is locked by the sessions [{holder.info.backend_pid}]"
        with setting.running():
            wait_until(lambda: told in caplog.text, 20, "it is told")
            holder.execute("SELECT pg_advisory_unlock_all()")
            setting.until(1)


def test_a_stop_during_a_retry_is_obeyed(setting: Setting) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    tried = threading.Event()

    def handle(_: Transaction, __: Op) -> None:
        tried.set()
        raise Retry

    with setting.running(handle):
        assert tried.wait(60)
    assert setting.count() == 0


def test_a_batch_ends_when_its_time_is_up(setting: Setting) -> None:
    feed = setting.make()
    for number in range(30):
        feed.insert(number)
    feed.flush()

    with setting.running(batch_seconds=0.0):
        setting.until(30)
    assert setting.database.fetch("SELECT count(DISTINCT xmin::text) FROM item") == [
        (30,)
    ]
    assert setting.state()[2] == 30


def test_lag_counts_what_is_not_handled(setting: Setting) -> None:
    feed = setting.make()
    for number in range(10):
        feed.insert(number)
    feed.flush()
    go = threading.Event()

    def handle(tx: Transaction, op: Op) -> None:
        apply(tx, op)
        if op.new["id"] == "4":
            go.wait(60)

    with setting.running(handle, batch=1) as running:
        place = Place(setting.topic, 0)
        setting.until(4)
        wait_until(lambda: running.consumer.lag() == {place: 6}, 10, "6 to do")
        go.set()
        wait_until(lambda: running.consumer.lag() == {place: 0}, 10, "all is done")
    with setting.running() as running:
        wait_until(running.consumer.lag, 10, "it is known")
        assert running.consumer.lag() == {place: 0}  # before it handles anything


def test_a_role_that_may_not_create_the_tables_is_told(setting: Setting) -> None:
    setting.make()
    name = setting.database.name  # the setting goes with it
    setting.database.execute(
        f"ALTER ROLE CURRENT_USER IN DATABASE {name} SET role = pg_monitor"
    )
    with setting.running() as running:
        error = running.fails(PermissionLacking)
    assert "GRANT CREATE" in error.hint


def test_a_database_that_is_away_at_the_start_is_waited_for(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    feed = setting.make()
    feed.insert(0)
    feed.flush()
    name, home = setting.database.name, Database(setting.database.server)
    home.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    with setting.running() as running:
        wait_until(
            lambda: running.error or "cannot be reached" in caplog.text, 20, "it tries"
        )
        home.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        setting.until(1)


def test_texts_are_sent_as_utf_8(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "latin1")
    feed = setting.make()
    setting.database.execute("ALTER TABLE item ALTER id TYPE text")
    feed.send(insert(1000, 0, ["\u20ac", "1"]))
    feed.flush()
    with setting.running():
        setting.until(1)


def _created(admin: TopicAdmin, topic: str) -> bool:
    try:
        admin.create(topic)
    except KafkaException:  # it is still being deleted
        return False
    return True


def _transactional(setting: Setting) -> Producer:
    settings = {
        "bootstrap.servers": setting.kafka.bootstrap,
        "transactional.id": setting.topic,
    }
    producer = Producer(settings)
    producer.init_transactions(20)
    return producer


def test_what_comes_between_two_runs_takes_effect_also_from_the_latest_on(
    setting: Setting,
) -> None:
    """The state knows where each partition began, whatever Kafka forgets."""
    feed = setting.make(partitions=2)
    feed.insert(0, 1)
    feed.flush()
    latest = {"auto.offset.reset": "latest"}

    def begun() -> bool:
        found = setting.database.fetch(
            "SELECT partition, next_offset FROM replication_consumer_state ORDER BY 1"
        )
        return setting.failed() or found == [(0, 0), (1, 1)]

    with setting.running(kafka=latest) as running:
        running.until_read(2)  # and so the tables of the state are there
        wait_until(begun, 30, "both begins are noted")
    TopicAdmin(setting.kafka.bootstrap).forget_group(setting.group)
    feed.insert(1, 0)
    feed.insert(2, 1)
    feed.flush()
    with setting.running(kafka=latest):
        setting.until(2)
    assert setting.database.fetch("SELECT id FROM item ORDER BY id") == [(1,), (2,)]
