"""An era begins with each change by which a record may go elsewhere, and no other."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from walstream.config import SqlSource, load, topology
from walstream.errors import Restart
from walstream.kafka.delivered_tails import DeliveredTails, SinkTopics, StreamStart
from walstream.kafka.last_record import LastRecord, TopicTails
from walstream.kafka.topic import Topic
from walstream.kafka.transaction_position import (
    DeliveredTransactions,
    TransactionPosition,
)
from walstream.lsn import NEVER
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.sources import delivery_rules
from walstream.sources.delivered_topics import DeliveredTopics
from walstream.telemetry.meter import SinkMeter
from walstream.testing.memory import MemoryStore

HEADER = b"7/shop/0"
START = StreamStart(100, 900, repeats=True)
SOURCE = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["k"]
"""
SINK = """
[sinks.k]
kind = "kafka"
topic = "app.{table}"
"""
BROKERS = """
[sinks.k.producer]
"bootstrap.servers" = "localhost:9092"
"""
LAST = LastRecord(20, 0, 5, exact=True, value=b"digest")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "walstream.toml"


def topics(
    path: Path, source: str = "", sink: str = "", *more: str, base: str = SOURCE
) -> DeliveredTopics:
    path.write_text("\n".join((base, source, SINK, sink, BROKERS, *more)))
    made = DeliveredTopics(load(path, {}), "app", MemoryStore())
    made.start = START
    return made


def told(look: DeliveredTails | None) -> SinkTopics:
    assert look is not None
    found = vars(look)["_topics"]
    assert isinstance(found, SinkTopics)
    return found


def sink_topics(path: Path, *more: str, header: bytes = HEADER) -> SinkTopics:
    return told(topics(path, *more).of("k", header, joins=False))


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ('tables = ["sales.*"]', ""),
        ('exclude = ["public.x"]', ""),
        ('columns = {"public.t" = ["id"]}', ""),
        ('publication = "another"', ""),
        ('slot = "another"', ""),
        ('generated = "stored"', ""),
        ("", 'partitioner = "crc32"'),
        ("", 'fallback_topic = "rest"'),
        ("", 'topics = {"public.t" = {name = "app.u"}}'),
        ("", 'topics = {"public.t" = {name = "app.t", partition_key = ["id"]}}'),
        ("", 'on_too_large = "parked"'),
        ("", 'on_truncate = "skip"'),
        ("", "split_key_updates = false"),
        ("", "tombstones = true"),
        ("", 'format = "debezium"'),
        ("", 'handlers = [{kind = "filter", operations = ["insert"]}]'),
        ("", 'handlers = [{kind = "mask", columns = ["id"], text = "x"}]'),
    ],
)
def test_what_decides_where_a_record_goes_is_in_the_rules(
    path: Path, source: str, sink: str
) -> None:
    before = sink_topics(path).rules
    assert sink_topics(path).rules == before
    assert sink_topics(path, source, sink).rules != before


def test_another_secret_of_a_mask_is_another_rule(path: Path) -> None:
    """A masked key goes to another partition, and the rules say no secret."""
    masks = [
        'handlers = [{kind = "mask", columns = ["id"], secret = "%s"}]' % (text * 32)
        for text in "ab"
    ]
    one, other = (sink_topics(path, "", mask).rules for mask in masks)
    assert one != other
    assert "a" * 32 not in str(one)


@pytest.mark.parametrize(
    ("source", "sink"),
    [
        ('detach_after = "70s"', ""),
        ('heartbeat = "7s"', ""),
        ("verbose = true", ""),
        ('retain = "1MiB"', ""),
        ('alarm_retained_wal = "3GiB"', ""),
        ("", "batch_rows = 7"),
        ("", "verbose = true"),
        ("", "create_topics = false"),
        ("", "topic_partitions = 7"),
        ("", 'topic_config = {"retention.ms" = "70000000"}'),
    ],
)
def test_what_decides_nothing_ends_no_era(path: Path, source: str, sink: str) -> None:
    before = sink_topics(path).rules
    assert sink_topics(path, source, sink).rules == before


