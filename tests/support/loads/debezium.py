"""Random changes of random types, and of the tables themselves, from a seed.

What PostgreSQL refuses (a value that is there already, a type that cannot be cast) is
rolled back and forgotten: the stream has none of it.
"""

# ruff: noqa: S608 - SQL of constants and of names made here

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import psycopg

from tests.integration.test_debezium_types import EXTENSIONS, OWN, RANDOM, knows
from tests.integration.test_types import TYPES

_IDENTITIES: Final = ("DEFAULT", "DEFAULT", "FULL", "INDEX", "NOTHING")
_TABLES: Final = 6
_LARGE: Final = "repeat(md5(random()::text), 200)"
_WORTHS: Final = {
    "integer": "7",
    "text": "'d'",
    "boolean": "true",
    "numeric(8,2)": "1.50",
}
"""Types of columns that are added, and their defaults."""
_ADDED: Final = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = %s::regclass AND attname LIKE 'added%%' AND NOT attisdropped"
)


@dataclass
class Made:
    """One table of the load."""

    name: str
    identity: str
    key: tuple[str, ...]  # also the columns of a primary key, if there is one
    columns: dict[str, str] = field(default_factory=dict)  # name: type; no key, no text

    @property
    def may_change(self) -> bool:
        return self.identity != "NOTHING"


