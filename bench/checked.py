"""Whether a topic holds what was written: a fast run that lost a row is none.

Counts, a sum of hashes in which no order shows, and the order: the numbers of what lies
in one partition only grow, as do (lsn, seq_id), and only a row that is there is
deleted. Each record's key is its row's.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import psycopg
from confluent_kafka import Consumer, Message, TopicPartition

from bench.shapes import TABLE, Shape
from tests.support.oracles.registered import RegisteredReader
from walstream.kafka.topic_reader import TopicReader

_WIDTH: Final = 6  # columns
_BLOCK: Final = 20_000
_PATIENCE_S: Final = 30.0
_MODULUS: Final = 1 << 64  # of the sums

# key, number of the row that is left, whole text, and (lsn, seq_id) where there is one
Change = tuple[str, int | None, str, tuple[int, int]]
Read = Callable[[bytes | None, bytes | None], Change]
_NO_NAME: Final = (-1, -1)  # Debezium's rows are unwrapped


@dataclass
class Sum:
    """What changes come to, in whatever order they are met."""

    count: int = 0
    digest: int = 0

    def add(self, texts: list[str]) -> None:
        self.count += len(texts)
        self.digest = (self.digest + sum(map(hash, texts))) % _MODULUS


@dataclass
class Truth:
    """What a topic has to hold: of whole changes, and where only new rows are sent."""

    whole: Sum = field(default_factory=Sum)
    new: Sum = field(default_factory=Sum)
    before: dict[str, int] = field(default_factory=dict)  # keys and their numbers
    after: dict[str, int] = field(default_factory=dict)


class Unlike(Exception):
    """A topic does not hold what was written."""


def read_op(key: bytes | None, value: bytes | None) -> Change:
    """Read walstream's."""
    record = orjson.loads(value or b"")
    name = record["lsn"], record["seq_id"]
    ((kind, rows),) = record["op"].items()
    new: int | None
    if kind == "Insert":
        row, new, text = rows, int(rows[1]), "I\t" + "\t".join(rows)
    elif kind == "Update":
        old, row = rows
        texts = row if old is None else [*old, *row]
        new, text = int(row[1]), "U\t" + "\t".join(texts)
    else:
        row, new, text = rows, None, "D\t" + rows[0]
    if orjson.loads(key or b"") != row[:1]:
        raise Unlike(f"the row of {row[0]!r} has key {key!r}")
    return row[0], new, text, name


def read_unwrapped(key: bytes | None, value: bytes | None) -> Change:
    """Read Debezium's, whose types are not all texts."""
    text = str(orjson.loads(key or b"")["id"])
    row = orjson.loads(value or b"null")  # the converter writes null as JSON, too
    return _debeziums(text, key, row)


def read_envelope(key: bytes | None, value: bytes | None) -> Change:
    """Read the new row of an envelope, of Debezium's or of walstream's."""
    text = str(orjson.loads(key or b"")["id"])
    return _debeziums(text, key, orjson.loads(value or b"")["after"])


def read_event(key: bytes | None, value: bytes | None) -> Change:
    """Read the row of format `event`, whose values have types."""
    (text,) = orjson.loads(key or b"")
    record = orjson.loads(value or b"")
    row = None if record["Action"] == "delete" else record["Columns"]
    return _debeziums(text, key, row)


def read_tungsten(key: bytes | None, value: bytes | None) -> Change:
    """Read the row of format `tungsten`, whose values are the server's texts."""
    record = orjson.loads(value or b"")
    row = record["record"]
    if orjson.loads(key or b"") != [row["id"]]:
        raise Unlike(f"the row of {row['id']!r} has key {key!r}")
    if record["_optype"] == "DELETE":
        return row["id"], None, "D\t" + row["id"], _NO_NAME
    return row["id"], int(row["a"]), "\t".join(row.values()), _NO_NAME


def reader_of_avro(url: str) -> Read:
    """Make what reads an envelope in Avro, as a stranger would."""
    reader = RegisteredReader(url)

    def read(key: bytes | None, value: bytes | None) -> Change:
        text = str(reader.read(key)["id"])
        return _debeziums(text, key, reader.read(value)["after"])

    return read


READERS: Final[dict[str, Read]] = {
    "op": read_op,
    "debezium": read_envelope,
    "event": read_event,
    "tungsten": read_tungsten,
}


def _debeziums(text: str, key: bytes | None, row: Any) -> Change:
    if row is None:
        return text, None, "D\t" + text, _NO_NAME
    if str(row["id"]) != text:
        raise Unlike(f"the row of {row['id']!r} has key {key!r}")
    at = row["at"]
    at = f"{at[:10]} {at[11:26]}+00"
    texts = (text, str(row["a"]), row["note"], at, row["amount"], row["name"])
    return text, row["a"], "\t".join(texts), _NO_NAME


