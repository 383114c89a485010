"""The mirror that is at a transaction's boundary of the source at every moment.

Each transaction of the source is one of the target, in the same order, so that foreign
keys stay on: deferrable ones are checked at the commit, as the source's own last word.
"""

import logging
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

import psycopg
from psycopg.errors import FeatureNotSupported, SerializationFailure

from consumer.handler import Transaction
from consumer.mirror import statement
from consumer.mirror.application import PostgresMirror
from consumer.mirror.errors import MirrorError
from consumer.mirror.table_shape import cascades, hazards, strict_keys
from consumer.mirror.table_writer import Rows
from consumer.op import EnvelopeOp, Op
from consumer.whole.transaction import WholeTransaction
from walstream.op import Kind

_log: Final = logging.getLogger("consumer.mirror")
_AT_COMMIT: Final = "SET CONSTRAINTS ALL DEFERRED"
_WAITING: Final = 10_000  # ops whose writes wait in memory
_WAITING_BYTES: Final = 8 << 20  # of their records and what fills them, about


class TransactionMirror(PostgresMirror):
    """Applies the source's transactions to the tables of the same name, whole.

        mirror = TransactionMirror(dsn)
        TransactionConsumer(mirror, dsn, group="mirror", topics="shop.*",
                            transactions="shop-transactions", kafka={...}).run()

    A row is written as by PostgresMirror. No row needs a position, since all ops have
    one order; a constraint that refuses an op stops it, since no other one is to come.
    """

    _checks_each = False

    def __init__(
        self,
        target_dsn: str,
        tables: Iterable[str] = ("*",),
        *,
        skip_truncates: bool = False,
    ) -> None:
        """`skip_truncates` passes over a backfill's TRUNCATE of format debezium."""
        super().__init__(
            target_dsn,
            tables,
            patience_s=0,
            row_positions=False,
            skip_truncates=skip_truncates,
        )

    def _look_at(self, connection: psycopg.Connection[Any]) -> None:
        if drops := cascades(connection, self._wanted):
            raise MirrorError(
                "the target has foreign keys ON DELETE or ON UPDATE CASCADE, SET NULL"
                " or SET DEFAULT: their effects in the source are in the stream, and a"
                " changed key comes as a Delete and an Insert, at which they would"
                " delete rows",
                hint="create them without these actions, and DEFERRABLE, in the target:"
                f" {' '.join(drops)} ALTER TABLE ... ADD FOREIGN KEY ... DEFERRABLE;",
            )
        for hazard in hazards(connection):
            if hazard.kind == "trigger" and self._wanted(hazard.schema, hazard.table):
                _log.warning(
                    "%s.%s has the trigger %s: it fires for mirrored changes, too",
                    hazard.schema,
                    hazard.table,
                    hazard.name,
                )
        for cure in strict_keys(connection, self._wanted):
            _log.warning(
                "a foreign key is checked behind each row, and not at the commit, so it"
                " may refuse what the source took as one statement; %s",
                cure,
            )

    def handle_transaction(self, tx: Transaction, whole: WholeTransaction, /) -> None:
        """Apply a transaction of the source, many rows of a table at once."""
        try:
            with tx.transaction():
                self._apply(tx, whole)
        except SerializationFailure as error:
            if error.__cause__ is None:  # the server's own: all of it comes again
                raise
            # a write of many rows was refused: one by one the right op is told
            self._shapes.clear()
            for op in self._begin(tx, whole):
                self.handle_message(tx, op)
            self.end_batch(tx)

    def _apply(self, tx: Transaction, whole: WholeTransaction) -> None:
        ops = self._begin(tx, whole)
        later = self._collector() if len(whole.ops) > 1 else None
        if later is not None:
            self._later[tx] = later
        waiting = size = 0
        for is_truncate, some in groupby(ops, lambda op: op.kind is Kind.TRUNCATE):
            if is_truncate:
                self._empty(tx, list(some))
                continue
            for op in some:
                self.handle_message(tx, op)
                waiting += 1
                size += _size_of(op)
                if later and (waiting >= _WAITING or size >= _WAITING_BYTES):
                    later.write_all(tx)
                    waiting = size = 0
        self.end_batch(tx)

    def _begin(self, tx: Transaction, whole: WholeTransaction) -> Iterator[Op]:
        self.begin_batch(tx, ())
        tx.execute(_AT_COMMIT)
        return iter(whole.ops)

    def _empty(self, tx: Transaction, ops: list[Op]) -> None:
        """Empty the tables of one TRUNCATE together: they may reference each other."""
        wanted = [op for op in ops if self._wanted(op.table.schema, op.table.name)]
        several = {op.table.full_name: op for op in wanted}
        if len(several) < 2 or any(isinstance(op, EnvelopeOp) for op in wanted):  # noqa: PLR2004 - one
            for op in ops:
                self.handle_message(tx, op)
            return
        if not self._checked:
            self._check(tx)
        tables = [self._rows(tx, op) for op in several.values()]
        for rows in tables:
            self._write_now(rows)
        self._empty_together(tx, tables)

    @staticmethod
    def _empty_together(tx: Transaction, tables: list[Rows]) -> None:
        try:
            with tx.transaction():
                tx.execute(statement.empty_together([rows.shape for rows in tables]))
        except FeatureNotSupported:  # another table references one, if without rows
            for rows in reversed(tables):
                rows.empty()


def _size_of(op: Op) -> int:
    """Return about how large it is: a small Update may be filled with large values."""
    size = len(op.record.value or b"")
    if op.is_kept:
        size += sum(len(op.new[name] or "") for name in op.new.filled)
    return size
