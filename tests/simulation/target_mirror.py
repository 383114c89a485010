"""What the target answers to a mirror: writes of rows, and their positions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from consumer.mirror import (
    application,
    row_position,
    shape_cache,
    source_generation,
    target_check,
)
from consumer.mirror.position_store import GENERAL
from consumer.mirror.table_shape import TargetTable
from tests.simulation.target import Tx
from tests.simulation.target_session import Rows, Statement, done

COLUMNS: Final = ("id", "note", "large", *(f"c{at}" for at in range(3, 20)))
_TEXT: Final = "pg_catalog.text[]"
_IS: Final = re.escape("OPERATOR(pg_catalog.=)")
_TABLE: Final = r'"public"\."(\w+)"'
_VALUES: Final = r"(?:VALUES \([%s, ]+\)|SELECT \* FROM ROWS FROM \(.*\) AS w \(.*\))"
_UPSERT: Final = re.compile(
    rf"INSERT INTO {_TABLE} AS t \(([^)]*)\) OVERRIDING SYSTEM VALUE ({_VALUES})"
    r' ON CONFLICT \("id"\) DO .*'
)
_UPDATE: Final = re.compile(rf'UPDATE {_TABLE} SET (.*) WHERE "id" {_IS} %s')
_UPDATES: Final = re.compile(
    rf'UPDATE {_TABLE} AS t SET (.*) FROM ROWS FROM .* WHERE t\."id" {_IS} w\.c\d+'
    r" RETURNING w\.n"
)
_DELETE: Final = re.compile(rf'DELETE FROM {_TABLE} WHERE "id" {_IS} %s')
_DELETES: Final = re.compile(
    rf'DELETE FROM {_TABLE} AS t USING ROWS FROM .* WHERE t\."id" {_IS} w\.c0'
)
_HAS: Final = re.compile(rf'SELECT FROM {_TABLE} WHERE "id" {_IS} %s')
_EMPTY: Final = re.compile(rf"TRUNCATE ONLY {_TABLE}")
_NAME: Final = re.compile(r'"(\w+)"(?: =|,|$)')
_ELEMENT: Final = re.compile(r'NULL|"((?:[^"\\]|\\.)*)"')

Row = dict[str, str | None]


def shape_of(_tx: object, schema: str, name: str) -> TargetTable:
    """Return what a mirror reads of a table in the catalog."""
    return TargetTable(
        schema,
        name,
        COLUMNS,
        ("id",),
        indexed=frozenset(COLUMNS),
        plain=True,
        arrays=dict.fromkeys(COLUMNS, _TEXT),
        equal={"id": "OPERATOR(pg_catalog.=)"},
    )


def statement_of(text: str) -> Statement | None:
    """Return what runs a statement; None: no mirror sends it."""
    if text in _OF:
        return _OF[text]
    said, _, _ = text.partition(" /* ")  # which shape of the table it stands on
    for pattern, make in _PATTERNS.items():
        if found := pattern.fullmatch(said):
            return make(found)
    return None


# rows


def _each(arrays: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    return zip(*map(elements, arrays), strict=True)


def elements(array: str) -> list[str | None]:
    """Read an array's texts."""
    return [
        None if one[0] == "N" else re.sub(r"\\(.)", r"\1", one[1:-1])
        for one in (found.group() for found in _ELEMENT.finditer(array))
    ]


def _upsert(found: re.Match[str]) -> Statement:
    table, columns, values = found[1], _NAME.findall(found[2]), found[3]

    def run(tx: Tx, given: Sequence[Any]) -> Rows:
        rows = [given] if values.startswith("VALUES") else _each(given)
        count = 0
        for one in rows:
            row = dict(zip(columns, one, strict=True))
            before = tx.lock(f"public.{table}", (row["id"],)) or {}
            tx.put(f"public.{table}", (row["id"],), {**before, **row})
            count += 1
        return done(count)

    return run


def _update(found: re.Match[str]) -> Statement:
    table, columns = found[1], _NAME.findall(found[2])

    def run(tx: Tx, given: Sequence[Any]) -> Rows:
        *texts, key = given
        row = dict(zip(columns, texts, strict=True))
        return done(int(_set(tx, table, key, row)))

    return run


def _updates(found: re.Match[str]) -> Statement:
    table, columns = found[1], _NAME.findall(found[2])

    def run(tx: Tx, given: Sequence[Any]) -> Rows:
        numbers = []
        for number, one in enumerate(_each(given), 1):
            *texts, key = one
            if _set(tx, table, key, dict(zip(columns, texts, strict=True))):
                numbers.append((number,))
        return Rows(numbers)

    return run


def _set(tx: Tx, table: str, key: str | None, row: Mapping[str, str | None]) -> bool:
    name, where = f"public.{table}", (row.get("id", key),)
    if tx.get(name, (key,)) is None or (before := tx.lock(name, (key,))) is None:
        return False
    tx.put(name, (key,), None)
    tx.put(name, where, {**before, **row})
    return True


def _delete(found: re.Match[str]) -> Statement:
    return lambda tx, given: _gone(tx, found[1], given)


def _deletes(found: re.Match[str]) -> Statement:
    return lambda tx, given: _gone(tx, found[1], elements(given[0]))


def _gone(tx: Tx, table: str, keys: Sequence[Any]) -> Rows:
    count = 0
    for key in keys:
        if tx.get(f"public.{table}", (key,)) is not None:
            count += tx.lock(f"public.{table}", (key,)) is not None
            tx.put(f"public.{table}", (key,), None)
    return done(count)


def _has(found: re.Match[str]) -> Statement:
    def run(tx: Tx, given: Sequence[Any]) -> Rows:
        row = tx.get(f"public.{found[1]}", tuple(given))
        return Rows([()] if row is not None else [])

    return run