def _lines(
    connection: "psycopg.Connection[tuple[object, ...]]", query: str
) -> Iterator[str]:
    with connection.cursor().copy(f"COPY ({query}) TO STDOUT".encode()) as copy:
        for line in copy:
            yield str(line[:-1], "utf-8")


def new_of(line: str) -> str:
    """Give what is left of a change where only the new row is sent."""
    if line[0] == "I":
        return line[2:]
    return "\t".join(line.split("\t")[-_WIDTH:]) if line[0] == "U" else line


class Checker:
    """Knows what was written from the server, which is asked once."""

    def __init__(self, dsn: str, shape: Shape) -> None:
        """Ask before anything is written for the rows that are there."""
        self._dsn = f"{dsn}?options=-cTimeZone%3DUTC%20-cDateStyle%3DISO"
        self._shape = shape
        self._truth = Truth(before=self._kept())
        self._asked = False

    def _kept(self) -> dict[str, int]:
        if not self._shape.folds:
            return {}
        with psycopg.connect(self._dsn) as connection:
            lines = list(_lines(connection, f"SELECT id, a FROM {TABLE}"))
        return {
            key: int(number) for key, number in (line.split("\t") for line in lines)
        }

    def truth(self) -> Truth:
        if self._asked:
            return self._truth
        self._asked = True
        self._truth.after = self._kept()
        with psycopg.connect(self._dsn) as connection:
            for query in self._shape.expected:
                block: list[str] = []
                for line in _lines(connection, query):
                    block.append(line)
                    if len(block) == _BLOCK:
                        self._add(block)
                        block = []
                self._add(block)
        if self._truth.whole.count != self._shape.changes:
            raise Unlike(f"{self._truth.whole.count} of {self._shape.changes} written")
        return self._truth

    def _add(self, block: list[str]) -> None:
        self._truth.whole.add(block)
        self._truth.new.add(list(map(new_of, block)))

    def check(
        self, bootstrap: str, topics: list[str], read: Read, *, exact: bool = True
    ) -> None:
        """Raise Unlike unless the topics hold all, once, in order."""
        truth = self.truth()
        wanted = truth.whole if read is read_op else truth.new
        found, live = Sum(), dict(truth.before)
        last: dict[tuple[str | None, int | None], int] = {}
        names: dict[tuple[str | None, int | None], tuple[int, int]] = {}
        for messages in _blocks(bootstrap, topics, wanted.count, exact=exact):
            texts = []
            for message in messages:
                key, number, text, name = read(message.key(), message.value())
                place = message.topic(), message.partition()
                if name is not _NO_NAME:
                    if name <= names.get(place, _NO_NAME):
                        raise Unlike(f"{place}: {name} comes after {names[place]}")
                    names[place] = name
                if number is None:
                    _delete(live, key)
                elif number <= last.get(place, -_MODULUS):
                    raise Unlike(f"{place}: row {number} comes after {last[place]}")
                else:
                    last[place] = number
                    if self._shape.folds:
                        live[key] = number
                texts.append(text)
            found.add(texts)
        if found != wanted:
            raise Unlike(f"{found} were found, {wanted} were written")
        if live != truth.after:
            raise Unlike(f"{len(live)} rows are left, {len(truth.after)} should be")


def _delete(live: dict[str, int], key: str) -> None:
    if live.pop(key, None) is None:
        raise Unlike("a row is deleted before it is there")


def _blocks(
    bootstrap: str, topics: list[str], count: int, *, exact: bool
) -> Iterator[list[Message]]:
    """Read all; not `exact`: transactions' markers take offsets, too."""
    servers = {"bootstrap.servers": bootstrap}
    reader = TopicReader(servers)
    bounds = reader.bounds(topics)
    reader.close()
    held = sum(bound.end - bound.first for bound in bounds.values())
    if held < count or (exact and held != count):
        raise Unlike(f"{held} records of {count} changes")
    held = count
    settings = {**servers, "group.id": "check", "enable.auto.commit": False}
    with Consumer(settings) as consumer:
        consumer.assign(
            [TopicPartition(*one, bound.first) for one, bound in bounds.items()]
        )
        while held:
            messages = consumer.consume(min(_BLOCK, held), timeout=_PATIENCE_S)
            if not messages:
                raise Unlike(f"the last {held} records cannot be read")
            held -= len(messages)
            yield messages
