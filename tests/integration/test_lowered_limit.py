"""A topic that takes less while records go there: batches made before do not fit.

Each record does. So whoever sends begins again, and makes smaller batches.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.op_record import Feed
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.polled_source import Polled, keys_of
from tests.support.programs.relay import Chain
from tests.support.programs.sqlite_source import execute, file_of
from tests.support.programs.walstream import Walstream
from walstream.errors import Restart, WalstreamError
from walstream.kafka.bulk_producer import BulkProducer, Outgoing
from walstream.kafka.errors import SizeRefused
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.size_dispute import settled

BEFORE, SINCE = 1_000_000, 200_000
EACH = 1000  # bytes of a record
ROWS = 5000
AGAIN = "takes smaller records than before"


def producer(bootstrap: str) -> dict[str, str]:
    # a batch is as large as its records
    return {"bootstrap.servers": bootstrap, "compression.type": "none"}


@pytest.fixture
def admin(kafka: KafkaServer) -> TopicAdmin:
    return TopicAdmin(kafka.bootstrap)


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: nothing here differs between the versions."""
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield fresh


def goes_on(
    walstream: Walstream,
    send: Callable[[int], object],
    everything: Callable[[int], bool],
) -> None:
    """See that all arrives, by more than one start, and that nothing ends it.

    It sends again, by number, until a batch was refused: a machine with much to do may
    make small ones. A transaction may hear first that it can do no more.
    """

    def over(number: int) -> bool:
        return everything(number) or not walstream.running

    for number in range(5):
        send(number)
        wait_until(partial(over, number), 60, "all arrives")
        assert walstream.running, walstream.text
        assert not walstream.said("MSG_SIZE_TOO_LARGE")
        if walstream.said(AGAIN) or walstream.said("(_STATE)"):
            return
    raise AssertionError("nothing was refused: the test shows nothing")


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_a_stream_begins_again(
    database: Database, runs: Runs, admin: TopicAdmin, topic_prefix: str, delivery: str
) -> None:
    topic = f"{topic_prefix}public.t"
    admin.create(topic, 1, max_message_bytes=str(BEFORE))
    sink = {"producer": producer(runs.bootstrap), "delivery": delivery}
    walstream = runs(database.dsn, sink=sink).start().streaming()
    insert = (
        "INSERT INTO t SELECT n, repeat('x', %s) FROM generate_series(%s::int, %s) n"
    )
    with Reader(runs.bootstrap, topic_prefix) as reader:
        database.execute(insert, EACH, 1, 1)
        reader.count(1)
        admin.configure(topic, "max.message.bytes", str(SINCE))

        def send(number: int) -> None:
            database.execute(insert, EACH, number * ROWS + 2, (number + 1) * ROWS + 1)

        def everything(number: int) -> bool:
            found = {int(one.new["id"]) for one in reader.read()}
            return found >= set(range(1, (number + 1) * ROWS + 2))

        goes_on(walstream, send, everything)


@pytest.mark.parametrize("rows", [ROWS, 1])
def test_what_no_longer_fits_is_parked(
    database: Database, runs: Runs, admin: TopicAdmin, topic_prefix: str, rows: int
) -> None:
    """Also where it goes alone, and the broker refuses no batch."""
    topic = f"{topic_prefix}public.t"
    admin.create(topic, 1, max_message_bytes=str(BEFORE))
    sink = {
        "producer": producer(runs.bootstrap),
        "on_too_large": f"{topic_prefix}parked",
    }
    walstream = runs(database.dsn, sink=sink).start().streaming()
    with Reader(runs.bootstrap, topic_prefix, json.loads) as reader:
        database.execute("INSERT INTO t VALUES (0, 'v')")
        reader.count(1)
        admin.configure(topic, "max.message.bytes", str(SINCE))
        insert = (
            "INSERT INTO t SELECT n, repeat('x', CASE n WHEN 1 THEN %s ELSE %s END)"
            " FROM generate_series(1, %s::int) n"
        )

        def send(_number: int) -> None:
            database.execute(insert, 2 * SINCE, EACH, rows)

        def everything(_number: int) -> bool:
            records = reader.read()
            parked = [one for one in records if one.topic.endswith("parked")]
            keys = {one.key for one in records if one.topic == topic}
            return bool(parked) and len(keys) == rows

        goes_on(walstream, send, everything)


