"""Events of an outbox, from a server's WAL into the topics that rows name."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.test_beside import ask
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from walstream.records.partitioner import murmur2

pytestmark = pytest.mark.same_on_15

TABLE = """
CREATE TABLE outboxevent (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  aggregatetype text, aggregateid text, type text, payload jsonb,
  made timestamp, secret text);
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO outboxevent (aggregatetype, aggregateid) VALUES ('Past', '1');
INSERT INTO t VALUES (1, 'before');
"""
EVENT = """
INSERT INTO outboxevent (aggregatetype, aggregateid, type, payload, made, secret)
VALUES ('{}', '{}', 'Made', '{}', to_timestamp({}) AT TIME ZONE 'UTC', 'mail')
"""
STRAY = """
INSERT INTO outboxevent (aggregatetype, secret, part) VALUES ({}, 's3cret', 7)
"""
AN_HOUR_AGO = int(time.time()) - 3600 + 0.678
Run = Callable[..., Walstream]


def event(route: str, key: str, payload: str) -> str:
    return EVENT.format(route, key, payload, AN_HOUR_AGO)


@pytest.fixture
def events(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, lambda value: value) as opened:
        yield opened


@pytest.fixture
def run(database: Database, runs: Runs) -> Run:
    database.execute(TABLE)

    def made(**told: Any) -> Walstream:
        before = told.pop("before", [])
        sink = {"topic_partitions": 3, **told.pop("sink", {})}
        topic = told.pop("topic", runs.prefix + "event.{value}")
        outbox = {"kind": "outbox", "tables": ["public.outboxevent"], "topic": topic}
        handlers = [*before, {**outbox, **told}]
        return runs(
            database.dsn,
            sink={**sink, "handlers": handlers},
            source={"backfill": "initial", "tables": ["public.*"]},
        )

    return made


def of(reader: Reader, topic: str) -> list[Record]:
    name = f"{reader._prefix}{topic}"  # noqa: SLF001 - the test's own
    found = [one for one in reader.records if one.topic == name]
    return sorted(found, key=lambda one: (one.partition, one.offset))


@pytest.mark.parametrize("form", ["op", "debezium", "debezium_row", "event"])
def test_events_go_where_they_say_whatever_the_format_is(
    run: Run, database: Database, events: Reader, form: str
) -> None:
    mask = {"kind": "mask", "columns": ["secret"], "secret": "of some length, at least"}
    sink: dict[str, Any] = {"format": form}
    if form.startswith("debezium"):
        sink["debezium"] = {"name": "app"}
    walstream = run(
        before=[mask],
        sink=sink,
        timestamp="made",
        headers={"eventType": "type", "who": "secret"},
    )
    walstream.start().streaming()
    database.execute(event("Order", "17", '{"a": 1}'))
    database.execute(event("we ird/é", "18", '{"b": 2}'))
    database.execute("UPDATE outboxevent SET payload = NULL")
    database.execute("DELETE FROM outboxevent")
    database.execute("UPDATE t SET v = 'after'")
    events.until(lambda records: len(records) >= 4)
    assert walstream.terminate() == 0, walstream.text
    assert len(walstream.said("an event of an outbox table was updated")) == 1
    (left_out,) = walstream.said("table is an outbox")
    assert left_out["table"] == "public.outboxevent"
    assert len(events.read()) == 4  # two rows of t, and no event of the past
    assert {name.removeprefix(walstream.prefix) for name in events.topics()} == {
        "public.t", "event.Order", "event.we_x20_ird_x2F__xC3__xA9_",
    }  # fmt: skip
    (order,) = of(events, "event.Order")
    assert (order.key, order.value) == (b"17", b'{"a": 1}')
    assert order.partition == murmur2(b"17", 3)
    assert order.timestamp == round(AN_HOUR_AGO * 1000)
    headers = {name: value for name, value in order.headers if name != "id"}
    assert headers.pop("walstream-source")
    headers.pop("walstream-era", None)  # of formats that tell names
    assert headers.keys() == {"eventType", "who"}
    assert headers["eventType"] == b"Made"
    assert len(headers["who"]) == 64


def test_existing_events_are_sent_when_asked_for_while_it_streams(
    run: Run, events: Reader
) -> None:
    walstream = run().start().streaming()
    events.count(1)
    ask(walstream, "public.outboxevent")
    events.count(2)
    assert walstream.terminate() == 0, walstream.text
    asked = verb(walstream.configuration, "backfill", "public.outboxevent")
    assert asked.returncode == 2
    assert "is an outbox of sinks.kafka: only a stream sends" in asked.stderr
    (past,) = of(events, "event.Past")
    assert past.key == b"1"
    assert not past.value


def test_an_event_of_the_future_is_taken_by_kafka(
    run: Run, database: Database, events: Reader
) -> None:
    """Its topic keeps records for a week; brokers refuse what is an hour ahead."""
    walstream = run(timestamp="made").start().streaming()
    for key, at in enumerate((time.time() + 3 * 86_400, 0.0, -1e9)):
        database.execute(EVENT.format("Due", key, "{}", at))
    events.count(4)
    assert walstream.terminate() == 0, walstream.text
    ahead_ms = [one.timestamp - time.time() * 1000 for one in of(events, "event.Due")]
    assert max(ahead_ms) <= 0
    assert min(ahead_ms) > -7 * 86_400_000


def test_events_from_before_a_column_was_renamed_come_as_those_from_behind(
    run: Run, database: Database, events: Reader
) -> None:
    walstream = run().start().streaming()
    events.count(1)
    assert walstream.terminate() == 0, walstream.text
    database.execute(event("A", "1", "{}"))
    database.execute("ALTER TABLE outboxevent RENAME payload TO body")
    database.execute(event("A", "2", "[]").replace("payload", "body"))
    assert walstream.start().wait() == 2
    assert "has no column payload" in walstream.text
    assert "put rename_columns in front" in walstream.text
    both = {
        "kind": "rename_columns",
        "tables": ["public.outboxevent"],
        "columns": {"body": "payload"},
    }
    handlers = [both, *walstream.sink["handlers"]]
    walstream.sink = {**walstream.sink, "handlers": handlers}
    walstream.start().streaming()
    events.count(3)
    assert walstream.terminate() == 0, walstream.text
    found = {one.key: one.value for one in of(events, "event.A")}
    assert found == {b"1": b"{}", b"2": b"[]"}


def test_events_and_messages_of_one_topic_are_in_the_order_of_the_wal(
    run: Run, database: Database, events: Reader
) -> None:
    """An outbox that moves from a table to messages; and a kill repeats no other."""
    topic = f"{events._prefix}events"  # noqa: SLF001 - the test's own
    message = "SELECT pg_logical_emit_message({}, 'events', '{}')"
    sink = {
        "topic_partitions": 1,
        "batch_interval": "1s",  # events wait, and messages have no handler
        "messages": {"prefixes": ["events"], "topic": topic},
    }
    walstream = run(sink=sink, topic=topic).start().streaming()
    expected = []
    for number in range(0, 40, 4):
        steps = [
            event("A", "k", f"[{number}]"),
            message.format("true", f"[{number + 1}]"),
            event("A", "k", f"[{number + 2}]"),
        ]
        database.execute(f"BEGIN; {';'.join(steps)}; COMMIT")
        database.execute(message.format("false", f"[{number + 3}]"))
        expected += [b"[%d]" % one for one in range(number, number + 4)]
        if number == 20:
            events.until(lambda records: len(records) > 4)
            walstream.kill()
            walstream.start()
    events.until(lambda _: {one.value for one in of(events, "events")} >= {*expected})
    assert walstream.terminate() == 0, walstream.text
    found = [one.value for one in of(events, "events")]
    assert list(dict.fromkeys(found)) == expected


@pytest.mark.parametrize(
    ("told", "stray"),
    [
        ({"max_topics": 1}, ("'b'", "topic more than the 1 that are allowed")),
        ({}, ("NULL", "has no topic: its column 'aggregatetype' is NULL")),
        ({"topic": "{prefix}public.{{value}}"}, ("'t'", "has other records")),
        ({}, ("repeat('x', 250)", "names a topic that Kafka does not allow")),
        ({"partition": "part"}, ("'a'", "names partition 7 of topic")),
    ],
    ids=["too many", "null", "of a table", "too long", "partition"],
)  # fmt: skip
def test_what_has_no_place_stops_and_is_not_passed_by(
    run: Run,
    database: Database,
    events: Reader,
    told: dict[str, Any],
    stray: tuple[str, str],
) -> None:
    route, what = stray
    database.execute("ALTER TABLE outboxevent ADD part int")
    if "topic" in told:
        told = {"topic": told["topic"].format(prefix=events._prefix)}  # noqa: SLF001 - the test's own
    walstream = run(**told).start().streaming()
    if "topic" not in told:
        database.execute(event("a", "1", "{}"))
        events.count(2)
    database.execute(STRAY.format(route))
    database.execute("INSERT INTO t VALUES (2, 'behind')")
    assert walstream.wait() == 3
    assert what in walstream.text
    assert "s3cret" not in walstream.text
    assert len(events.read()) == (1 if "topic" in told else 2)


def test_a_sink_that_stopped_is_detached_and_goes_on_behind_a_filter(
    run: Run, database: Database, events: Reader, kafka: KafkaServer
) -> None:
    """The operator's way out: the row is left out, and what is behind it comes."""
    walstream = run()
    rows = {"topic": "rows_" + walstream.prefix + "{schema}.{table}"}
    walstream.others = {"rows": rows}
    walstream.start().streaming()
    database.execute("INSERT INTO outboxevent (aggregatetype) VALUES (NULL)")
    walstream.until("streaming to a detached sink")
    database.execute(event("a", "1", "{}"))
    with Reader(kafka.bootstrap, "rows_" + walstream.prefix) as others:
        others.until(lambda records: len(records) >= 4)  # they go on
    assert [one.topic for one in events.read()] == [f"{walstream.prefix}public.t"]
    assert walstream.terminate() == 0, walstream.text

    left_out = {
        "kind": "filter",
        "tables": ["public.outboxevent"],
        "operations": ["insert"],
        "column": "aggregatetype",
        "is_null": False,
    }
    handlers = [left_out, *walstream.sink["handlers"]]
    walstream.sink = {**walstream.sink, "handlers": handlers}
    walstream.start().until("sink is back in the source's stream")
    database.execute(event("a", "1", "[1]"))
    events.count(3)
    assert [one.value for one in of(events, "event.a")] == [b"{}", b"[1]"]
    assert walstream.terminate() == 0, walstream.text


