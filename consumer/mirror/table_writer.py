"""One table of the target, written to in the consumer's transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from psycopg.errors import GeneratedAlways
from psycopg.rows import tuple_row

from consumer.handler import Transaction
from consumer.mirror import statement
from consumer.mirror.table_shape import TargetTable

Row = Mapping[str, str | None]
"""Texts by column: of a whole row, of what was sent of it, or of its key."""


class FixedValue(GeneratedAlways):
    """Refusal of a value for what no UPDATE can set; its text is the cure."""


@dataclass(slots=True)
class Rows:
    """Writer of a table's rows. Statements are prepared, and kept."""

    tx: Transaction
    shape: TargetTable

    def upsert(self, row: Row) -> None:
        """Insert a whole row, or give it to the one that has its key."""
        columns = self.writable(row)
        make = statement.upsert
        query = self._query("upsert", columns, lambda: make(self.shape, columns))
        self._write(query, [row[column] for column in columns])
        if self.shape.fixed and (key := self.shape.key_of(row)) is not None:
            self._see_fixed(key, row)

    def update(self, key: Row, row: Row) -> bool:
        """Set what is sent of a row; False where no row has the key."""
        columns = self.settable(row, key)
        if columns:
            make = statement.update_by_key
            query = self._query("update", columns, lambda: make(self.shape, columns))
            found = self._run(query, [*(row[name] for name in columns), *key.values()])
        else:
            found = self.has(key)
        if found and self.shape.fixed:
            self._see_fixed(key, row)
        return found

    def _see_fixed(self, key: Row, row: Row) -> None:
        """Raise FixedValue where the row has another one than was sent."""
        fixed = tuple(name for name in row if name in self.shape.fixed)
        if not fixed:
            return
        make = statement.has_other
        query = self._query("other", fixed, lambda: make(self.shape, fixed))
        if self._run(query, [*(row[name] for name in fixed), *key.values()]):
            raise FixedValue(statement.unfix(self.shape, fixed))

    def delete(self, key: Row) -> None:
        query = self._query("delete", (), lambda: statement.delete_by_key(self.shape))
        self._write(query, list(key.values()))

    def has(self, key: Row) -> bool:
        query = self._query("has", (), lambda: statement.has_key(self.shape))
        return self._run(query, list(key.values()))

    def texts(self, key: Row, columns: tuple[str, ...]) -> dict[str, str]:
        """Return the texts of a row's values that are not NULL, as streamed."""
        self.tx.execute(statement.PRINT_AS_STREAMED)
        make = statement.texts_by_key
        query = self._query("texts", columns, lambda: make(self.shape, columns))
        with self.tx.cursor(row_factory=tuple_row) as cursor:
            found = cursor.execute(query, list(key.values()), prepare=True).fetchone()
        texts = zip(columns, found or (), strict=False)
        return {column: text for column, text in texts if text is not None}

    def same_key(self, one: Row, other: Row) -> bool:
        """Return whether two spellings are one key."""
        query = self._query("same", (), lambda: statement.same_key(self.shape))
        texts = [row[name] for name in self.shape.key for row in (one, other)]
        with self.tx.cursor(row_factory=tuple_row) as cursor:
            found = cursor.execute(query, texts, prepare=True).fetchone()
        return bool(found and found[0])

    def key_alike(self, old: Row) -> Row | None:
        """Find the key of a row that looks like this, and lock it."""
        where, parameters = self._alike(old)
        make = statement.key_of_one
        query = self._query("key", where, lambda: make(self.shape, where))
        with self.tx.cursor(row_factory=tuple_row) as cursor:
            found = cursor.execute(query, parameters, prepare=True).fetchone()
        return dict(zip(self.shape.key, found, strict=True)) if found else None

    def update_alike(self, old: Row, row: Row) -> bool:
        """Set what is sent of one row that looks like `old`."""
        where, parameters = self._alike(old)
        fixed = sorted(self.shape.fixed & row.keys())
        if changed := [name for name in fixed if old.get(name) != row[name]]:
            raise FixedValue(statement.unfix(self.shape, changed))
        columns = self.settable(row, ())
        make = statement.update_one
        what = (columns, where)
        query = self._query("update", what, lambda: make(self.shape, columns, where))
        return self._run(query, [*parameters, *(row[name] for name in columns)])

    def delete_alike(self, old: Row) -> bool:
        """Delete one row that looks like `old`."""
        where, parameters = self._alike(old)
        make = statement.delete_one
        query = self._query("delete", where, lambda: make(self.shape, where))
        return self._run(query, parameters)

    def run_many(
        self,
        verb: str,
        columns: tuple[str, ...],
        make: Callable[[TargetTable, tuple[str, ...]], str],
        arrays: Sequence[str],
    ) -> set[int]:
        """Do it to many rows; give the numbers of those that were found, from 1."""
        what = ("many", columns)
        query = self._query(verb, what, lambda: make(self.shape, columns))
        with self.tx.cursor(row_factory=tuple_row) as cursor:
            done = cursor.execute(query, arrays, prepare=True)
            return {number for (number,) in done} if done.description else set()

    def empty(self) -> None:
        self._write(statement.empty(self.shape), ())

    def _alike(self, old: Row) -> tuple[statement.Where, list[str]]:
        self.tx.execute(statement.PRINT_AS_STREAMED)
        sent = [item for item in old.items() if item[0] not in self.shape.generated]
        return statement.matching(self.shape, sent)

    def writable(self, row: Row) -> tuple[str, ...]:
        return tuple(name for name in row if name not in self.shape.generated)

    def settable(self, row: Row, key: Row | Collection[str]) -> tuple[str, ...]:
        """Leave out what cannot change, or does not: a key with its own value."""
        return tuple(
            name
            for name in self.writable(row)
            if name not in self.shape.always
            and not (
                isinstance(key, Mapping)
                and name in key
                and key[name] == row[name]
                and name not in self.shape.respelt
            )
        )

    def _query(self, verb: str, what: object, make: Callable[[], str]) -> str:
        known = self.shape.statements.get((verb, what))
        if known is None:
            # the signature: one that is prepared keeps its parameters' types
            known = f"{make()} /* {self.shape.signature} */"
            self.shape.statements[verb, what] = known
        return known

    def _write(self, query: str, parameters: Sequence[str | None]) -> None:
        """Do it whatever it finds: a pipeline need not wait for it."""
        self.tx.execute(query, parameters, prepare=True)

    def _run(self, query: str, parameters: Sequence[str | None]) -> bool:
        done = self.tx.execute(query, parameters, prepare=True)
        return done.rowcount > 0
