"""Values that a key change would lose: toasted ones, which PostgreSQL did not send.

The row is read from the table as it is now, which may have other names than the stream
had: it is identified by its oid, its columns by their numbers.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import sql

from walstream.errors import RESET, HistoryError, PermissionLacking, Repair
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp
from walstream.postgres.catalog import wait_until_visible
from walstream.postgres.connection import Connection, without_values
from walstream.row import Value

Values = Sequence[str | None]
Types = Mapping[str, tuple[str, str] | None]
"""Schema and name of what a column's value is read as; None: it is compared by text."""

_DENIED: Final = "42501"
_DATA_EXCEPTION: Final = "22"  # the class
_NOT_SUPPORTED: Final = "0A"  # the class
_FIND: Final = """
SELECT n.nspname, c.relname, quote_ident(current_user),
  ARRAY(SELECT CASE WHEN NOT a.attisdropped THEN a.attname::text END
    FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
    AND (a.attgenerated = '' OR a.attname = ANY (%s)) ORDER BY a.attnum),
  EXISTS (SELECT FROM pg_attribute g WHERE g.attrelid = c.oid AND g.attgenerated <> '')
  OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prattrs IS NOT NULL
    AND (r.prrelid = c.oid
      OR r.prrelid IN (SELECT relid FROM pg_partition_ancestors(c.oid)))),
  ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid
    AND EXISTS (SELECT FROM pg_cast x
      JOIN pg_type t ON t.oid = x.castsource AND t.typtype IN ('e', 'c')
      WHERE x.castcontext = 'i' AND x.castsource IN (
        WITH RECURSIVE base (type) AS (
          SELECT a.atttypid UNION ALL
          SELECT d.typbasetype FROM pg_type d JOIN base ON d.oid = base.type
          WHERE d.typtype = 'd')
        SELECT type FROM base))),
  ARRAY(WITH RECURSIVE base (name, type) AS (
      SELECT a.attname::text, a.atttypid FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 UNION ALL
      SELECT base.name, d.typbasetype FROM pg_type d JOIN base ON d.oid = base.type
      WHERE d.typtype = 'd')
    SELECT ARRAY[base.name, s.nspname, t.typname] FROM base
    JOIN pg_type t ON t.oid = base.type AND t.typtype = 'c'
    JOIN pg_namespace s ON s.oid = t.typnamespace),
  c.relkind = 'r'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s
"""

_IDENTITY: Final = """
SELECT ARRAY(SELECT a.attname::text
    FROM unnest(i.indkey) WITH ORDINALITY AS k (num, place) JOIN pg_attribute a
    ON a.attrelid = i.indrelid AND a.attnum = k.num AND k.place <= i.indnkeyatts)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.oid = %s AND i.indisvalid
  AND CASE c.relreplident WHEN 'i' THEN i.indisreplident ELSE i.indisprimary END
"""

# An untyped literal takes the column's type, and with it its index. An extension's
# operator may be out of sight: then by text, as slow as a table's length. So is what an
# implicit cast would make another type of: by whose function, its owner decides. Of a
# composite type the literal says so itself: it would be read as of any.
_EQUAL: Final = sql.SQL("{} = {}")
_EQUAL_OF_TYPE: Final = sql.SQL("{} = {}::{}")
_PRINTED: Final = sql.SQL("format('%s', {}) = {}")