def test_neither_do_other_brokers_or_a_way_to_the_server(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic's id tells another cluster, the history another server."""
    before = sink_topics(path)
    one = sink_topics(path, "", "", '"socket.keepalive.enable" = "true"')
    assert one.rules == before.rules
    assert one.client != before.client
    base = SOURCE.replace("/run/postgresql", "/run/elsewhere")
    found = told(topics(path, base=base).of("k", HEADER, joins=False))
    assert found.rules == before.rules
    assert sink_topics(path, header=b"7/shop/1").rules != before.rules
    monkeypatch.setattr(delivery_rules, "__version__", "99")
    assert sink_topics(path).rules != before.rules


def test_another_sink_of_the_source_is_not_in_the_rules(path: Path) -> None:
    base = SOURCE.replace('["k"]', '["k", "log"]')
    made = topics(path, "", "", '[sinks.log]\nkind = "log"', base=base)
    found = told(made.of("k", HEADER, joins=False))
    assert found.rules == sink_topics(path).rules
    assert made.of("log", HEADER, joins=False) is None


@pytest.mark.parametrize(
    ("sink", "looks"),
    [
        ("", True),
        ('format = "op"', True),
        ('format = "debezium"', True),
        ('format = "debezium_row"', True),
        ('format = "event"', False),
        ('format = "tungsten"', False),
        ("skip_delivered = false", False),
        ("at_most_once = true", False),
        ('handlers = [{kind = "filter", operations = ["insert"]}]', True),
        ('handlers = [{kind = "passthrough"}]', True),
        ('handlers = [{kind = "drop_columns", columns = ["x"]}]', True),
        ('handlers = [{kind = "outbox", tables = ["public.o"]}]', True),
    ],
)
def test_records_that_tell_no_name_are_sent_again(
    path: Path, sink: str, looks: bool
) -> None:
    found = topics(path, "", sink).of("k", HEADER, joins=False)
    assert (found is not None) is looks


def test_what_handlers_of_packages_make_of_an_op_nobody_knows(path: Path) -> None:
    made = topics(path)
    rules = vars(vars(made)["_rules"])
    config: Any = rules["_sinks"]["k"]
    handlers = [SimpleNamespace(kind="filter"), SimpleNamespace(kind="of_a_package")]
    rules["_sinks"] = {"k": config.model_copy(update={"handlers": handlers})}
    assert made.of("k", HEADER, joins=False) is None


def test_rows_that_were_polled_are_sent_again(path: Path) -> None:
    made = topics(path)
    vars(vars(made)["_rules"])["_source"] = SqlSource.model_construct()
    assert made.of("k", HEADER, joins=False) is None


def test_nothing_is_looked_for_where_no_stream_begins(path: Path) -> None:
    made = topics(path)
    made.start = None
    assert made.of("k", HEADER, joins=False) is None


def test_one_that_joins_was_never_sent_it(path: Path) -> None:
    made = topics(path)
    for joins in (True, False):
        look = made.of("k", HEADER, joins=joins)
        assert vars(look)["_start"] == replace(START, repeats=not joins)
    assert made.start == START


OTHER_SINK = """
[sinks.other]
kind = "kafka"
topic = "%s"
[sinks.other.producer]
"bootstrap.servers" = "%s"
"""


@pytest.mark.parametrize(
    ("topic", "brokers", "alone"),
    [
        ("other.{table}", "localhost:9092", True),
        ("app.{table}", "localhost:9092", False),
        ("app.t", "localhost:9092", False),
        ("app.u", "localhost:9092", True),
        ("app.{table}", "localhost:9093,localhost:9092", False),
        ("app.{table}", "localhost:9093", True),
    ],
)
def test_a_topic_that_another_sink_may_write_to_does_not_count(
    path: Path, topic: str, brokers: str, alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "_check_sinks_of_one", lambda _: ())
    base = SOURCE.replace('["k"]', '["k", "other"]')
    made = topics(path, "", "", OTHER_SINK % (topic, brokers), base=base)
    assert told(made.of("k", HEADER, joins=False)).counts("app.t") is alone


TWO = (
    SOURCE.replace("sources.app", "sources.two")
    + """
slot = "two"
publication = "two"
tables = ["public.u"]
"""
)


@pytest.mark.parametrize("same", [True, False])
def test_nor_does_one_that_another_source_writes_to(path: Path, same: bool) -> None:
    two = TWO if same else TWO.replace('["k"]', '["other"]')
    other = OTHER_SINK % ("app.{table}", "localhost:9092")
    other = "" if same else other.replace("kafka", 'kafka"\nformat = "debezium', 1)
    made = topics(path, "", 'format = "debezium"', other, base=two + SOURCE)
    counts = told(made.of("k", HEADER, joins=False)).counts
    assert [counts(name) for name in ("app.t", "app.u")] == [True, False]


def test_topics_of_no_rows_do_not_count(path: Path) -> None:
    sink = 'txinfo = "info"\non_too_large = "parked"\n'
    sink += 'messages = {prefixes = ["note"]}'
    counts = sink_topics(path, "", sink).counts
    names = ("info", "parked", "note", "app.t")
    assert [counts(name) for name in names] == [False, False, False, True]


def test_a_stream_that_ends_uses_nothing_from_there_on(path: Path) -> None:
    made = topics(path)
    look = made.of("k", HEADER, joins=False)
    assert look is not None
    assert look.until == NEVER
    found, none = Topic("t", "t", 2, 1000), Topic("u", "u", 2, 1000)
    found.tails = TopicTails("t", {0: LAST, 1: replace(LAST, lsn=19)})
    sink: Any = SimpleNamespace(topics={"t": found, "u": none})
    made.end_at([sink], 20)
    assert look.until == 20
    assert list(found.tails.tails) == [1]
    made.end_at([sink], NEVER)
    assert look.until == NEVER
    assert list(found.tails.tails) == [1]


def test_a_mark_that_is_not_met_costs_no_other_sink(path: Path) -> None:
    """As where tables were taken out of one sink alone."""
    both = SOURCE.replace('["k"]', '["k", "l"]')
    other = SINK.replace("sinks.k", "sinks.l").replace("app.", "other.")
    more = (other + 'delivery = "transactional"', BROKERS.replace("sinks.k", "sinks.l"))
    made = topics(path, "", 'delivery = "transactional"', *more, base=both)
    position = TransactionPosition(200, 5, "7/shop/0")

    def begun(sink: str) -> DeliveredTransactions:
        found = made.transactions(sink, HEADER, SinkMeter(), joins=False)
        assert found is not None
        return found

    one = begun("k")
    assert not one.begin(position)
    op = ReplicationOp(Kind.INSERT, Table("public", "t", ("id",)), 150, 0, new=["1"])
    assert one.has(op, Transaction(150))
    with pytest.raises(Restart):
        one.proven(300)
    assert "replay" in begun("k").begin(position)
    assert not begun("l").begin(position)
