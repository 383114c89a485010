"""A live Debezium is stopped under load, and walstream takes its slot over.

Same topics, same keys, same partitions: a sink behind them never notices. What Debezium
had sent and not confirmed comes again, under the same `source.lsn`.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, cast

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.loads.keyed_writer import SCHEMA, TABLES, KeyedWriter
from tests.support.oracles.slot_text import Change, open_slot, transactions
from tests.support.oracles.table_copy import rows
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.debezium_variant import Variant, connector
from tests.support.programs.walstream import Walstream
from tests.support.servers.connect import LocalConnect, jdbc_sink
from walstream.formats.debezium import DebeziumOptions

pytestmark = [pytest.mark.fault, pytest.mark.fault_long, pytest.mark.takes(120)]

_PUBLICATION: Final = "dbz_publication"
_ORACLE: Final = "oracle"
_PATIENCE_S: Final = 180.0
_MORE: Final = 300  # transactions, before and after
_VARIANT: Final = Variant(DebeziumOptions("app", schemas=True))
_COPY: Final = "SELECT pg_copy_logical_replication_slot(%s, %s)"
_INACTIVE: Final = (
    "SELECT FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
)
Event = tuple[str, str, str | None]
"""Operation, key, and the row's number."""


@dataclass(frozen=True)
class Scene:
    """A source under load, Debezium on it, and a sink behind its topics."""

    source: Database
    target: Database
    name: str  # topic.prefix, also of the slot
    debezium: LocalConnect
    sink: LocalConnect
    walstream: Walstream
    reader: Reader
    load: KeyedWriter

    def is_equal(self) -> bool:
        """Tell whether the sink's tables are the source's."""
        return self.sink.runs("sink") and all(
            rows(self.target, f"{self.name}_public_{table}") == rows(self.source, table)
            for table in TABLES
        )


@contextmanager
def scene(server: PostgresServer, kafka: KafkaServer, folder: Path) -> Iterator[Scene]:
    name = f"h{token_hex(5)}"
    sink = _VARIANT.sink(name) | {"topic": f"{name}.{{schema}}.{{table}}"}
    source_settings = {"slot": name, "publication": _PUBLICATION, "tables": []}
    # what it confirms seldom comes again after a kill
    seldom = {"offset.flush.interval.ms": 5000}
    with ExitStack() as stack:
        source, target = (
            stack.enter_context(temporary_database(server)) for _ in range(2)
        )
        source.execute(SCHEMA)
        source.execute(f"CREATE PUBLICATION {_PUBLICATION} FOR ALL TABLES")
        open_slot(source, f"{name}_{_ORACLE}")
        source.fetch("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", name)
        admin = TopicAdmin(kafka.bootstrap)
        topics = [f"{name}.public.{table}" for table in TABLES]
        for topic in topics:
            admin.create(topic, 3)
        debezium = LocalConnect(kafka.bootstrap, settings=seldom)
        stack.callback(debezium.close)
        debezium.put(name, connector(_VARIANT, source, name, _PUBLICATION))
        debezium.start()
        behind = stack.enter_context(LocalConnect(kafka.bootstrap))
        port = int(source.fetch("SHOW port")[0][0])
        behind.put("sink", jdbc_sink(topics, port, target.name))
        walstream = Walstream(
            source.dsn, kafka.bootstrap, folder, "", source=source_settings, sink=sink
        )
        stack.callback(walstream.close)
        reader = stack.enter_context(Reader(kafka.bootstrap, f"{name}.", _document))
        load = stack.enter_context(KeyedWriter(source))
        yield Scene(source, target, name, debezium, behind, walstream, reader, load)


@pytest.mark.parametrize("stop", [LocalConnect.stop, LocalConnect.kill])
def test_walstream_takes_over_from_a_live_debezium_and_no_sink_notices(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    stop: Callable[[LocalConnect], None],
) -> None:
    with scene(newest_postgres, kafka, tmp_path) as made:
        made.reader.until(lambda records: len(records) > _MORE, _PATIENCE_S)
        made.load.wait_for_more(_MORE)
        stop(made.debezium)
        wait_until(
            lambda: made.source.fetch(_INACTIVE, made.name), 60, "the slot is let go"
        )
        made.walstream.start("--adopt-slot").streaming()
        made.load.wait_for_more(_MORE)
        made.load.stop()
        wait_until(made.is_equal, _PATIENCE_S, "the sink's tables are the source's")
        assert made.walstream.terminate() == 0, made.walstream.text
        made.reader.read()
        told = transactions(made.source, f"{made.name}_{_ORACLE}")
        first, again = once(made.reader.records)
        assert histories(first) == wanted(
            change for one in told for change in one.changes
        )
    ours = [
        one for one in again if document(one)["source"]["version"] != _theirs(first)
    ]
    assert len(ours) == len(again), "Debezium itself sent some twice"
    if stop is LocalConnect.kill:
        assert again, "it was killed, and had confirmed all"


