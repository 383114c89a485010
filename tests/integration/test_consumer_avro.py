"""Consumers of records in Avro: a registry that is away loses and skips nothing."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from consumer import (
    BasicConsumer,
    ConsumerRecord,
    Measure,
    Op,
    PoisonRecord,
    PostgresMirror,
    SchemasRefused,
    Transaction,
    TransactionMirror,
)
from tests.integration.test_consumer_transactions import Bench
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.loads.avro_feed import AvroFeed
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Running, Setting
from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry
from walstream.formats.encodings.wire import head
from walstream.op import Kind

WAIT_S = 60
TARGET = "CREATE TABLE item (id int PRIMARY KEY, n bigint, amount numeric(5, 2))"
ROWS = [(1, 10, Decimal("1.50")), (3, -(1 << 63), None)]


@pytest.fixture
def registry() -> Iterator[FaultyRegistry]:
    with faulty_registry() as made:
        yield made


class Topic:
    """A topic in Avro, and what a basic consumer of it saw."""

    def __init__(self, kafka: KafkaServer, topic: str, server: FaultyRegistry) -> None:
        self.kafka, self.topic, self.server = kafka, topic, server
        TopicAdmin(kafka.bootstrap).create(topic, 1)
        self.feed = AvroFeed(kafka.bootstrap, topic, server)
        self.seen: list[Op] = []
        self.measures = dict.fromkeys(Measure, 0.0)

    def measure(self, what: Measure, value: float, *_: object) -> None:
        self.measures[what] += value

    @contextmanager
    def running(self, app: Any = None, **options: Any) -> Iterator[Running]:
        told = {"registry": {"url": self.server.url}, **options}
        with BasicConsumer(
            app or self.seen.append,
            group=f"g_{self.topic}",
            topics=[self.topic],
            kafka={"bootstrap.servers": self.kafka.bootstrap, "fetch.wait.max.ms": 10},
            metrics=self.measure,
            **told,
        ) as consumer:
            yield Running(consumer)

    def until(self, count: int, running: Running) -> None:
        def found() -> bool:
            if running.error is not None:
                raise running.error
            return len(self.seen) >= count

        wait_until(found, WAIT_S, f"{count} ops are handled")


@pytest.fixture
def topic(kafka: KafkaServer, topic_prefix: str, registry: FaultyRegistry) -> Topic:
    return Topic(kafka, f"{topic_prefix}item", registry)


def write_changes(feed: AvroFeed) -> None:
    """Write ops that make ROWS of nothing."""
    feed.insert(10, "1", "9", "1.5")
    feed.insert(20, "2", "0", "-0.01")
    old, new = ["1", "9", "1.50"], ["1", "10", "1.50"]
    feed.send(feed.op(Kind.UPDATE, 30, 0, old, new))
    feed.send(feed.op(Kind.DELETE, 40, 0, ["2", None, None]))
    feed.insert(50, "3", str(-(1 << 63)), None)
    feed.flush()


@pytest.mark.parametrize("batches", [False, True])
def test_ops_are_read_once_the_registry_answers(topic: Topic, batches: bool) -> None:
    class App:
        def handle_batch(self, ops: Any) -> None:
            topic.seen.extend(ops)

    server = topic.server
    server.stop()
    write_changes(topic.feed)
    with topic.running(App() if batches else None, on_poison="skip") as running:
        wait_until(running.consumer.lag, WAIT_S, "it reads")
        time.sleep(1.5)
        server.always = (503, b"<html>", "text/html")
        server.start()
        wait_until(lambda: server.asked, WAIT_S, "it asks")
        assert topic.seen == []
        server.always = None
        topic.until(5, running)
        server.stop()
        topic.feed.insert(60, "4", "1", "1")  # of schemas that it knows
        topic.feed.flush()
        topic.until(6, running)
    kinds = [op.kind for op in topic.seen]
    assert kinds[:5] == [*[Kind.INSERT] * 2, Kind.UPDATE, Kind.DELETE, Kind.INSERT]
    assert [(op.lsn, op.seq_id) for op in topic.seen][:3] == [(10, 0), (20, 0), (30, 0)]
    assert topic.seen[0].new.get("amount", Decimal) == Decimal("1.50")
    assert all(op.exact and op.key_names == {"id"} for op in topic.seen)  # type: ignore[attr-defined]
    assert topic.measures[Measure.POISON] == 0


def test_an_unknown_schema_stops_and_may_be_set_aside(topic: Topic) -> None:
    topic.feed.envelope.head = head(99)
    topic.feed.insert(10, "1", "9", "1.5")
    topic.feed.flush()
    with topic.running() as running:
        error = running.fails(PoisonRecord)
    assert "does not know its schema 99" in str(error)
    assert "registry=" in str(error)
    aside: list[ConsumerRecord] = []
    with topic.running(on_poison=aside.append) as running:
        wait_until(lambda: aside, WAIT_S, "it is set aside")
    running.join()
    assert [one.offset for one in aside] == [0]
    assert topic.seen == []


def test_a_damaged_record_is_poison_and_the_next_is_read(topic: Topic) -> None:
    topic.feed.feed.send_raw(topic.feed.envelope.head + b"\xff" * 20)
    topic.feed.insert(10, "1", "9", "1.5")
    topic.feed.flush()
    with topic.running() as running:
        assert "not the Avro data" in str(running.fails(PoisonRecord))
    with topic.running(on_poison="skip") as running:
        topic.until(1, running)
    assert topic.measures[Measure.POISON] >= 2


@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_who_may_not_read_schemas_is_stopped_whatever_the_policy(
    topic: Topic, policy: str
) -> None:
    topic.server.login = ("ann", "s3cr3t")
    write_changes(topic.feed)
    url = topic.server.url
    with topic.running(on_poison=policy) as running:
        error = running.fails(SchemasRefused)
    assert "basic.auth.user.info" in str(error)
    login = {"url": url, "basic.auth.user.info": "ann:s3cr3t"}
    with topic.running(registry=login) as running:
        topic.until(5, running)
    assert topic.measures[Measure.POISON] == 0


def test_a_stop_ends_the_wait_for_a_registry(topic: Topic) -> None:
    server = topic.server
    write_changes(topic.feed)
    server.slow = threading.Event()  # it takes connections, and says nothing
    begun = 0.0
    with topic.running(registry={"url": server.url, "timeout": 2}) as running:
        wait_until(lambda: server.asked, WAIT_S, "it asks")
        begun = time.monotonic()
    assert time.monotonic() - begun < 10
    running.join()
    server.slow.set()
    server.slow = None
    with topic.running() as running:
        topic.until(5, running)
    assert topic.measures[Measure.POISON] == 0


def test_without_a_registry_the_error_says_what_to_set(topic: Topic) -> None:
    topic.feed.insert(10, "1", "9", "1.5")
    topic.feed.flush()
    with topic.running(registry=None) as running:
        error = running.fails(PoisonRecord)
    assert "its schema is in a schema registry" in str(error)
    assert 'registry={"url"' in str(error)


def test_the_mirror_follows_exactly_once_through_outages(
    setting: Setting, registry: FaultyRegistry
) -> None:
    TopicAdmin(setting.kafka.bootstrap).create(setting.topic, 1)
    setting.database.execute(TARGET)
    feed = AvroFeed(setting.kafka.bootstrap, setting.topic, registry)
    write_changes(feed)
    registry.stop()
    told = {"registry": {"url": registry.url}, "on_poison": "skip"}
    mirror = PostgresMirror(setting.database.dsn)
    with setting.running(mirror, **told) as running:
        wait_until(running.consumer.lag, WAIT_S, "it reads")
        time.sleep(1)
        registry.fail(500)
        registry.start()
        running.until_read(1)
    rows = setting.database.fetch("SELECT id, n, amount FROM item ORDER BY id")
    assert rows == ROWS
    assert setting.measures[Measure.POISON] == 0
    # a new process knows no schema: in the middle of a batch there is one to ask for
    other = AvroFeed(setting.kafka.bootstrap, setting.topic, registry)
    other.envelope.head = head(77)
    feed.insert(60, "4", "4", None)
    feed.flush()
    other.insert(70, "5", "5", None)
    other.flush()
    asked = len(registry.asked)
    with setting.running(PostgresMirror(setting.database.dsn), **told) as running:
        setting.until(3, "item")
        wait_until(lambda: len(registry.asked) > asked + 2, WAIT_S, "it asks again")
        assert setting.measures[Measure.POISON] == 0
        registry.texts += ['"int"'] * (76 - len(registry.texts))
        registry.texts.append(other.envelope.schema_text)
        setting.until(4, "item")
    assert setting.measures[Measure.POISON] == 0


def test_whole_transactions_wait_for_the_registry(
    kafka: KafkaServer,
    newest_postgres: PostgresServer,
    topic_prefix: str,
    registry: FaultyRegistry,
) -> None:
    with temporary_database(newest_postgres) as database:
        bench = Bench(kafka, database, topic_prefix)
        database.execute(TARGET)
        feed = AvroFeed(kafka.bootstrap, bench.topic, registry)
        feed.send(feed.op(Kind.INSERT, 10, 0, new=["1", "9", "1.5"]), 0)
        feed.send(feed.op(Kind.INSERT, 10, 1, new=["2", "9", None]), 1)
        feed.flush()
        bench.tell(10, 0, 1)
        registry.stop()
        seen: list[int] = []
        mirror = TransactionMirror(database.dsn)

        def handle(tx: Transaction, whole: Any) -> None:
            seen.append(len(whole.ops))
            mirror.handle_transaction(tx, whole)

        told = {"registry": {"url": registry.url}, "on_poison": "skip"}
        with bench.running(handle, **told) as running:
            time.sleep(3)
            assert running.error is None
            registry.start()
            wait_until(lambda: seen, WAIT_S, "it is handled")
        assert seen == [2]
        assert database.fetch("SELECT id FROM item ORDER BY id") == [(1,), (2,)]
        registry.login = ("ann", "x")
        feed.send(feed.op(Kind.INSERT, 20, 0, new=["3", "9", None]), 0)
        feed.flush()
        bench.tell(20, 0)
        with bench.consumer(handle, **told) as consumer:
            Running(consumer).fails(SchemasRefused)
        assert (Measure.POISON, 1) not in bench.measures


def tail(topic: Topic, *more: str) -> "subprocess.Popen[str]":
    command = (sys.executable, "-m", "consumer", "tail", topic.topic)
    return subprocess.Popen(
        [*command, "--kafka", topic.kafka.bootstrap, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_tail_shows_them(topic: Topic, tmp_path: Path, as_json: bool) -> None:
    topic.server.login = ("ann", "s3cr3t")
    login = tmp_path / "login"
    login.write_text("# ours\nbasic.auth.user.info=ann:s3cr3t\ntimeout=5\n")
    write_changes(topic.feed)
    more = ("--registry", topic.server.url, "--registry-file", str(login))
    process = tail(topic, *more, *(["--json"] if as_json else []))
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
    finally:
        process.terminate()
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    if as_json:
        assert [json.loads(one)["op"] for one in lines] == ["c", "c", "u", "d", "c"]
    else:
        assert "Insert public.item id=1 n=9 amount=1.50" in lines[0]
        assert "n=10 (was 9)" in lines[2]


def test_walstream_tail_shows_them(topic: Topic) -> None:
    write_changes(topic.feed)
    walstream = str(Path(sys.executable).with_name("walstream"))
    command = [walstream, "tail", "--brokers", topic.kafka.bootstrap, topic.topic]

    def run(*more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, "-n", "9", *more],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    shown = run("--registry", topic.server.url)
    assert shown.returncode == 0, shown.stderr
    assert "insert public.item" in shown.stdout
    assert "n: 9 → 10" in shown.stdout
    assert '{"id":1}' in shown.stdout
    lines = run("--registry", topic.server.url, "--json", "--key", '{"id":3}')
    (line,) = map(json.loads, lines.stdout.splitlines())
    assert (line["kind"], line["new"]["n"]) == ("insert", -(1 << 63))
    bare = run()
    assert "--registry URL" in bare.stderr
    assert bare.returncode == 0
    topic.server.stop()
    away = run("--registry", topic.server.url)
    assert away.returncode == 5, away.stderr
    assert "when it answers" in away.stderr