class RandomLoad:
    """Tables made of a seed, and steps that change them."""

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        seed: str,
        settle: Callable[[], None],
    ) -> None:
        """`settle` is called before each schema change."""
        self._connection = connection
        self._random = Random(seed)  # noqa: S311 - no secret
        self._settle = settle
        self._next = 0  # key
        self._added = 0
        self.tables: list[Made] = []

    @property
    def keyless(self) -> list[str]:
        """Name the tables whose records' keys are other than Debezium's, or none."""
        return [
            one.name for one in self.tables if one.identity in {"INDEX", "NOTHING"}
        ] + ["bare"]

    def create(self) -> None:
        """Make types and tables."""
        for name in EXTENSIONS:
            found = self._connection.execute(
                "SELECT FROM pg_available_extensions WHERE name = %s", (name,)
            )
            if found.fetchone() is not None:
                self._connection.execute(f"CREATE EXTENSION {name}".encode())
        self._connection.execute((TYPES + OWN).encode())
        self._connection.execute(
            f"SELECT setseed({self._random.uniform(-1, 1)})".encode()
        )
        known = [name for name in RANDOM if knows(self._connection, name)]
        for number in range(_TABLES):
            types = self._random.sample(known, min(12, len(known)))
            self._create(number, dict(zip(_names(), types, strict=False)))
        self._connection.execute(b"CREATE TABLE bare (v text, n numeric)")
        self._connection.execute(
            b"CREATE TABLE parts (id int, k int, v text, PRIMARY KEY (id, k))"
            b" PARTITION BY RANGE (k)"
        )
        for low in (0, 10):
            self._connection.execute(
                f"CREATE TABLE parts{low} PARTITION OF parts"
                f" FOR VALUES FROM ({low}) TO ({low + 10})".encode()
            )

    def _create(self, number: int, columns: dict[str, str]) -> None:
        identity = _IDENTITIES[number % len(_IDENTITIES)]
        key = ("id", "k2") if number % 3 == 2 else ("id",)
        made = Made(f"r{number}", identity, key, columns)
        parts = ["id int NOT NULL", "k2 text NOT NULL", "code int NOT NULL"]
        parts += ["large text", "needed text NOT NULL"]
        parts += [f'"{name}" {kind}' for name, kind in columns.items()]
        parts.append(f"PRIMARY KEY ({', '.join(key)})")
        table = made.name
        script = f"""
CREATE TABLE {table} ({", ".join(parts)});
ALTER TABLE {table} ALTER large SET STORAGE external;
ALTER TABLE {table} ALTER needed SET STORAGE external;
CREATE UNIQUE INDEX {table}_code ON {table} (code);
"""
        if identity != "DEFAULT":
            told = f"USING INDEX {table}_code" if identity == "INDEX" else identity
            script += f"ALTER TABLE {table} REPLICA IDENTITY {told}"
        self._connection.execute(script.encode())
        self.tables.append(made)

    def run(self, steps: int, schema_changes: int) -> None:
        """Take so many steps, and spread schema changes among them."""
        every = max(steps // max(schema_changes, 1), 1)
        for step in range(steps):
            if schema_changes and step % every == every - 1:
                self._settle()
                self._alter()
            else:
                self._try(*self._transaction())

    def _try(self, *statements: str) -> None:
        try:
            with self._connection.transaction():
                for statement in statements:
                    self._connection.execute(statement.encode())
        except psycopg.Error:
            pass  # refused, and so not in the stream

    def _transaction(self) -> list[str]:
        found = [self._change() for _ in range(self._random.choice((1, 1, 2, 5)))]
        if self._random.random() < 0.1:
            found += ["SAVEPOINT s", self._change(), "ROLLBACK TO s", self._change()]
        return found

    def _change(self) -> str:
        if self._random.random() < 0.15:
            return self._random.choice(
                (
                    "INSERT INTO bare VALUES (md5(random()::text), random())",
                    f"INSERT INTO parts VALUES ({self._fresh()}, 5, 'p')",
                    "UPDATE parts SET k = (k + 10) % 20 WHERE random() < 0.3",
                    "DELETE FROM parts WHERE random() < 0.2",
                )
            )
        table = self._random.choice(self.tables)
        if not table.may_change:
            return self._insert(table)
        makers = (self._insert, self._insert, self._update, self._update, self._move)
        rare = (self._delete, self._empty)
        chosen = makers if self._random.random() < 0.85 else rare
        return self._random.choice(chosen)(table)

    def _insert(self, table: Made) -> str:
        number = self._fresh()
        values = [str(number), f"'k{number}'", str(number), _LARGE, _LARGE]
        names = ["id", "k2", "code", "large", "needed"]
        for name, kind in table.columns.items():
            if self._random.random() < 0.8:
                names.append(f'"{name}"')
                values.append(self._value(kind))
        told = ", ".join(names)
        return f"INSERT INTO {table.name} ({told}) VALUES ({', '.join(values)})"

    def _update(self, table: Made) -> str:
        chosen = self._random.sample(sorted(table.columns), min(2, len(table.columns)))
        sets = [f'"{name}" = {self._value(table.columns[name])}' for name in chosen]
        if self._random.random() < 0.2:
            sets.append(f"large = {_LARGE}")
        return self._where(f"UPDATE {table.name} SET {', '.join(sets)}", table)

    def _move(self, table: Made) -> str:
        column = self._random.choice((*table.key, "code"))
        value = f"'m{self._fresh()}'" if column == "k2" else str(self._fresh())
        return self._where(f"UPDATE {table.name} SET {column} = {value}", table)

    def _delete(self, table: Made) -> str:
        return self._where(f"DELETE FROM {table.name}", table)

    def _empty(self, table: Made) -> str:
        rare = self._random.random() < 0.1
        return f"TRUNCATE {table.name}" if rare else self._delete(table)

    def _where(self, statement: str, table: Made) -> str:
        return (
            f"{statement} WHERE id = (SELECT id FROM {table.name}"
            f" ORDER BY id LIMIT 1 OFFSET {self._random.randrange(8)})"
        )

    def _fresh(self) -> int:
        self._next += 1
        return self._next

    def _value(self, kind: str) -> str:
        return RANDOM.get(kind, _WORTHS.get(kind, "NULL"))

    def _alter(self) -> None:
        """Change one table, and look what its columns are then."""
        table = self._random.choice(self.tables)
        self._added += 1
        kind = self._random.choice(sorted(_WORTHS))
        fresh = f"added{self._added}"
        alter = f"ALTER TABLE {table.name}"
        found = [f"{alter} ADD {fresh} {kind} DEFAULT {_WORTHS[kind]}"]
        added = [name for name in table.columns if name.startswith("added")]
        if added:
            name = self._random.choice(added)
            column = f"{alter} ALTER {name}"
            found += [
                f"{column} DROP DEFAULT",
                f"{column} SET NOT NULL",
                f"{column} DROP NOT NULL",
                f"{column} TYPE text",
                f"{alter} DROP {name}",
                f"{alter} RENAME {name} TO {fresh}",
                f"ALTER TYPE mood ADD VALUE 'mood{self._added}'",
            ]
        self._try(self._random.choice(found))
        rows = self._connection.execute(_ADDED, (table.name,)).fetchall()
        kept = {
            name: kind
            for name, kind in table.columns.items()
            if not name.startswith("added")
        }
        table.columns = {**kept, **dict(rows)}


def _names() -> list[str]:
    return [f"c{number}" for number in range(12)]
