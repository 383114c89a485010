"""What the simulation's writer does, as a client of a real server does it."""

import random
from typing import Final

from tests.simulation.tables import NOWHERE, SimTable, Writer

_TOASTED: Final = "large"
_STORED_APART: Final = 3000  # characters: a row of it does not fit a page's share
_PAD: Final = "~"
_UNDONE: Final = 0.1  # of all statements: something that is taken back comes before
_INSIDE: Final = 0.15  # of all statements: in a subtransaction
_ALTERS: Final = 0.3  # of what is taken back
_SAID: Final = "SELECT pg_logical_emit_message(true, 'p', 'c')"


class StatementWriter(Writer):
    """A writer that also notes the SQL of each step, and whom it locks out."""

    def __init__(self, tables: list[SimTable], lsn: int, seed: int) -> None:
        super().__init__(tables, lsn, seed)
        self.statements: list[str] = []
        self.touched: set[str] = set()
        self._aside = random.Random(~seed)  # noqa: S311 - repeatable

    def _note(self, statement: str, *tables: SimTable) -> None:
        draw = self._aside.random
        if tables and draw() < _UNDONE:
            self._undo(self._aside.choice(tables))
        # who is told first of a message and the row behind it is the server's business
        # where a subtransaction lies between them: a message has its end as its LSN
        said = self.statements[-1:] == [_SAID]
        inside = bool(tables) and draw() < _INSIDE and not said
        self.statements += ["SAVEPOINT inside"] if inside else []
        self.statements.append(statement)
        self.statements += ["RELEASE SAVEPOINT inside"] if inside else []
        self.touched.update(table.name for table in tables)

    def _undo(self, table: SimTable) -> None:
        """Write something, or alter the table, and take it back."""
        what = f"INSERT INTO {table.full_name} (id) VALUES (999)"
        if self._aside.random() < _ALTERS:
            what = f"ALTER TABLE {table.full_name} ADD COLUMN undone text"
            self._void(NOWHERE, table)
        self.statements += [
            "SAVEPOINT undone",
            what,
            "ROLLBACK TO SAVEPOINT undone",
        ]

    def _put(self, table: SimTable) -> None:
        known = set(table.rows)
        super()._put(table)
        for key in table.rows.keys() - known:
            self._note(insert(table, key), table)

    def _update(self, table: SimTable, before: str, after: str) -> None:
        old = table.rows[before]
        super()._update(table, before, after)
        new = table.rows[after]
        changes = [
            f"{name} = {_literal(name, value)}"
            for name, value in new.items()
            # a value names its step: the same one was left alone
            if name != _TOASTED or value is None or value != old.get(name)
        ]
        self._note(
            f"UPDATE {table.full_name} SET {', '.join(changes)} WHERE id = {before}",
            table,
        )

    def _delete(self, table: SimTable) -> None:
        known = set(table.rows)
        super()._delete(table)
        for key in known - table.rows.keys():
            self._note(f"DELETE FROM {table.full_name} WHERE id = {key}", table)

    def _truncate(self, table: SimTable) -> None:
        super()._truncate(table)
        tables = [one for one, _ in self._frames[-1][0]]
        names = ", ".join(one.full_name for one in tables)
        self._note(f"TRUNCATE {names}", *tables)

    def _alter(self, table: SimTable) -> None:
        before = table.shape
        super()._alter(table)
        after = table.shape
        alter = f"ALTER TABLE {table.full_name}"
        if after.identity != before.identity:
            identity = {"d": "DEFAULT", "f": "FULL"}[after.identity]
            self._note(f"{alter} REPLICA IDENTITY {identity}", table)
        for name in after.columns:
            if name not in before.columns:
                self._note(f"{alter} ADD COLUMN {name} text", table)
        for name in before.columns:
            if name not in after.columns:
                self._note(f"{alter} DROP COLUMN {name}", table)

    def _say(self, table: SimTable) -> None:
        super()._say(table)
        self._note(_SAID)


def create(table: SimTable) -> list[str]:
    """Create a table as the simulation has it, with its rows."""
    columns = ", ".join(
        f"{name} {'bigint PRIMARY KEY' if name == 'id' else 'text'}"
        for name in table.shape.columns
    )
    return [
        f"CREATE TABLE {table.full_name} ({columns})",
        f"ALTER TABLE {table.full_name} ALTER COLUMN {_TOASTED} SET STORAGE EXTERNAL",
        *(insert(table, key) for key in table.rows),
    ]


def insert(table: SimTable, key: str) -> str:
    row = table.rows[key]
    values = ", ".join(_literal(name, value) for name, value in row.items())
    return f"INSERT INTO {table.full_name} ({', '.join(row)}) VALUES ({values})"


def bare(value: str) -> str:
    """Take off what makes a value large enough to be stored apart."""
    return value.rstrip(_PAD)


def _literal(column: str, value: str | None) -> str:
    if value is None:
        return "NULL"
    if column == "id":
        return value
    if column == _TOASTED:
        return f"rpad('{value}', {_STORED_APART}, '{_PAD}')"
    return f"'{value}'"