def read(
    connection: Connection,
    oid: int,
    op: ReplicationOp,
    key: Mapping[str, Value],
    wanted: Sequence[str],
) -> Values | None:
    """Read some columns of the row of that key, as text; None: it cannot be needed.

    The row is looked for as of the op's transaction or later: what is gone by then has
    its Delete in the stream. Values come as the stream prints them: a cast to text
    would take the padding off character(n).
    """
    wait_until_visible(connection, op.xid)
    columns = list(op.table.columns)
    found = connection.execute(_FIND, (columns, oid)).fetchone()
    if found is None:
        return None
    schema, table, role, attributes, in_part, cast, composite, is_plain = found
    names = names_now(op.table.columns, attributes, in_part=in_part)
    if names is None or any(names[name] is None for name in key):
        raise _renamed(op, wanted, [name for name in attributes if name])
    there = [name for name in wanted if names[name] is not None]
    if not there:
        return None
    types: dict[str, tuple[str, str] | None] = {
        name: (of, bare) for name, of, bare in composite
    }
    types.update(dict.fromkeys(cast))
    place: sql.Composable = sql.Identifier(schema, table)
    if is_plain:  # a table that inherits from it has rows of its own, and keys
        place = sql.SQL("ONLY {}").format(place)
    sought = [names[name] or "" for name in there]
    then = {names[name] or "": text for name, text in key.items()}
    try:
        now = _other_key(connection, oid, op, names, then)
        rows = _rows(connection, place, (then, now), sought, types)
    except psycopg.Error as error:
        if error.sqlstate == _DENIED:
            raise _denied(op, wanted, (schema, table), role, error) from error
        if refusal := _refusal(op, wanted, error, attributes):
            raise refusal from None  # the server's words may hold a value
        raise
    if not rows:
        return None
    if any(row != rows[0] for row in rows):
        raise _ambiguous(op, wanted, then, now)
    texts = dict(zip(there, rows[0], strict=True))
    return [texts.get(name) for name in wanted]


def _other_key(
    connection: Connection,
    oid: int,
    op: ReplicationOp,
    names: Mapping[str, str | None],
    then: Mapping[str, Value],
) -> dict[str, Value]:
    """Return the row's values of what identifies it now; none: that is not known."""
    found = connection.execute(_IDENTITY, (oid,)).fetchone()
    columns = found[0] if found is not None else []
    row = zip(op.table.columns, op.new or (), strict=True)
    sent = {names[name]: value for name, value in row if isinstance(value, str)}
    if set(columns) == set(then) or not sent.keys() >= set(columns):
        return {}
    return {name: sent[name] for name in columns}


def names_now(
    then: Sequence[str], attributes: Sequence[str | None], *, in_part: bool = False
) -> dict[str, str | None] | None:
    """Find what columns of then are called now; None: a column is dropped.

    `attributes` are all that the table ever had, in order, None where one is dropped.
    `in_part`: some of them may not have been published, so places tell nothing. None
    altogether: it is unknown.
    """
    now = [name for name in attributes if name is not None]
    first = attributes[: len(then)]
    if not in_part:
        if len(first) == len(then) and (None not in first or first == attributes):
            # what is added stands last: each of then stands where it stood
            return dict(zip(then, first, strict=True))
        if _within(then, now) and now[: len(then)] != list(then):
            return None  # one was renamed, and another took its name
    if _within(then, now) or _within(now, then):
        return {name: name if name in now else None for name in then}
    return None


def _within(some: Sequence[str], every: Sequence[str]) -> bool:
    rest = iter(every)
    return all(name in rest for name in some)


def _rows(
    connection: Connection,
    table: sql.Composable,
    keys: tuple[Mapping[str, Value], Mapping[str, Value]],
    wanted: Sequence[str],
    types: Types,
) -> list[list[str | None]]:
    """Return those that may be the row of a key then, and of one now; {}: not known.

    Either key may have been given to another row since: the former one by no change of
    a key, the present one by what was none yet.
    """
    then, now = keys
    if not now:
        return _select(connection, table, then, wanted, types)
    with suppress(psycopg.DataError):  # a column has another type by now
        if both := _select(connection, table, {**then, **now}, wanted, types):
            return both
    found = _select(connection, table, then, wanted, types)
    if len(found) > 1:  # it identifies no row any more
        found = []
    with suppress(psycopg.DataError):
        found += _select(connection, table, now, wanted, types)
    return found


def _select(
    connection: Connection,
    table: sql.Composable,
    key: Mapping[str, Value],
    wanted: Sequence[str],
    types: Types,
) -> list[list[str | None]]:
    """Return the rows of a key, two at most."""
    try:
        return _found(connection, table, key, wanted, types)
    except (psycopg.errors.UndefinedFunction, psycopg.errors.FeatureNotSupported):
        return _found(connection, table, key, wanted, dict.fromkeys(key))


