"""Values of rows that a later Update may leave out, in the application's database.

They are kept by partition, since only a partition's ops have the order of their rows,
and change in the transaction of the ops: so an op is filled with what its row had then,
and never with a later value. What was kept up to another position than the state's is
not believed: ops were handled without it, or the state was moved by hand.

Callers hold the transaction, and the lock of the partition.
"""

# ruff: noqa: S608 - of constants alone

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.pg_catalog import BELOW, IS, IS_NOT, MINUS, unnest
from consumer.state.advisory_lock import lock_key
from consumer.state.row_fold import (
    Changes,
    KeptValues,
    RowChange,
    RowFold,
    change_of,
    wanted,
)
from consumer.state.row_keys import RowKeys, RowName, WholeRowsError

_NAME: Final = "replication_consumer_value"
_TEXT: Final = "pg_catalog.text NOT NULL"
_PLAIN: Final = 'pg_catalog.text COLLATE pg_catalog."C" NOT NULL'
_CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {_NAME} (group_id {_TEXT}, topic {_TEXT},"
    f" partition integer NOT NULL, relation {_TEXT}, key {_PLAIN},"
    f' "column" {_PLAIN}, value {_TEXT},'
    ' PRIMARY KEY (group_id, topic, partition, relation, key, "column"))'
)
_FOUND: Final = (
    "SELECT n.nspname FROM pg_catalog.pg_class c"
    f" JOIN pg_catalog.pg_namespace n ON n.oid {IS} c.relnamespace"
    f" WHERE c.oid {IS} pg_catalog.to_regclass('{_NAME}')"
)
_PLACE: Final = (
    f"v.group_id {IS} %(group)s AND v.topic {IS} %(topic)s"
    f" AND v.partition {IS} %(partition)s"
)
_NAMED: Final = f"{_PLACE} AND v.relation {IS} w.relation AND v.key {IS} w.key"
_NO_KEY: Final = ""  # of a row that holds the last columns of its table, as JSON
_LAYOUT: Final = "layout"  # where the last columns are not: of the oldest values
_SEAL: Final = ""  # the table of the row that holds the position, and the tables' keys
_TEXTS: Final = "%({})s::pg_catalog.text[]"
_ROWS: Final = unnest(
    _TEXTS.format("relations"), _TEXTS.format("keys"), "%(with_values)s::boolean[]"
)
# LATERAL and OFFSET: by the index, whatever the server believes of the table's size
_READ: Final = (
    'SELECT relation, key, "column", CASE WHEN with_value AND'
    f" through {MINUS} own {BELOW} %(limit)s THEN value END FROM ("
    '  SELECT w.relation, w.key, w.with_value, found."column", found.value,'
    "   pg_catalog.sum(found.size) OVER (ORDER BY w.number) AS through,"
    "   pg_catalog.sum(found.size) OVER (PARTITION BY w.number) AS own"
    f"  FROM {_ROWS} WITH ORDINALITY AS w (relation, key, with_value, number)"
    '  CROSS JOIN LATERAL (SELECT v."column", v.value, CASE WHEN w.with_value'
    f"    AND w.key {IS_NOT} '{_NO_KEY}' THEN pg_catalog.octet_length(v.value)"
    "    ELSE 0 END AS size"
    f"   FROM {{value}} v WHERE {_NAMED} OFFSET 0) AS found) AS kept"
)
_PUT: Final = (
    'INSERT INTO {value} (group_id, topic, partition, relation, key, "column", value)'
    " SELECT %(group)s, %(topic)s, %(partition)s, relation, key, one, value FROM "
    + unnest(*map(_TEXTS.format, ("relations", "keys", "columns", "values")))
    + " AS w (relation, key, one, value)"
    ' ON CONFLICT (group_id, topic, partition, relation, key, "column")'
    " DO UPDATE SET value = EXCLUDED.value"
)
_REMOVE: Final = (
    f"DELETE FROM {{value}} WHERE ctid {IS} ANY(ARRAY(SELECT found.ctid FROM "
    + unnest(*map(_TEXTS.format, ("relations", "keys", "columns")))
    + ' AS w (relation, key, "column") CROSS JOIN LATERAL ('
    f' SELECT v.ctid FROM {{value}} v WHERE {_NAMED} AND v."column" {IS} w."column"'
    " OFFSET 0) AS found))"
)
_EMPTY: Final = (
    f"DELETE FROM {{value}} v WHERE {_PLACE} AND v.relation {IS} %(relation)s"
    f" AND v.key {IS_NOT} '{_NO_KEY}'"
)
_COLUMNS: Final = f'"column" {IS} ANY(%(columns)s::pg_catalog.text[])'
_DROP: Final = f"{_EMPTY} AND v.{_COLUMNS}"
_DOUBT: Final = (
    f'{_EMPTY} AND v."column" {IS} ANY(%(doubted)s::pg_catalog.text[])'
    " AND EXISTS (SELECT FROM {value} w"
    f" WHERE w.group_id {IS} v.group_id AND w.topic {IS} v.topic"
    f" AND w.partition {IS} v.partition AND w.relation {IS} v.relation"
    f" AND w.key {IS} v.key AND w.{_COLUMNS})"
)
_READ_SEAL: Final = (
    f"SELECT v.value FROM {{value}} v WHERE {_PLACE} AND v.relation {IS} '{_SEAL}'"
)
_FORGET: Final = (
    f"DELETE FROM {{value}} v WHERE {_PLACE}"
    f" AND v.relation {IS_NOT} ALL(%(relations)s::pg_catalog.text[])"
)
_MEMORY: Final = 16 << 20  # bytes of values that are read for a batch, and one row more


