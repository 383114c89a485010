"""Shapes of the target's tables, each proved by the transactions that use it.

A table may be altered under a mirror: a value would be read by the type that its column
had before, without an error, and a row be found by what was the key once. A write locks
its table until the commit, so what is true behind the last one was true for each.
"""

from collections.abc import Callable
from typing import Final
from weakref import WeakKeyDictionary

from psycopg.errors import SerializationFailure
from psycopg.rows import tuple_row

from consumer.handler import Transaction
from consumer.mirror.errors import stop
from consumer.mirror.table_shape import SIGNATURE, TargetTable, lacks, load
from consumer.mirror.table_writer import Rows
from consumer.op import Op
from consumer.pg_catalog import IS, IS_NOT, unnest

_INT8: Final = "%s::pg_catalog.int8[]"
CHANGED: Final = f"""
SELECT 1 FROM {unnest(_INT8, _INT8)} AS w (oid, signature)
  LEFT JOIN pg_catalog.pg_class c ON c.oid {IS} w.oid::pg_catalog.oid
 WHERE {SIGNATURE} {IS_NOT} w.signature LIMIT 1
"""  # noqa: S608 - of operators alone


class ShapeCache:
    """Shapes by the table's name."""

    def __init__(
        self,
        look: Callable[[Transaction, TargetTable, Op], None],
        write: Callable[[Rows], None],
    ) -> None:
        """`look` completes a new shape; `write` ends with one that is too old."""
        self._look = look
        self._write = write
        self._shapes: dict[str, TargetTable] = {}
        self._used: WeakKeyDictionary[Transaction, set[TargetTable]] = (
            WeakKeyDictionary()
        )

    def begin(self, tx: Transaction) -> None:
        """Begin a transaction: nothing is used in it yet."""
        self._used[tx] = set()

    def find(self, tx: Transaction, op: Op) -> TargetTable:
        """Return the shape of an op's table; it has all of the op's columns.

        Raises Fatal where the target has no such table, or lacks a column.
        """
        name = op.table.full_name
        used = self._used.get(tx)
        if used is None:
            used = self._used[tx] = set()
        shape = self._shapes.get(name)
        if shape is not None:
            if not shape.missing(op.table.columns):
                used.add(shape)
                return shape
            self._write(Rows(tx, shape))
        shape = load(tx, op.table.schema, op.table.name)
        if shape is None:
            raise stop(
                op,
                "the target has no such table",
                f"pg_dump --schema-only --table='{name}' SOURCE | psql TARGET",
            )
        if lacking := shape.missing(op.table.columns):
            raise stop(op, *lacks(shape, lacking))
        self._look(tx, shape, op)
        self._shapes[name] = shape
        used.add(shape)
        return shape

    def clear(self) -> None:
        """Forget all of them."""
        self._shapes.clear()

    def prove(self, tx: Transaction) -> None:
        """See that what the transaction used is so; nothing is written behind it.

        Raises SerializationFailure where a table was altered: all is to be done again.
        """
        used = self._used.pop(tx, None)
        if not used:
            return
        oids = ",".join(str(shape.oid) for shape in used)
        told = ",".join(str(shape.signature) for shape in used)
        with tx.cursor(row_factory=tuple_row) as cursor:
            asked = f"{{{oids}}}", f"{{{told}}}"
            changed = cursor.execute(CHANGED, asked, prepare=True).fetchone()
        if changed:
            self._shapes.clear()
            raise SerializationFailure("a table of the target was altered meanwhile")