def _found(
    connection: Connection,
    table: sql.Composable,
    key: Mapping[str, Value],
    wanted: Sequence[str],
    types: Types,
) -> list[list[str | None]]:
    query = sql.SQL("SELECT {} FROM {} WHERE {} LIMIT 2").format(
        sql.SQL(", ").join(sql.Identifier(name) for name in wanted),
        table,
        sql.SQL(" AND ").join(_equal(*one, types) for one in key.items()),
    )
    result: Any = connection.execute(query).pgresult
    return [
        [None if value is None else value.decode() for value in row]
        for row in (
            [result.get_value(number, index) for index in range(len(wanted))]
            for number in range(result.ntuples)
        )
    ]


def _equal(name: str, text: Value, types: Types) -> sql.Composed:
    column, value = sql.Identifier(name), sql.Literal(text)
    if name not in types:
        return _EQUAL.format(column, value)
    if (type_ := types[name]) is None:
        return _PRINTED.format(column, value)
    return _EQUAL_OF_TYPE.format(column, value, sql.Identifier(*type_))


def which(op: ReplicationOp, wanted: Sequence[str]) -> str:
    """Name an update, what it did that wants the whole row, and what it lacks."""
    did = "came past the row filter" if op.kind is Kind.INSERT else "changed its key"
    return (
        f"an update of {op.table.full_name!r} at ({show(op.lsn)}, {op.seq_id}) {did}, "
        f"and PostgreSQL did not send {', '.join(wanted)}"
    )


def _refusal(
    op: ReplicationOp,
    wanted: Sequence[str],
    error: psycopg.Error,
    attributes: Sequence[str | None],
) -> HistoryError | None:
    """Return why no later try would end otherwise; None: one may."""
    state = error.sqlstate or ""
    if state.startswith(_DATA_EXCEPTION):
        return _renamed(op, wanted, [name for name in attributes if name])
    if state.startswith(_NOT_SUPPORTED):
        return _unsupported(op, wanted, error)
    return None


def _denied(
    op: ReplicationOp,
    wanted: Sequence[str],
    table: tuple[str, str],
    role: str,
    error: psycopg.Error,
) -> PermissionLacking:
    name = sql.Identifier(*table).as_string(None)
    why = error.diag.message_primary or "permission denied"
    policy = "row-level security" in why
    cure = (
        f"ALTER ROLE {role} BYPASSRLS;"
        if policy
        else f"GRANT SELECT ON {name} TO {role};"
    )
    return PermissionLacking(
        f"{which(op, wanted)}: they cannot be read from the table: {why}",
        hint=f"run: {cure} To need no such right for later rows: ALTER TABLE {name} "
        "REPLICA IDENTITY FULL;",
        repair=Repair(sql=cure, then="walstream run"),
    )


def _unsupported(
    op: ReplicationOp, wanted: Sequence[str], error: psycopg.Error
) -> HistoryError:
    return HistoryError(
        f"{which(op, wanted)}: the server cannot compare the table's key: "
        f"{without_values(error)}",
        hint="start again with a backfill. Under REPLICA IDENTITY FULL nothing has to "
        "be read",
        repair=RESET,
    )


def _renamed(
    op: ReplicationOp, wanted: Sequence[str], now: Sequence[str]
) -> HistoryError:
    return HistoryError(
        f"{which(op, wanted)}: the table's columns have changed: {', '.join(now)} "
        f"instead of {', '.join(op.table.columns)}",
        hint="restore their names and types until walstream has passed; or start again "
        "with a backfill. Under REPLICA IDENTITY FULL nothing has to be read",
        repair=RESET,
    )


def _ambiguous(
    op: ReplicationOp,
    wanted: Sequence[str],
    then: Mapping[str, Value],
    now: Mapping[str, Value],
) -> HistoryError:
    names = " or ".join(f"({', '.join(key)})" for key in (then, now) if key)
    return HistoryError(
        f"{which(op, wanted)}: the table's key was changed since, and several rows "
        f"have its {names}",
        hint="give the rows that are not meant other values there until walstream has "
        "passed; or start again with a backfill. Under REPLICA IDENTITY FULL nothing "
        "has to be read",
        repair=RESET,
    )
