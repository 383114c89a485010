"""Delivery in Kafka's transactions: whole, once, with its position."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SINK, SOURCE, Walstream, toml
from walstream.kafka.transaction_position import decode_position
from walstream.lsn import parse, show
from walstream.op import EPOCH_S

pytestmark = pytest.mark.same_on_15

TRANSACTIONAL = {"delivery": "transactional", "topic_partitions": 4}
_TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"


def insert(low: int, high: int) -> str:
    """Write a transaction of so many rows."""
    rows = f"generate_series({low}, {high}) i"
    return f"INSERT INTO t SELECT i, 'row ' || i FROM {rows}"  # noqa: S608 - numbers


@contextmanager
def raw(kafka: KafkaServer, prefix: str) -> Iterator[Reader]:
    """Read values as they are."""
    with Reader(kafka.bootstrap, prefix, json.loads) as reader:
        yield reader


def test_a_position_tells_the_last_transaction(
    database: Database, kafka: KafkaServer, runs: Runs, topic_prefix: str
) -> None:
    database.execute(_TABLE)
    topic = f"positions_{topic_prefix}"
    walstream = runs(database.dsn, sink={**TRANSACTIONAL, "positions_topic": topic})
    with walstream, Reader(kafka.bootstrap, topic_prefix) as reader:
        database.execute(insert(1, 10))
        records = reader.count(10)
        with Reader(kafka.bootstrap, topic, decode_position) as told:
            last = told.until(
                lambda some: some and some[-1].op.lsn == records[-1].op.lsn
            )[-1]
        found: Any = last.op
        assert found.is_whole
        made = found.commit_time // 1000 + EPOCH_S * 1000
        assert made == records[-1].timestamp
        assert last.key == f"{walstream.slot}-{system(database)}-{SINK}-stream".encode()
    assert TopicAdmin(kafka.bootstrap).setting(topic, "cleanup.policy") == "compact"


def system(database: Database) -> int:
    ((found,),) = database.fetch("SELECT system_identifier FROM pg_control_system()")
    return int(str(found))


def test_a_transaction_in_parts_is_there_once(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """It lasts longer than a Kafka transaction may; a kill meets it between parts."""
    database.execute(_TABLE)
    producer = {"bootstrap.servers": runs.bootstrap, "transaction.timeout.ms": "3000"}
    sink = {**TRANSACTIONAL, "producer": producer}
    rows = 400_000
    with runs(database.dsn, sink=sink) as walstream:
        database.execute(insert(1, rows))
        walstream.until("committed in parts")
        seen = len(reader.read())
        assert 0 < seen < rows  # a part is there
        walstream.kill()
        walstream.start().streaming()
        reader.until(lambda records: len(records) >= rows, 120)
        database.execute(insert(rows + 1, rows + 1))
        reader.count(rows + 1)
        assert (
            Counter(one.new["id"] for one in reader.records).most_common(1)[0][1] == 1
        )
        assert walstream.terminate() == 0


@pytest.mark.parametrize("form", ["walstream", "debezium"])
def test_transactions_told_are_there_once(
    form: str,
    database: Database,
    kafka: KafkaServer,
    runs: Runs,
    reader: Reader,
) -> None:
    database.execute(_TABLE)
    topic = f"told_{runs.prefix}"
    sink = {**TRANSACTIONAL, "txinfo": topic, "txinfo_form": form, "resolved": "0"}
    with runs(database.dsn, sink=sink) as walstream:
        for cycle in range(4):
            for each in range(50):
                number = 1000 * cycle + 2 * each
                database.execute(insert(number, number + 1))
            walstream.kill()
            walstream.start()
        walstream.streaming()
        reader.count(400)
        assert walstream.terminate() == 0
    with raw(kafka, topic) as told:
        records: Any = [one.op for one in told.read()]
    if form == "walstream":
        assert len(records) == 200
        assert len({one["lsn"] for one in records}) == 200
    else:
        names = [(one["status"], one["id"]) for one in records]
        assert [status for status, _ in names] == ["BEGIN", "END"] * 200
        assert len(set(names)) == 400


def test_an_outbox_event_is_there_once(
    database: Database, runs: Runs, kafka: KafkaServer, topic_prefix: str
) -> None:
    """Its records tell no name: without a position in Kafka they come again."""
    database.execute(
        "CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
        " aggregatetype text, aggregateid text, payload text)"
    )
    event = (
        "INSERT INTO outbox (aggregatetype, aggregateid, payload)"
        " VALUES ('order', 'a', %s)"
    )
    handler = {
        "kind": "outbox",
        "tables": ["public.outbox"],
        "topic": topic_prefix + "{value}",
    }
    sink = {**TRANSACTIONAL, "handlers": [handler]}
    with runs(database.dsn, sink=sink) as walstream, raw(kafka, topic_prefix) as reader:
        for cycle in range(4):
            for each in range(40):
                database.execute(event, str(1000 * cycle + each))
            walstream.kill()
            walstream.start()
        walstream.streaming()
        found = reader.count(160)
        payloads: list[Any] = [one.op for one in found]
        assert payloads == sorted(payloads)
        assert walstream.terminate() == 0


def test_a_rewind_sends_again(database: Database, runs: Runs, reader: Reader) -> None:
    database.execute(_TABLE)
    source = {"retain": "64MiB"}
    walstream = runs(database.dsn, source=source, sink=TRANSACTIONAL)
    with walstream:
        ((before,),) = database.fetch("SELECT pg_current_wal_insert_lsn()::text")
        database.execute(insert(1, 20))
        reader.count(20)
        assert walstream.terminate() == 0
    done = verb(
        walstream.configuration,
        "positions",
        "rewind",
        SOURCE,
        "--to",
        str(before),
        "--yes",
    )
    assert done.returncode == 0, done.stderr
    with walstream:
        reader.count(40)
        walstream.kill()  # what was sent again is not sent a third time
        walstream.start().streaming()
        database.execute(insert(21, 21))
        reader.until(lambda records: any(one.new["id"] == "21" for one in records))
        assert len(reader.read()) == 41


def test_records_are_committed_while_the_stream_is_quiet(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    with runs(database.dsn, sink=TRANSACTIONAL) as walstream:
        for number in range(5):
            database.execute(insert(number, number))
            reader.count(number + 1)
            time.sleep(0.05)
        wait_until(lambda: not walstream.said("error"), 1, "nothing fails")
        assert walstream.terminate() == 0


def test_an_audit_goes_by_the_position_in_kafka(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, sink=TRANSACTIONAL, source={"retain": "64MiB"})
    assert audited(walstream)["verdict"] == "unknown"  # nothing was ever sent
    with walstream:
        ((before,),) = database.fetch("SELECT pg_current_wal_insert_lsn()::text")
        database.execute(insert(1, 5))
        reader.count(5)
        assert audited(walstream)["verdict"] == "agree"
        assert walstream.terminate() == 0
    found = audited(walstream)
    assert found["verdict"] == "agree"
    assert "nothing is beyond the position" in found["text"]
    command = "positions", "rewind", SOURCE, "--to", str(before), "--yes"
    assert verb(walstream.configuration, *command).returncode == 0
    found = audited(walstream)
    assert found["verdict"] == "repeated"
    assert "from before a replay" in found["text"]


def audited(walstream: Walstream) -> Any:
    """Return what an audit says of the sink."""
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = verb(walstream.configuration, "positions", "audit", "--json")
    return json.loads(done.stdout)["sources"][0]["sinks"][0]


def test_an_older_state_folder_repeats_nothing(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    """It is of a clean stop, beyond which nothing had been sent when it was copied."""
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"retain": "64MiB"}, sink=TRANSACTIONAL)
    with walstream:
        database.execute(insert(1, 10))
        reader.count(10)
        assert walstream.terminate() == 0
    shutil.copytree(walstream.state.parent, tmp_path / "older")
    with walstream:
        database.execute(insert(11, 30))
        reader.count(30)
        walstream.kill()
        shutil.rmtree(walstream.state.parent)
        shutil.copytree(tmp_path / "older", walstream.state.parent)
        assert "will be left out" in audited(walstream)["text"]
        walstream.start().streaming()
        database.execute(insert(31, 31))
        reader.until(lambda records: any(one.new["id"] == "31" for one in records))
        assert len(reader.read()) == 31
        assert walstream.said("what Kafka has already is left out")


def test_a_table_that_is_gone_repeats_nothing_behind_handlers(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    """GIVEN the last transaction in Kafka is of a table whose topic no start looks at,
    WHEN it comes again, THEN one that handlers pass on with it does not take its place.
    """  # noqa: D205 - a sentence
    database.execute(_TABLE)
    database.execute("CREATE TABLE gone (id int PRIMARY KEY, v text)")
    handler = {"kind": "mask", "columns": ["v"], "text": "*"}
    walstream = runs(
        database.dsn,
        source={"retain": "64MiB"},
        sink={**TRANSACTIONAL, "handlers": [handler]},
    )
    with walstream:
        database.execute(insert(1, 10))
        reader.count(10)
        assert walstream.terminate() == 0
    shutil.copytree(walstream.state.parent, tmp_path / "older")
    with walstream:
        database.execute(insert(11, 20))
        database.execute("INSERT INTO gone VALUES (21, 'x')")
        reader.count(21)
        walstream.kill()
        shutil.rmtree(walstream.state.parent)
        shutil.copytree(tmp_path / "older", walstream.state.parent)
        database.execute("DROP TABLE gone")
        database.execute(insert(22, 22))
        walstream.start().streaming()
        reader.until(lambda records: any(one.new["id"] == "22" for one in records))
        assert walstream.terminate() == 0
        assert len(reader.read()) == 22
        assert walstream.said("what Kafka has already is left out")


def test_a_lost_state_folder_repeats_nothing(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"retain": "64MiB"}, sink=TRANSACTIONAL)
    with walstream:
        database.execute(insert(1, 10))
        reader.count(10)
        walstream.kill()
        ((confirmed,),) = database.fetch(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
            " WHERE database = current_database()"
        )
        shutil.rmtree(walstream.state.parent)
        walstream.start("--adopt-slot").streaming()
        database.execute(insert(11, 11))
        reader.until(lambda records: any(one.new["id"] == "11" for one in records))
        assert len(reader.read()) == 11
        (said,) = walstream.said("what Kafka has already is left out")
        assert said["begins"] == show(parse(str(confirmed)))
        assert walstream.terminate() == 0