def _empty(found: re.Match[str]) -> Statement:
    def run(tx: Tx, _given: object) -> Rows:
        tx.empty(f"public.{found[1]}")
        return done(0)

    return run


_PATTERNS: Final = {
    _UPSERT: _upsert,
    _UPDATE: _update,
    _UPDATES: _updates,
    _DELETE: _delete,
    _DELETES: _deletes,
    _HAS: _has,
    _EMPTY: _empty,
}

# positions of rows: (generation, lsn, number) by (relation, key)

_NOWHERE: Final = (0, 0, 0)


def _add(tx: Tx, given: Sequence[Any]) -> Rows:
    for key in sorted({*_each(given)}):
        if tx.lock("row", key) is None:
            tx.put("row", key, _NOWHERE)
    return done(0)


def _take(tx: Tx, given: Sequence[Any]) -> Rows:
    wanted = [*enumerate(_each(given), 1)]
    rows = []
    for number, key in sorted(wanted, key=lambda one: one[1]):
        found = tx.lock("row", key)
        if found is not None:
            rows.append((number, str(key), *map(str, found)))
    return Rows(rows)


def _write(tx: Tx, given: Sequence[Any]) -> Rows:
    for *key, generation, lsn, number in _each(given):
        if tx.lock("row", tuple(key)) is not None:
            position = int(generation or 0), int(lsn or 0), int(number or 0)
            tx.put("row", tuple(key), position)
    return done(0)


def _note(tx: Tx, given: Sequence[Any]) -> Rows:
    relation, key, below, topic, partition, lsn, number = given
    generation, later, since = _era(tx, topic, partition) or (0, 0, None)
    if since is not None and since <= below:
        generation = max(generation, later)
    position = generation, lsn, number
    before = tx.lock("row", (relation, key))
    if before is not None and before >= position:
        return done(0)
    tx.put("row", (relation, key), position)
    return done(1)


def _era(tx: Tx, topic: str, partition: int) -> tuple[Any, Any, Any] | None:
    here = _generations(tx, topic, partition)
    if not here:
        return None
    generation, source = max(here)
    since = tx.get("row", (topic, f"since {re.sub(r' [0-9]+$', '', source)}"))
    return (generation, *(since[:2] if since else (None, None)))


def _generations(tx: Tx, topic: str, partition: int) -> list[tuple[int, str]]:
    return [
        (generation, source)
        for (where, number, source), generation in tx.rows("source").items()
        if (where, number) == (topic, partition)
    ]


def _lock_marks(tx: Tx, given: Sequence[Any]) -> Rows:
    for name, alone in sorted(zip(*given, strict=True), key=lambda one: one[0]):
        tx.advise(("mark", name), alone=alone)
    return Rows([()])


def _marked(tx: Tx, given: Sequence[Any]) -> Rows:
    return Rows([(name,) for name in given[0] if tx.get("row", (name, "")) is not None])


def _mark(tx: Tx, given: Sequence[Any]) -> Rows:
    if tx.lock("row", (given[0], "")) is None:
        tx.put("row", (given[0], ""), _NOWHERE)
    return done(1)


def _forget(tx: Tx, given: Sequence[Any]) -> Rows:
    for relation, key in [*tx.rows("row")]:
        if relation == given[0] and key.startswith("["):
            tx.put("row", (relation, key), None)
    return done(0)


def _current(tx: Tx, asked: Mapping[str, Any]) -> Rows:
    here = _generations(tx, asked["topic"], asked["partition"])
    return Rows([max(here)[::-1]] if here else [])


def _known(tx: Tx, asked: Mapping[str, Any]) -> Rows:
    source, after = asked["source"], asked["after"]
    all_ = [
        (generation, name)
        for (topic, _, name), generation in tx.rows("source").items()
        if topic == asked["topic"]
    ]
    later = [g for g, n in all_ if g > after and n in {source, f"{source} {g}"}]
    newest = max((g for g, _ in all_), default=0)
    returns = any(n == source and g <= after for g, n in all_)
    return Rows([(min(later, default=newest + 1), returns)])


def _keep(tx: Tx, asked: Mapping[str, Any]) -> Rows:
    key = asked["topic"], asked["partition"], asked["name"]
    if tx.lock("source", key) is None:
        tx.put("source", key, asked["generation"])
    return done(1)


def _share(tx: Tx, asked: Mapping[str, Any]) -> Rows:
    here = _generations(tx, asked["topic"], asked["partition"])
    for number in range(asked["partitions"]) if here else ():
        generation, source = max(here)
        key = asked["topic"], number, source
        if tx.lock("source", key) is None:
            tx.put("source", key, generation)
    return done(0)


def _advise(tx: Tx, _given: object) -> Rows:
    tx.advise("replication_mirror_row")
    return Rows([()])


_OF: Final[dict[str, Statement]] = {
    GENERAL.add(): _add,
    GENERAL.take(): _take,
    GENERAL.write(): _write,
    GENERAL.note(): _note,
    source_generation._ERA: lambda tx, asked: Rows(filter(None, [_era(tx, *asked)])),
    source_generation._CURRENT: _current,
    source_generation._KNOWN: _known,
    source_generation._KEEP: _keep,
    source_generation._SHARE: _share,
    source_generation.LOCK: _advise,
    shape_cache.CHANGED: lambda *_: Rows(),
    row_position._THERE: lambda *_: Rows([()]),
    row_position._LOCK_MARKS: _lock_marks,
    row_position._MARKED: _marked,
    row_position._MARK: _mark,
    row_position._FORGET: _forget,
    application._SAME: lambda *_: Rows([("target", 7, "origin")]),
    target_check.SETTINGS: lambda *_: Rows([("off",)]),
}
