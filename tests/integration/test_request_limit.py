"""What no request to the brokers has room for is refused, or parked, and never resent.

A broker closes the connection at a request over its socket.request.max.bytes: to the
producer it is down, again and again.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.operator import Operator, found
from tests.support.programs.walstream import Walstream
from walstream.records.record_size import RECORD_OVERHEAD
from walstream.testing.servers import LocalKafka

REQUEST = 2_000_000  # bytes, of the brokers
TOPIC = 10_000_000
PREFIX = "large."
NARROW = {"socket.request.max.bytes": str(REQUEST)}


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield fresh


@pytest.fixture
def narrow(own_kafka: OwnKafka) -> LocalKafka:
    """Start a broker that takes less in a request than its topic takes in a record."""
    made = own_kafka(NARROW)
    TopicAdmin(made.bootstrap).create(f"{PREFIX}public.t", max_message_bytes=str(TOPIC))
    return made


def fed(runs: Runs, narrow: LocalKafka, database: Database, **sink: str) -> Walstream:
    # as large on the wire as it is counted
    producer = {"bootstrap.servers": narrow.bootstrap, "compression.type": "none"}
    options = {"prefix": PREFIX, "sink": {"producer": producer, **sink}}
    return runs(database.dsn, bootstrap=narrow.bootstrap, **options)


def test_a_record_that_no_request_has_room_for_stops_until_the_brokers_take_it(
    database: Database, runs: Runs, narrow: LocalKafka, tmp_path: Path
) -> None:
    walstream = fed(runs, narrow, database).start().streaming()
    database.execute("INSERT INTO t VALUES (1, repeat('x', 4000000))")
    walstream.ends_with(
        3, "public.t", f"{PREFIX}public.t", "socket.request.max.bytes", "restart it"
    )
    assert not walstream.said("brokers are down")

    report = Operator(tmp_path / "operator").check(walstream)
    said = found(report, "topic-request-size")
    assert str(REQUEST) in said["what"]
    assert str(TOPIC) in said["what"]
    assert "socket.request.max.bytes" in said["repair"]["then"]

    narrow.stop()
    narrow.settings = {}
    narrow.start()
    walstream.start().streaming()
    with Reader(narrow.bootstrap, PREFIX) as reader:
        assert len(reader.count(1)[0].new["v"]) == 4_000_000


def test_a_record_that_no_request_has_room_for_is_parked(
    database: Database, runs: Runs, narrow: LocalKafka
) -> None:
    fed(runs, narrow, database, on_too_large=f"{PREFIX}parked").start().streaming()
    database.execute(
        "INSERT INTO t VALUES (1, repeat('x', 4000000)); INSERT INTO t VALUES (2, 'v')"
    )
    with Reader(narrow.bootstrap, PREFIX, json.loads) as reader:
        records = reader.count(2)
    (parked,) = [one for one in records if one.topic.endswith("parked")]
    assert parked.key == b'["1"]'


def test_the_largest_record_that_is_taken_passes(
    database: Database, runs: Runs, narrow: LocalKafka
) -> None:
    walstream = fed(runs, narrow, database).start().streaming()
    database.execute("INSERT INTO t VALUES (1, '')")
    with Reader(narrow.bootstrap, PREFIX) as reader:
        around = len(reader.count(1)[0].value)
        room = REQUEST - 1024 - len("walstream") - RECORD_OVERHEAD - len('["2"]')
        database.execute("INSERT INTO t VALUES (2, repeat('x', %s))", room - around)
        assert len(reader.count(2)[1].value) > REQUEST - 1500
    database.execute("INSERT INTO t VALUES (3, repeat('x', %s))", room)
    walstream.ends_with(3, "socket.request.max.bytes")
