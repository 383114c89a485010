"""A table of the target that keeps rows' positions, by key; and its SQL.

`GENERAL` holds those of all tables whose keys have one spelling each. Where equal keys
may print otherwise (`User7` and `user7` of citext, 1.0 and 1.00 of numeric), a table's
positions stand in one of their own, under the types of the key: which keys are one key
is then the server's to say, and no hash or text stands for it.
"""

# ruff: noqa: S608 - of quoted identifiers and the catalog's type names alone

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from consumer.mirror.source_generation import GENERATION, LOCK
from consumer.pg_catalog import BELOW, ELEMENT, IS, pinned, unnest

Connection = psycopg.Connection[Any]

_COLUMNS: Final = """
SELECT CASE WHEN a.atttypmod = -1 THEN format('%%I.%%I', s.nspname, t.typname)
         WHEN s.nspname = 'pg_catalog' THEN format_type(a.atttypid, a.atttypmod)
         ELSE format('%%I.%%I%%s', s.nspname, t.typname,
           substring(format_type(a.atttypid, a.atttypmod) FROM '[(].*[)]$')) END,
       coalesce(
         ' COLLATE ' || quote_ident(m.nspname) || '.' || quote_ident(l.collname), '')
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace s ON s.oid = t.typnamespace
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_namespace m ON m.oid = l.collnamespace AND l.collname <> 'default'
 WHERE a.attrelid = %s::oid AND a.attnum > 0 AND a.attname LIKE 'key%%'
 ORDER BY a.attnum
"""
# by the path of the application, as the statements that write there
_WHERE: Final = "SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid"
_POSITION: Final = "generation, lsn, seq_id"


@dataclass(frozen=True, slots=True)
class KeyType:
    """The type of a key's column, by which its values are compared."""

    name: str  # SQL
    collation: str = ""  # COLLATE …
    equal: str = IS  # the operator of the key's index

    @property
    def operator(self) -> str:
        return self.equal.replace("%", "%%")


@dataclass(frozen=True, slots=True)
class Store:
    """A table of positions, and its key columns. Keys are texts of the columns."""

    table: str
    columns: tuple[str, ...]
    types: tuple[KeyType, ...]

    def note(self) -> str:
        """Move one position, unless it is newer; of key, `GENERATION`'s, position."""
        columns = ", ".join(self.columns)
        values = ", ".join(["%s"] * len(self.columns))
        return (
            f"INSERT INTO {self.table} AS r ({columns}, {_POSITION})"
            f" VALUES ({values}, ({GENERATION}), %s, %s)"
            f" ON CONFLICT ({columns}) DO UPDATE SET generation = EXCLUDED.generation,"
            " lsn = EXCLUDED.lsn, seq_id = EXCLUDED.seq_id"
            " WHERE (r.generation, r.lsn, r.seq_id)"
            f" {BELOW} (EXCLUDED.generation, EXCLUDED.lsn, EXCLUDED.seq_id)"
        )

    def add(self) -> str:
        """Make positions where there are none, in the keys' order; of key arrays."""
        columns = ", ".join(self.columns)
        return (
            f"INSERT INTO {self.table} ({columns}, {_POSITION})"
            f" SELECT DISTINCT ON ({columns}) {columns}, 0, 0, 0"
            f" FROM ({self._wanted()}) AS w ORDER BY {columns} ON CONFLICT DO NOTHING"
        )

    def take(self) -> str:
        """Lock positions in the keys' order and give them; of key arrays.

        Each with the place of its key in the arrays, from 1, and where the row is:
        equal keys have one.
        """
        order = ", ".join(f"p.{column}" for column in self.columns)
        return (
            f"SELECT w.n, p.ctid::pg_catalog.text, p.generation, p.lsn, p.seq_id"
            f" FROM ({self._wanted('n')}) AS w JOIN {self.table} AS p"
            f" ON {self._same()} ORDER BY {order} FOR UPDATE OF p"
        )

    def write(self) -> str:
        """Set positions; of key arrays, and three of generations, LSNs and numbers."""
        wanted = self._wanted("generation", "lsn", "seq_id")
        return (
            f"UPDATE {self.table} AS p SET generation = w.generation, lsn = w.lsn,"
            f" seq_id = w.seq_id FROM ({wanted}) AS w WHERE {self._same()}"
        )

    def _same(self) -> str:
        return " AND ".join(
            f"p.{column} {kind.operator} w.{column}"
            for column, kind in zip(self.columns, self.types, strict=True)
        )

    def _wanted(self, *more: str) -> str:
        """SELECT the keys that were asked for, as their types."""
        what = [
            f"{cast(f'u.{column}', kind)} AS {column}"
            for column, kind in zip(self.columns, self.types, strict=True)
        ]
        arrays = ["%s::pg_catalog.text[]"] * len(self.columns)
        if more and more != ("n",):
            arrays += ["%s::bigint[]", "%s::numeric[]", "%s::numeric[]"]
        columns = ", ".join((*self.columns, *more))
        numbered = " WITH ORDINALITY" if more == ("n",) else ""
        return (
            f"SELECT {', '.join([*what, *more])}"
            f" FROM {unnest(*arrays)}{numbered} AS u ({columns})"
        )


