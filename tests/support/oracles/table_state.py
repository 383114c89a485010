"""Two readers of topics, who end at the tables' state: by position, and by arrival."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from tests.support.fixtures.postgres import Database
from tests.support.oracles.topic_reader import Record, in_order
from walstream.op import Kind
from walstream.row import NotSent

Rows = dict[tuple[str, bytes], dict[str, Any]]
"""Rows by table and key."""

Place = tuple[str, int, str]
"""Topic, partition, table."""


def by_position(records: Iterable[Record]) -> Rows:
    """Apply every record once, in the order of (lsn, seq_id), wherever it stands."""
    state: Rows = {}
    seen: set[Any] = set()
    for record in in_order(records):
        table = record.op.table.full_name
        name = (table, record.name)
        if name not in seen:
            seen.add(name)
            _apply(state, table, record)
    return state


def by_arrival(records: Iterable[Record]) -> Rows:
    """Apply each partition's records as they stand, as a consumer with a state does.

    What is streamed counts when it lies beyond all that was streamed before, a snapshot
    row when it lies beyond its chunk's. A Truncate stands in every partition: here it
    takes each partition's own rows.
    """
    partitions: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for record in records:
        partitions[record.topic, record.partition].append(record)
    whole: Rows = {}
    for part in partitions.values():
        state: Rows = {}
        position = (-1, -1)
        chunks: dict[tuple[int, int], int] = {}
        for record in sorted(part, key=lambda one: one.offset):
            if record.op.snapshot:
                chunk = (record.op.lsn, record.op.seq_id >> 32)
                index = record.op.seq_id & 0xFFFFFFFF
                if index <= chunks.get(chunk, -1):
                    continue
                chunks[chunk] = index
            elif record.name <= position:
                continue
            else:
                position = record.name
            _apply(state, record.op.table.full_name, record)
        whole |= state
    return whole


def _apply(state: Rows, table: str, record: Record) -> None:
    at = (table, record.key)
    match record.kind:
        case Kind.TRUNCATE:
            for other in [one for one in state if one[0] == table]:
                del state[other]
        case Kind.DELETE:
            state.pop(at, None)
        case Kind.INSERT | Kind.UPDATE:
            before = state.get(at, {})
            state[at] = {
                name: before.get(name, "a value that nobody sent")
                if isinstance(value, NotSent)
                else value
                for name, value in record.new.items()
            }


def in_place(records: Iterable[Record]) -> None:
    """Claim that snapshot rows stand where the format says, in each partition.

    After every streamed op of their table with an `lsn` up to their own, and before
    every one with a greater one; a rewind goes back only over what was there.
    """
    streamed: dict[Place, set[tuple[int, int]]] = defaultdict(set)
    rows: dict[Place, int] = defaultdict(int)  # the greatest lsn of a snapshot row
    for record in sorted(records, key=lambda r: (r.topic, r.partition, r.offset)):
        at = (record.topic, record.partition, record.op.table.full_name)
        if record.op.snapshot:
            greatest = max(streamed[at], default=(0, 0))[0]
            assert record.op.lsn >= greatest, f"{at}: row {record.name} too late"
            rows[at] = max(rows[at], record.op.lsn)
        elif record.name not in streamed[at]:
            assert record.op.lsn > rows[at], f"{at}: op {record.name} too late"
            streamed[at].add(record.name)


def rows_of(database: Database, *tables: str) -> Rows:
    """Read the tables themselves, by the key `id`, as PostgreSQL prints their rows."""
    found: Rows = {}
    for table in tables:
        for (row,) in database.fetch(
            f"SELECT (SELECT jsonb_object_agg(e.key, e.value)"  # noqa: S608
            f" FROM jsonb_each_text(to_jsonb(t)) AS e) FROM {table} AS t"
        ):
            found[table, f'["{row["id"]}"]'.encode()] = row
    return found