def make_value_table(connection: psycopg.Connection[Any]) -> str:
    """Create the table where it is missing; return its schema."""
    found = connection.execute(_FOUND).fetchone()
    if found is None:
        with connection.transaction():
            connection.execute(
                "SELECT pg_catalog.pg_advisory_xact_lock(%s)",
                (lock_key("", "replication", "tables"),),
            )
            connection.execute(_CREATE)
        found = connection.execute(_FOUND).fetchone()
    if found is None:
        raise psycopg.errors.InvalidSchemaName("no schema is in the search_path")
    return str(found[0])


class KeyRefused(Exception):
    """The op's table is kept by a key that does not name its rows; the cause says."""

    def __init__(self, op: Op, cause: WholeRowsError) -> None:
        super().__init__()
        self.op, self.cause = op, cause


@dataclass(slots=True)
class Filling:
    """Ops whose rows were filled, and what is to be kept behind them."""

    kept: KeptValues
    changes: list[RowChange | None]  # of each op; None: of a table that is not kept
    fold: RowFold
    count: int  # ops that were filled, from the first one on
    of_all: bool = False  # partitions

    def behind(self, handled: int) -> Changes:
        """Return what is kept otherwise behind so many of the ops."""
        if handled == len(self.changes):
            return self.fold.changes
        fold = RowFold(self.kept, of_all=self.of_all)
        for change in self.changes[:handled]:
            if change is not None:
                fold.take(change)
        return fold.changes