GENERAL: Final = Store(
    "replication_mirror_row",
    ("relation", "key"),
    (KeyType("pg_catalog.text"), KeyType("pg_catalog.text")),
)


def own(connection: Connection, relation: str, types: Sequence[KeyType]) -> Store:
    """Return the store of one table, made and filled where it is missing.

    Raises InsufficientPrivilege where the role may not make it. What an earlier version
    kept of the table moves into it, and what was kept under other types of the key.
    """
    store = _named(relation, types)
    if not _fits(connection, store):
        connection.execute(LOCK)
        if not _fits(connection, store):
            _make(connection, store, relation)
    return store


def _named(relation: str, types: Sequence[KeyType]) -> Store:
    digest = sha256(relation.encode()).hexdigest()[:16]
    columns = tuple(f"key{number}" for number in range(len(types)))
    return Store(f"replication_mirror_row_{digest}", columns, tuple(types))


def ddl(relation: str, types: Sequence[KeyType]) -> str:
    """Return the statement that makes a table's store."""
    return _ddl(_named(relation, types)).replace("%%", "%") + ";"


def _ddl(store: Store) -> str:
    keys = "".join(
        f"{column} {_type(kind)} NOT NULL, "
        for column, kind in zip(store.columns, store.types, strict=True)
    )
    return (
        f"CREATE TABLE {store.table} ({keys}generation bigint NOT NULL,"
        " lsn numeric(20) NOT NULL, seq_id numeric(20) NOT NULL,"
        f" PRIMARY KEY ({', '.join(store.columns)}))"
    )


def _fits(connection: Connection, store: Store) -> bool:
    return _columns(connection, store) == [
        (kind.name, kind.collation) for kind in store.types
    ]


def _columns(connection: Connection, store: Store) -> list[tuple[Any, ...]]:
    with connection.cursor(row_factory=tuple_row) as cursor:
        there = cursor.execute(_WHERE, (store.table,)).fetchone()
        with pinned(connection):
            return cursor.execute(_COLUMNS, there).fetchall()


def _make(connection: Connection, store: Store, relation: str) -> None:
    before = _columns(connection, store)
    former = f"{store.table}_former"
    if before:
        connection.execute(f"ALTER TABLE {store.table} RENAME TO {former}")
    connection.execute(_ddl(store).replace("%%", "%"))
    about = sql.SQL("COMMENT ON TABLE {} IS {}").format(
        sql.Identifier(store.table),
        sql.Literal(f"which op wrote each row of {relation} last"),
    )
    connection.execute(about)
    if len(before) == len(store.columns):
        texts = [f"pg_catalog.format('%%s', {column})" for column in store.columns]
        connection.execute(_refill(store, texts, former, "true"), ())
    if before:
        connection.execute(f"DROP TABLE {former}")
    texts = [
        f"key::pg_catalog.jsonb {ELEMENT} {number}"
        for number in range(len(store.columns))
    ]
    # a marker's key is no JSON
    kept = f"relation {IS} %s AND pg_catalog.starts_with(key, '[')"
    connection.execute(_refill(store, texts, GENERAL.table, kept), (relation,))
    connection.execute(f"DELETE FROM {GENERAL.table} WHERE {kept}", (relation,))


def _refill(store: Store, texts: Sequence[str], former: str, where: str) -> str:
    """INSERT what another table holds: of equal keys the newest position."""
    columns = ", ".join(store.columns)
    what = ", ".join(
        f"{cast(f'({text})', kind)} AS {column}"
        for text, column, kind in zip(texts, store.columns, store.types, strict=True)
    )
    return (
        f"INSERT INTO {store.table} ({columns}, {_POSITION})"
        f" SELECT DISTINCT ON ({columns}) {columns}, {_POSITION}"
        f" FROM (SELECT {what}, {_POSITION} FROM {former} WHERE {where}) AS w"
        f" ORDER BY {columns}, generation DESC, lsn DESC, seq_id DESC"
        " ON CONFLICT DO NOTHING"
    )


def array(texts: Iterable[str | None]) -> str:
    """Spell texts as an array; psycopg takes ten times as long."""
    return "{" + ",".join(map(_element, texts)) + "}"


def _element(text: str | None) -> str:
    if text is None:
        return "NULL"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def cast(text: str, kind: KeyType) -> str:
    """Read a text as a key's type."""
    return f"CAST({text} AS {kind.name.replace('%', '%%')}){_collate(kind)}"


def _type(kind: KeyType) -> str:
    return f"{kind.name.replace('%', '%%')}{_collate(kind)}"


def _collate(kind: KeyType) -> str:
    return kind.collation.replace("%", "%%")