def once(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """Return the records without repeats, and the repeats; claim that they are equal.

    A repeat is in the same partition, and differs in who wrote it and when.
    """
    seen: dict[tuple[str, int, str], Record] = {}
    again = []
    for record in sorted(records, key=lambda one: (one.partition, one.offset)):
        if document(record) is None:
            continue
        source, op = document(record)["source"], document(record)["op"]
        earlier = seen.setdefault((record.topic, source["lsn"], op), record)
        if earlier is not record:
            again.append(record)
            assert record.partition == earlier.partition
            assert record.key == earlier.key
            for part in ("before", "after"):
                assert document(record)[part] == document(earlier)[part]
    return list(seen.values()), again


def _document(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)["payload"]


def document(record: Record) -> Any:
    """Return the envelope; None of a tombstone."""
    return cast("Any", record.op)  # as `_document` made it


def _theirs(records: list[Record]) -> str:
    return str(document(records[0])["source"]["version"])


def histories(records: list[Record]) -> dict[tuple[str, str], list[Event]]:
    """Return what happened to each key of each table; claim that it is in one place."""
    found: dict[tuple[str, str], list[Event]] = defaultdict(list)
    places: dict[tuple[str, str], set[int]] = defaultdict(set)
    for record in records:
        table = record.topic.rpartition(".")[2]
        key = str(json.loads(record.key)["payload"]["id"])
        after = document(record)["after"]
        number = None if after is None else str(after["n"])
        found[table, key].append((document(record)["op"], key, number))
        places[table, key].add(record.partition)
    assert all(len(partitions) == 1 for partitions in places.values())
    return dict(found)


def wanted(changes: Iterator[Change]) -> dict[tuple[str, str], list[Event]]:
    """Return the same of what test_decoding read."""
    found: dict[tuple[str, str], list[Event]] = defaultdict(list)
    for change in changes:
        table = change.table.rpartition(".")[2]
        new = change.new or {}
        old_key = (change.old or new)["id"] or ""
        key, number = new.get("id") or "", new.get("n")
        if change.kind == "UPDATE" and key != old_key:
            found[table, old_key].append(("d", old_key, None))
            found[table, key].append(("c", key, number))
        elif change.kind == "DELETE":
            found[table, old_key].append(("d", old_key, None))
        else:
            letter = "c" if change.kind == "INSERT" else "u"
            found[table, key].append((letter, key, number))
    return dict(found)


def test_debezium_takes_its_stream_back_by_the_copy_of_its_slot(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    """What walstream sent meanwhile comes again, and the topics miss nothing."""
    with scene(newest_postgres, kafka, tmp_path) as made:
        made.reader.until(lambda records: len(records) > _MORE, _PATIENCE_S)
        made.debezium.delete(made.name)
        wait_until(
            lambda: made.source.fetch(_INACTIVE, made.name), 60, "the slot is let go"
        )
        back = f"{made.name}_back"
        made.source.fetch(_COPY, made.name, back)
        made.walstream.start("--adopt-slot").streaming()
        made.load.wait_for_more(_MORE)
        assert made.walstream.terminate() == 0, made.walstream.text
        made.load.wait_for_more(_MORE)
        settings = connector(_VARIANT, made.source, made.name, _PUBLICATION)
        made.debezium.put(made.name, settings | {"slot.name": back})
        made.load.wait_for_more(_MORE)
        made.load.stop()
        wait_until(made.is_equal, _PATIENCE_S, "the sink's tables are the source's")
        made.reader.read()
        told = transactions(made.source, f"{made.name}_{_ORACLE}")
        first, again = once(made.reader.records)
        assert histories(first) == wanted(
            change for one in told for change in one.changes
        )
    theirs = [
        one for one in again if document(one)["source"]["version"] == _theirs(first)
    ]
    assert len(theirs) > _MORE, "what walstream sent did not come again"