def test_a_column_that_is_not_there_is_named_before_anything_is_sent(run: Run) -> None:
    walstream = run(headers={"h": "nothing"})
    assert walstream.start().wait() == 2
    told = "outbox: table 'public.outboxevent' has no column nothing"
    assert told in walstream.text
    checked = verb(walstream.configuration, "check", "--json")
    found = [one["what"] for one in findings(json.loads(checked.stdout))]
    assert f"sinks.kafka.handlers: {told}" in found


def findings(document: Any) -> Iterator[Any]:
    for source in document["sources"]:
        yield from source["findings"]


def test_events_of_many_new_topics_keep_their_order(
    run: Run, database: Database, events: Reader
) -> None:
    """Each topic is created while events of it, and of others, wait."""
    walstream = run().start().streaming()
    database.execute(
        "INSERT INTO outboxevent (aggregatetype, aggregateid, payload)"
        " SELECT 'n' || n % 97, n % 3, to_jsonb(n) FROM generate_series(1, 2000) n"
    )
    events.count(2001)
    assert walstream.terminate() == 0, walstream.text
    assert len(events.topics()) == 98
    for number in range(97):
        found = of(events, f"event.n{number}")
        for partition in range(3):
            sent = [int(one.value) for one in found if one.partition == partition]
            assert sent == sorted(sent)
        assert len(found) == sum(n % 97 == number for n in range(1, 2001))