class ValueStore:
    """The values of one partition of a group, or of all that a reader handles."""

    def __init__(
        self,
        group: str,
        place: Place,
        keys: RowKeys,
        schema: str,
        memory: int = _MEMORY,
    ) -> None:
        """Keep them in the table of `schema`; read at most `memory` bytes at once."""
        self._keys = keys
        self._table = sql.Identifier(schema, _NAME)
        self._memory = memory
        self._of_all = place.partition < 0
        self._place = {
            "group": group,
            "topic": place.topic,
            "partition": place.partition,
        }
        self._statements: dict[str, bytes] = {}

    def believe(self, tx: psycopg.Connection[Any], position: str) -> None:
        """Forget what was not kept up to this position, or is by other keys."""
        found = self._run(tx, _READ_SEAL).fetchone()
        at, _, told = found[0].partition(" ") if found else ("", "", "")
        tables = self._keys.tables
        same: list[str] = []
        if at == position:
            then = json.loads(told)
            same = [name for name, key in tables.items() if then.get(name) == [*key]]
            if len(same) == len(then):
                return
        self._run(tx, _FORGET, relations=[_SEAL, *same])

    def forget(self, tx: psycopg.Connection[Any]) -> None:
        self._run(tx, _FORGET, relations=[])

    def fill(self, tx: psycopg.Connection[Any], ops: Sequence[Op]) -> Filling:
        """Set what the ops left out and is known, of as many as memory is for.

        At least of the first one. Raise KeyRefused.
        """
        changes = [self._change(op) for op in ops]
        known = [change for change in changes if change is not None]
        kept = self._read(tx, wanted(known), {change.table for change in known})
        fold = RowFold(kept, of_all=self._of_all)
        for number, (op, change) in enumerate(zip(ops, changes, strict=True)):
            if change is None:
                continue
            values = fold.take(change)
            if values is None:
                return Filling(kept, changes, fold, number, self._of_all)
            if change.after is not None:
                op.fill(values)
        return Filling(kept, changes, fold, len(ops), self._of_all)

    def keep(self, tx: psycopg.Connection[Any], filling: Filling, handled: int) -> None:
        """Keep what is known behind so many of the ops."""
        made = filling.behind(handled)
        for table in made.emptied:
            self._run(tx, _EMPTY, relation=table)
        for table, columns in made.dropped.items():
            told = {"relation": table, "columns": sorted(columns)}
            self._run(tx, _DOUBT, **told, doubted=sorted(made.doubted[table]))
            self._run(tx, _DROP, **told)
        if made.removed:
            self._run(
                tx, _REMOVE, **_arrays((*name, one) for name, one in made.removed)
            )
        put = [(*name, column, text) for name, column, text in made.put]
        for table, shape in made.shapes.items():
            put.append((table, _NO_KEY, "", json.dumps(shape)))
        for table, layout in made.layouts.items():
            put.append((table, _NO_KEY, _LAYOUT, str(layout)))
        if put:
            self._run(tx, _PUT, **_arrays(put))

    def seal(self, tx: psycopg.Connection[Any], position: str) -> None:
        """Note that the values are those at this position of the state."""
        tables = json.dumps(self._keys.tables)
        row = (_SEAL, _NO_KEY, "", f"{position} {tables}")
        self._run(tx, _PUT, **_arrays([row]))

    def _change(self, op: Op) -> RowChange | None:
        key = self._keys.of(op.table.full_name)
        if key is None:
            return None
        try:
            return change_of(op, key)
        except WholeRowsError as error:
            raise KeyRefused(op, error) from None

    def _read(
        self,
        tx: psycopg.Connection[Any],
        rows: dict[RowName, bool],
        tables: set[str],
    ) -> KeptValues:
        kept = KeptValues()
        if not tables:
            return kept
        asked = {**{RowName(table, _NO_KEY): True for table in tables}, **rows}
        relations, keys = zip(*asked, strict=True)
        found = self._run(
            tx,
            _READ,
            relations=list(relations),
            keys=list(keys),
            with_values=list(asked.values()),
            limit=self._memory,
        )
        for table, key, column, value in found:
            if key == _NO_KEY and column == _LAYOUT:
                kept.layouts[table] = int(value)
            elif key == _NO_KEY:
                kept.shapes[table] = tuple(json.loads(value))
            else:
                kept.rows.setdefault(RowName(table, key), {})[column] = value
        return kept

    def _run(
        self,
        tx: psycopg.Connection[Any],
        statement: LiteralString,
        **values: object,
    ) -> psycopg.Cursor[TupleRow]:
        filled = self._statements.get(statement)
        if filled is None:
            filled = sql.SQL(statement).format(value=self._table).as_bytes()
            self._statements[statement] = filled
        # a cursor of our own: the connection's row_factory is the handler's to set
        return tx.cursor(row_factory=tuple_row).execute(
            filled, {**self._place, **values}
        )


def _arrays(rows: Iterable[tuple[str, ...]]) -> dict[str, list[str]]:
    """Return the parameters of rows, side by side."""
    sides = ("relations", "keys", "columns", "values")
    columns = zip(*rows, strict=True)
    return {side: list(texts) for side, texts in zip(sides, columns, strict=False)}
