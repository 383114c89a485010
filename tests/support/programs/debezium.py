"""Debezium and walstream beside each other: the same WAL, the same options."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import psycopg

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.oracles.debezium_rules import Column, TableOf
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.debezium_variant import (
    MESSAGE,
    OURS,
    TRANSACTION,
    Variant,
    connector,
)
from tests.support.programs.walstream import Walstream
from tests.support.servers.apicurio import CONVERTER, LocalRegistry
from tests.support.servers.connect import LocalConnect
from walstream.formats.debezium.names import topic as topic_of

PUBLICATION: Final = "beside"
BEACON: Final = "beacon"  # a table
_PATIENCE_S: Final = 120.0
_COLUMNS: Final = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
  coalesce(pg_get_expr(d.adbin, d.adrelid), ''), a.attgenerated <> '',
  c.relispartition,
  CASE WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisreplident)
      THEN 'index'
    WHEN c.relreplident = 'n' THEN 'nothing'
    WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)
      THEN 'primary key'
    WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisunique)
      THEN 'unique index'
    ELSE '' END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""


@dataclass
class Beside:
    """Both of them, on one database; the way to write to it, and what was read."""

    database: Database
    kafka: KafkaServer
    folder: Path
    variants: Sequence[Variant]
    token: str = field(default_factory=lambda: f"d{token_hex(5)}")
    partitions: Mapping[str, int] = field(default_factory=dict)  # of a table's topics
    registry: LocalRegistry | None = None  # both write Avro
    seen: dict[tuple[str, str], dict[str, set[Column]]] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[bool, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._beacons = 0
        self.snapshots = False
        self._stack = ExitStack()
        self.connection = self._stack.enter_context(
            psycopg.connect(self.database.dsn, autocommit=True)
        )
        self.connect = LocalConnect(
            self.kafka.bootstrap,
            settings={"producer.linger.ms": 5},
            converter=CONVERTER if self.registry else "",
        )
        self._stack.callback(self.connect.close)
        self.theirs, self.ours = (
            self._stack.enter_context(Reader(self.kafka.bootstrap, prefix, _unread))
            for prefix in (f"{self.token}_", f"{OURS}{self.token}_")
        )
        first, *others = (
            one.sink(self.name(one), self.registry) for one in self.variants
        )
        self.walstream = Walstream(
            self.database.dsn,
            self.kafka.bootstrap,
            self.folder,
            "",
            source={"publication": PUBLICATION, "tables": [], "slot": self.token},
            sink=first,
            others={f"sink{number}": one for number, one in enumerate(others)},
        )
        self._stack.callback(self.walstream.close)

    def name(self, variant: Variant) -> str:
        """Return what stands for topic.prefix: also of the slot and the connector."""
        return f"{self.token}_{variant.word}"

    def prepare(self, *, slots: bool = True, **options: str) -> None:
        """Make publication, topics and slots, all at the same point of the WAL.

        Without slots both make their own, and begin with the rows that are there.
        """
        self.snapshots = not slots
        self.connection.execute(b"CREATE TABLE beacon (id int PRIMARY KEY)")
        told = "publish_via_partition_root = true"
        told += "".join(f", {name} = {one}" for name, one in options.items())
        self.connection.execute(
            f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES WITH ({told})".encode()
        )
        self.look()
        admin = TopicAdmin(self.kafka.bootstrap)
        for variant in self.variants:
            for schema, table in self.seen:
                topic = topic_of(self.name(variant), schema, table)
                for made in (topic, f"{OURS}{topic}"):
                    admin.create(made, self.partitions.get(table, 3))
            for word in (MESSAGE, TRANSACTION):
                topic = f"{self.name(variant)}.{word}"
                for made in (topic, f"{OURS}{topic}"):
                    admin.create(made, 1)
        if self.snapshots:
            return
        for slot in (self.token, *map(self.name, self.variants)):
            self.connection.execute(
                "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,)
            )

    def start(self) -> None:
        """Start both; back when both read."""
        for variant in self.variants:
            name = self.name(variant)
            told = connector(variant, self.database, name, PUBLICATION, self.registry)
            mode = "initial" if self.snapshots else "no_data"
            self.connect.put(name, {**told, "snapshot.mode": mode})
        self.connect.start()
        if self.snapshots:
            source = {**self.walstream.source, "backfill": "initial"}
            self.walstream.source = source
            self.walstream.start().until("backfill ended")
        else:
            self.walstream.start("--adopt-slot").streaming()
        for variant in self.variants:
            self.connect.until_running(self.name(variant))

    def look(self) -> None:
        """Note the columns as they are now: rules ask for their types."""
        rows = self.connection.execute(_COLUMNS.encode())
        for schema, table, column, *told, is_partition, key in rows:
            columns = self.seen.setdefault((schema, table), {})
            columns.setdefault(column, set()).add(Column(*told))
            self.keys[schema, table] = is_partition, key

    def settle(self) -> None:
        """Wait until both have written all that was committed until now."""
        self.look()
        self._beacons += 1
        self.connection.execute(b"INSERT INTO beacon VALUES (%s)", (self._beacons,))
        for reader in (self.theirs, self.ours):
            try:
                reader.until(self._is_settled, _PATIENCE_S, "each variant's beacon")
            except AssertionError:
                for variant in self.variants:
                    self.connect.runs(self.name(variant))  # else it says why not
                raise

    def _is_settled(self, records: list[Record]) -> bool:
        counts = Counter(one.topic for one in records if one.topic.endswith(BEACON))
        found = [count for count in counts.values() if count >= self._beacons]
        return len(found) == len(self.variants)

    def end(self) -> None:
        """Let both write all that they have read, and read it."""
        self.settle()
        self.connect.stop()
        assert self.walstream.terminate() == 0, self.walstream.text
        for reader in (self.theirs, self.ours):
            reader.read()

    def table(self, schema: str, table: str) -> TableOf:
        """Return what was seen of a table; of several forms the last."""
        columns = {
            name: replace(
                max(found, key=str),
                default="\n".join(sorted({one.default for one in found})),
            )
            for name, found in self.seen[schema, table].items()
        }
        return TableOf(columns, *self.keys[schema, table])

    def close(self) -> None:
        self._stack.close()


def _unread(value: bytes | None) -> bytes | None:
    return value


@contextmanager
def beside(
    database: Database,
    kafka: KafkaServer,
    folder: Path,
    variants: Sequence[Variant],
    **options: Any,
) -> Iterator[Beside]:
    """Have both made, and not yet started; both end with the block."""
    made = Beside(database, kafka, folder, variants, **options)
    try:
        yield made
    finally:
        made.close()


def by_topic(records: list[Record]) -> dict[str, list[Record]]:
    """Return the records by topic and by offset."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda one: (one.partition, one.offset)):
        found.setdefault(record.topic, []).append(record)
    return found
