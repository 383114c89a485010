"""Topics and a state folder that cannot be used: a clear error, and a way on."""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream
from tests.support.selection import shortened
from walstream.lsn import show


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: nothing here differs between the versions."""
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield fresh


@pytest.fixture
def admin(kafka: KafkaServer) -> TopicAdmin:
    return TopicAdmin(kafka.bootstrap)


@pytest.fixture
def topic(topic_prefix: str) -> str:
    """Name the topic of public.t."""
    return f"{topic_prefix}public.t"


def insert(database: Database, *keys: int) -> None:
    for key in keys:
        database.execute("INSERT INTO t VALUES (%s)", key)


def slots(database: Database) -> int:
    query = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
    return len(database.fetch(query, database.name))


def test_a_missing_topic_that_is_not_ours_to_make_is_refused(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    walstream = runs(database.dsn, sink={"create_topics": False}).start()
    walstream.ends_with(
        2, f"topic '{topic}' does not exist", "create_topics = true", "walstream run"
    )
    assert not slots(database)
    admin.create(topic)
    walstream.start().streaming()
    insert(database, 1)
    reader.count(1)
    assert walstream.terminate() == 0
    admin.delete(topic)
    walstream.start().ends_with(3, f"'{topic}' was deleted")


def test_a_topic_that_is_deleted_does_not_come_back(
    database: Database, runs: Runs, own_kafka: OwnKafka, topic_prefix: str, topic: str
) -> None:
    """Where brokers create what is asked for, with one partition, as is the default."""
    broker = own_kafka({"auto.create.topics.enable": "true"})
    admin = TopicAdmin(broker.bootstrap)
    admin.create(topic, partitions=3)
    producer = {
        "bootstrap.servers": broker.bootstrap,
        "topic.metadata.refresh.interval.ms": "1000",  # of 5 min
    }
    sink = {"create_topics": False, "producer": producer}
    with runs(database.dsn, bootstrap=broker.bootstrap, sink=sink) as walstream:
        walstream.streaming()
        insert(database, 1)
        with Reader(broker.bootstrap, topic_prefix) as reader:
            reader.count(1)
        admin.delete(topic)
        time.sleep(4)
        assert not admin.is_told(topic)


def test_a_topic_that_is_wanted_first_while_streaming_is_refused_too(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    admin.create(topic)
    walstream = runs(database.dsn, sink={"create_topics": False}).start().streaming()
    database.execute("ALTER TABLE t RENAME TO moved")
    insert_moved = "INSERT INTO moved VALUES (1)"
    database.execute(insert_moved)
    walstream.ends_with(2, "public.moved", "create_topics")
    assert reader.count(0) == []


def test_other_partitions_have_to_be_accepted(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    admin.create(topic, 2)
    walstream = runs(database.dsn).start().streaming()
    insert(database, *range(10))
    reader.count(10)
    assert walstream.terminate() == 0
    admin.grow(topic, 5)
    insert(database, *range(10, 50))

    walstream.start().ends_with(
        3, topic, "5 partitions, it had 2", "walstream run --accept-partitions"
    )
    assert len(reader.read()) == 10
    walstream.start("--accept-partitions").streaming()
    records = reader.count(50)
    assert {record.partition for record in records} == set(range(5))
    layouts = [dict(record.headers).get("walstream-layout") for record in records]
    assert layouts == [None] * 10 + [b"2"] * 40
    assert walstream.terminate() == 0
    walstream.start().streaming()  # accepted once, for good
    insert(database, 50)
    assert dict(reader.count(51)[-1].headers)["walstream-layout"] == b"2"


def test_a_reset_does_not_forget_how_keys_were_spread(
    database: Database, runs: Runs, admin: TopicAdmin, topic: str
) -> None:
    admin.create(topic, 2)
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    admin.grow(topic, 5)
    done = verb(walstream.configuration, "positions", "reset", SOURCE, "--yes")
    assert done.returncode == 0, done.stderr

    walstream.start().ends_with(3, topic, "5 partitions, it had 2")
    walstream.start("--accept-partitions").streaming()


def test_partitions_that_grow_while_streaming_change_nothing_until_accepted(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    admin.create(topic, 2)
    runs(database.dsn).start().streaming()
    insert(database, 1)
    reader.count(1)
    admin.grow(topic, 5)
    insert(database, *range(10, 50))
    assert {record.partition for record in reader.count(41)} == {0, 1}


@pytest.mark.fault_long
def test_a_deleted_topic_stops_the_stream_and_nothing_is_confirmed(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    walstream = runs(database.dsn).start().streaming()
    insert(database, 1)
    reader.count(1)
    admin.delete(topic)
    behind = "SELECT FROM pg_replication_slots WHERE confirmed_flush_lsn <= %s::pg_lsn"
    before = database.fetch("SELECT pg_current_wal_insert_lsn()::text")[0][0]
    insert(database, 2)
    walstream.ends_with(3, topic, "walstream run", timeout_s=90)
    assert database.fetch(f"{behind} AND slot_name = %s", before, database.name)


@pytest.mark.fault_long
def test_the_topic_of_a_dropped_table_is_forgotten_until_the_table_is_back(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    database.execute("CREATE TABLE gone (id int PRIMARY KEY)")
    walstream = runs(database.dsn).start().streaming()
    insert(database, 1)
    database.execute("INSERT INTO gone VALUES (1)")
    reader.count(2)
    walstream.terminate()
    walstream.start().streaming()  # nothing was sent to it since
    database.execute("DROP TABLE gone")
    admin.delete(topic.replace("public.t", "public.gone"))
    walstream.until("walstream forgets it", 90)
    insert(database, 2)
    database.execute("CREATE TABLE gone (id int PRIMARY KEY)")
    published = "SELECT FROM pg_publication_tables WHERE tablename = 'gone'"
    wait_until(lambda: database.fetch(published), 90, "it is captured again")
    database.execute("INSERT INTO gone VALUES (2)")
    with Reader(runs.bootstrap, runs.prefix) as fresh:  # the topic is another one
        fresh.until(lambda records: len({r.topic + r.new["id"] for r in records}) == 3)
    assert walstream.said("exists again")
    assert walstream.running


def test_a_topic_that_was_deleted_while_stopped_is_told(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    walstream = runs(database.dsn).start().streaming()
    insert(database, 1)
    reader.count(1)
    assert walstream.terminate() == 0
    admin.delete(topic)
    insert(database, 2)
    walstream.start().until("the records delivered before are gone")
    assert walstream.said(topic)


def test_a_record_that_is_too_large_stops_until_the_topic_takes_it(
    database: Database, runs: Runs, reader: Reader, admin: TopicAdmin, topic: str
) -> None:
    admin.create(topic, 1, max_message_bytes="200000")
    walstream = runs(database.dsn).start().streaming()
    insert(database, 1)
    reader.count(1)
    database.execute(
        "BEGIN; INSERT INTO t VALUES (2, 'small');"
        "INSERT INTO t VALUES (3, repeat('x', 300000)); COMMIT"
    )
    walstream.ends_with(3, "public.t", topic, "200000", "max.message.bytes")
    (error,) = walstream.said("takes 200000")
    position = re.search(r"at \((\S+), 1\) has (\d+) bytes", error["error"])
    assert position
    assert 300000 < int(position[2]) < 301000
    # again the same, and nothing behind it
    insert(database, 4)
    walstream.start().ends_with(3, f"({position[1]}, 1)")

    admin.configure(topic, "max.message.bytes", "400000")
    walstream.start().streaming()
    reader.until(lambda _: [r for r in reader.of("t") if r.new["id"] == "4"])
    large = next(r for r in reader.read() if r.new["id"] == "3")
    assert large.new["v"] == "x" * 300000
    assert (show(large.op.lsn), large.op.seq_id) == (position[1], 1)


def test_a_second_instance_on_one_state_folder_is_refused(
    database: Database, runs: Runs, reader: Reader
) -> None:
    first = runs(database.dsn).start().streaming()
    second = runs(database.dsn, top={"state": str(first.folder / "state")}).start()
    second.ends_with(2, "state folder", f"in use by process {first.pid}", "`state`")
    insert(database, 1)
    reader.count(1)
    assert first.terminate() == 0
    second.start().streaming()


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "overwritten": lambda data: b"\xff" * len(data),
    "flipped": lambda data: re.sub(
        rb'"resume":(\d)',
        lambda found: b'"resume":%d' % ((int(found[1]) + 1) % 10),
        data,
    ),
    "foreign": lambda _: b"this is no LMDB file\n" * 2000,
    "pages": lambda data: data[:8192] + b"\xaa" * (len(data) - 8192),
}


# each of them, and any other, is refused by tests/unit/state/test_lmdb_check.py
@pytest.mark.parametrize("damage", shortened(DAMAGES, "foreign", "pages"))
def test_a_damaged_state_folder_is_not_believed(
    database: Database, runs: Runs, damage: str
) -> None:
    walstream = runs(database.dsn).start().streaming()
    insert(database, 1)
    assert walstream.terminate() == 0
    path = walstream.state / "data.mdb"
    before = path.read_bytes()
    path.write_bytes(DAMAGES[damage](before))
    assert path.read_bytes() != before

    walstream.start().ends_with(3, "state", "walstream positions reset app")
    path.write_bytes(before)
    walstream.start().streaming()


def test_an_empty_state_folder_does_not_take_the_slot_in_silence(
    database: Database, runs: Runs
) -> None:
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    (walstream.state / "data.mdb").unlink()
    walstream.start().ends_with(3, "has no record of it", "--adopt-slot")


def test_an_older_copy_of_the_state_folder_is_a_gap(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    path = walstream.state / "data.mdb"
    old = path.read_bytes()
    walstream.start().streaming()
    insert(database, 1)
    reader.count(1)
    stop(walstream)
    path.write_bytes(old)
    walstream.start().ends_with(3, "beyond the position", "walstream positions reset")


def stop(walstream: Walstream) -> None:
    assert walstream.terminate() == 0