def test_a_relay_begins_again(
    kafka: KafkaServer, tmp_path: Path, admin: TopicAdmin, topic_prefix: str
) -> None:
    upstream, copy = f"{topic_prefix}up", f"{topic_prefix}copy.public.item"
    admin.create(upstream, 1)
    admin.create(copy, 1, max_message_bytes=str(BEFORE))
    feed = Feed(kafka.bootstrap, upstream)
    sink = {"producer": producer(kafka.bootstrap)}
    made = Chain(
        kafka.bootstrap,
        kafka.bootstrap,
        tmp_path / "chain",
        topic_prefix,
        sink=sink,
        topics=[upstream],
    )
    with made, Reader(kafka.bootstrap, copy, bytes) as reader:
        send(feed, 1)
        reader.count(1)
        admin.configure(copy, "max.message.bytes", str(SINCE))

        def everything(number: int) -> bool:
            return len({one.value for one in reader.read()}) > (number + 1) * ROWS

        goes_on(made, lambda _number: send(feed, ROWS), everything)


def send(feed: Feed, records: int) -> None:
    for _ in range(records):
        lsn = feed.next_lsn()
        row = {"Insert": [str(lsn), "x" * EACH]}
        value = {
            "table_name": "item",
            "col_names": ["id", "n"],
            "lsn": lsn,
            "seq_id": 0,
            "op": row,
        }
        feed.send_raw(json.dumps(value).encode(), 0, b"%d" % lsn)
    feed.flush()


def test_a_poll_begins_again(
    tmp_path: Path, kafka: KafkaServer, admin: TopicAdmin, topic_prefix: str
) -> None:
    topic = f"{topic_prefix}legacy.t"
    admin.create(topic, 1, max_message_bytes=str(BEFORE))
    file = file_of(tmp_path)
    execute(
        file,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);INSERT INTO t VALUES (1, 'a')",
    )
    sink: dict[str, Any] = {"producer": producer(kafka.bootstrap)}
    polled = Polled(
        f"sqlite:///{file}",
        kafka.bootstrap,
        tmp_path,
        topic_prefix,
        sink=sink,
        tables={"t": {}},
    )
    with closing(polled.start()), polled.reader() as reader:
        reader.count(1)
        admin.configure(topic, "max.message.bytes", str(SINCE))

        def insert(number: int) -> None:
            first, last = number * ROWS + 2, (number + 1) * ROWS + 1
            execute(
                file,
                f"WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n "  # noqa: S608 - numbers
                f"WHERE i < {last}) INSERT INTO t SELECT i, hex(zeroblob(500)) FROM n",
            )

        def everything(number: int) -> bool:
            reader.read()
            return set(keys_of(reader)) >= set(range(1, (number + 1) * ROWS + 2))

        goes_on(polled, insert, everything)
        assert not polled.said("blocks its table")


def test_a_task_asks_brokers_before_it_believes_them(
    kafka: KafkaServer, admin: TopicAdmin, topic_prefix: str
) -> None:
    """As one of a backfill, which knows a limit of before."""
    topic = f"{topic_prefix}t"
    admin.create(topic, 1, max_message_bytes=str(SINCE))
    properties = producer_properties(producer(kafka.bootstrap), BEFORE, BEFORE)
    # a producer that can do no more may say so first: a chunk is tried again then
    refused = next(
        found
        for _ in range(9)
        if isinstance(found := refusal(properties, topic), SizeRefused)
    )
    found = settled(refused, [(properties, {topic: BEFORE})])
    assert isinstance(found, Restart)
    assert settled(refused, [(properties, {topic: SINCE})]) is refused


def refusal(properties: dict[str, object], topic: str) -> WalstreamError:
    """Give what a chunk in large batches ends with."""
    sender = BulkProducer(Outgoing("k", properties), lambda: None)
    try:
        for _ in range(ROWS):
            sender.send(topic, b"x" * EACH, b"k", 0)
        sender.sent = ROWS
        sender.finish()
    except WalstreamError as error:
        return error
    finally:
        sender.abandon()
    raise AssertionError("it was taken")
