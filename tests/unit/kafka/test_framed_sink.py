"""Records with their schemas' ids: held until those are known, each behind its own."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.unit.kafka.test_record_sink import LIMIT, Outbox
from walstream.config.registry import Registry
from walstream.errors import WalstreamError
from walstream.formats.context import Context
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.framed_sink import FramedSink
from walstream.kafka.registry.client import RegisteredText
from walstream.kafka.registry.errors import RegistryAway, SchemaIncompatible
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.topic import Topic
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import SinkRules
from walstream.records.router import Router, RoutingRules
from walstream.testing.memory import MemoryStore

OLD = Table("public", "t", ("id", "v"), (0,), (23, 25))
NEW = Table("public", "t", ("id", "v", "w"), (0,), (23, 25, 25))
OTHER = Table("public", "u", ("id",), (0,), (23,))


class Client:
    """A registry that gives each schema of a subject an id of its own."""

    heard_at = 0.0
    where = "http://r"

    def __init__(self) -> None:
        self.error: WalstreamError | None = None
        self.schemas: list[tuple[str, str]] = []
        self.asked = 0

    def id_of(self, schema: SubjectSchema) -> int:
        self.asked += 1
        if self.error is not None:
            raise self.error
        found = schema.subject, schema.text
        if found not in self.schemas:
            self.schemas.append(found)
        return 0x01020300 + self.schemas.index(found)

    def latest(self, _subject: str) -> str | None:
        return None

    def schema_of(self, number: int, *, anew: bool) -> RegisteredText:
        assert anew
        return RegisteredText("AVRO", f"{number}")

    def close(self) -> None:
        """Close nothing."""

    def id_in(self, record: bytes) -> tuple[str, int]:
        """Return the subject of a record's id, and how many columns its schema has."""
        assert record[:4] == b"\0\1\2\3"  # Confluent's: a zero byte, then the id
        subject, text = self.schemas[record[4]]
        return subject, text.count('"v"') + text.count('"w"')


class RoomyOutbox(Outbox):
    """One that takes more."""

    has_room = True
    outage = None
    unreachable = False


class Rig:
    """A sink, its outbox, and the registry."""

    def __init__(self) -> None:
        self.client: Any = Client()
        self.store = MemoryStore()
        self.outbox: Outbox = RoomyOutbox()
        self.transaction = Transaction(8)
        self._open: list[FramedSink] = []
        self.sink = self.start()

    def start(self) -> FramedSink:
        """Begin a stream, by what is kept."""
        told = Registry(url="http://r")
        options = DebeziumOptions("app", adjust="avro")
        context = Context(debezium=options, encoding="avro")
        self.outbox = RoomyOutbox()
        topics: Any = SimpleNamespace(
            known={one: Topic(one, one, 1, LIMIT) for one in ("t", "u")},
            have=lambda _: True,
            limits=(LIMIT, LIMIT),
            disown=lambda: None,
            close=lambda: None,
        )
        for topic in topics.known.values():
            topic.unproven.clear()
        self.sink = FramedSink(
            SinkRules("k", "op", "murmur2", "send", False, b"1/db/1", context),
            Router("app", RoutingRules({}, "{table}", "")),
            topics,
            producer={},
            ids=SchemaIds("k", told, self.store, client=lambda _: self.client),
        )
        self.sink._outboxes = self.outbox  # type: ignore[assignment]  # noqa: SLF001 - no Kafka
        self.sink._fit._limits = (LIMIT, LIMIT)  # noqa: SLF001 - likewise
        self._open.append(self.sink)
        return self.sink

    def send(self, table: Table, *row: str) -> None:
        op = ReplicationOp(Kind.INSERT, table, 8, 0, new=[*row])
        self.sink.send(op, self.transaction)

    def serve(self) -> None:
        """Try again what is held, as an outbox does: in order."""
        while self.outbox.held and self.outbox.held[0]():
            self.outbox.held.pop(0)

    def until(self, known: Callable[[], object]) -> None:
        def served() -> object:
            self.serve()
            return known()

        wait_until(served, 10, "it is so")

    @property
    def sent(self) -> list[tuple[tuple[str, int], tuple[str, int]]]:
        """Return what the ids of the records' keys and values are of."""
        return [
            (self.client.id_in(key), self.client.id_in(value))
            for _, value, key, *_ in self.outbox.records
        ]

    def close(self) -> None:
        for one in self._open:
            one.close()


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.close()


def test_each_record_is_behind_the_ids_of_its_own_schemas(rig: Rig) -> None:
    """A key's is not its row's, and a row of before has the schema of before."""
    for table, *row in (
        (OLD, "1", "a"),
        (OTHER, "1"),
        (NEW, "2", "b", "c"),
        (OLD, "3", "a"),  # a replay's
    ):
        rig.send(table, *row)
        rig.until(lambda: not rig.outbox.held)
    key = ("t-key", 0)
    assert rig.sent == [
        (key, ("t-value", 1)),
        (("u-key", 0), ("u-value", 0)),
        (key, ("t-value", 2)),
        (key, ("t-value", 1)),
    ]


def test_a_registry_that_is_away_holds_records_and_their_transaction(
    rig: Rig,
) -> None:
    rig.client.error = RegistryAway("away")
    rig.send(OLD, "1", "a")
    rig.send(OLD, "2", "a")
    rig.until(lambda: rig.sink.outage)
    assert rig.outbox.records == []
    assert rig.transaction.undelivered == 2  # no position passes it
    assert rig.sink.waiting
    rig.client.error = None
    rig.until(lambda: not rig.outbox.held)
    assert rig.sent == [(("t-key", 0), ("t-value", 1))] * 2
    assert rig.transaction.undelivered == 2  # of the producer, by now
    assert not rig.sink.waiting


def test_a_replay_of_an_older_shape_has_its_id_whatever_the_subject_takes(
    rig: Rig,
) -> None:
    """Away, or strict: both shapes were registered once."""
    for table, *row in ((OLD, "1", "a"), (NEW, "2", "b", "c")):
        rig.send(table, *row)
        rig.until(lambda: not rig.outbox.held)
    for error in (RegistryAway("away"), SchemaIncompatible("no")):
        rig.start()
        rig.client.error = error
        for table, *row in ((OLD, "1", "a"), (NEW, "2", "b", "c"), (OLD, "3", "a")):
            rig.send(table, *row)
            rig.until(lambda: not rig.outbox.held)
        assert [value for _, (_, value) in rig.sent] == [1, 2, 1]
