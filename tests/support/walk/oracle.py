"""What the topics must hold: the records folded by key are the tables' rows.

A reader of the records is played who takes each once, in the order of (lsn, seq_id),
and who does by hand what PostgreSQL puts into no stream: what a change of the schema
itself does to rows (TRUNCATE, DROP and DETACH of a leaf, ATTACH with rows, a rewriting
ALTER, ADD COLUMN with a default). That is not excused by kind, but known exactly: the
rows are read before and after each change of the schema, and the difference is done to
the reader's rows at its LSN. A renamed table takes its rows with it, and a key of other
columns is the same row's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
import psycopg

from tests.support.oracles.topic_reader import Record
from tests.support.walk.tables import BY_CODE
from walstream.lsn import parse, show
from walstream.op import Kind
from walstream.row import NotSent

Name = tuple[int, int]
Row = dict[int, str | None]  # by the number of the column
RowOf = dict[str, str | None]

# The key as docs/formats.md has it: the identity's columns, under FULL the primary
# key's; of a partitioned table the root's. A detached leaf is not looked at.
_CATALOG: Final = """
SELECT c.oid::bigint, n.nspname || '.' || c.relname,
  ARRAY(SELECT a.attnum::int FROM pg_attribute a WHERE a.attrelid = c.oid
    AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
  ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid
    AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
  ARRAY(SELECT a.attnum::int FROM pg_index i, pg_attribute a
    WHERE i.indrelid = c.oid AND a.attrelid = c.oid
      AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
      AND (i.indisreplident AND c.relreplident = 'i'
        OR i.indisprimary AND c.relreplident IN ('d', 'f')) ORDER BY a.attnum),
  ARRAY(SELECT a.attnum::int FROM pg_index i, pg_attribute a
    WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid
      AND a.attnum = ANY (i.indkey::int2[]) ORDER BY a.attnum),
  c.relkind = 'p'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND n.nspname !~ '^(pg_|information_schema)'
  AND c.relname !~ '^(ticks|east|west|north)' ORDER BY 1
"""


_ASIDE: Final = re.compile("ticks|east|west|north")  # detached leaves too


_TOASTED: Final = 2000  # a text of so many characters lies outside of its row


def _went(record: Record, known: tuple[bytes | None, bytes | None]) -> bool:
    """Tell whether all that differs are long values that were read from the table.

    Where a key change leaves them out, they are null once the row is gone: a reader
    hears of that by its Delete (docs/operations.md).
    """
    key, value = known
    if key != record.key or record.op.kind is not Kind.INSERT:
        return False
    if not (value and record.value):
        return False
    first, again = orjson.loads(value), orjson.loads(record.value)
    rows = first.pop("op")["Insert"], again.pop("op")["Insert"]
    return first == again and all(
        was == now or (now is None and isinstance(was, str) and len(was) > _TOASTED)
        for was, now in zip(*rows, strict=True)
    )


@dataclass
class Seen:
    """One table as it was at a moment."""

    name: str
    columns: dict[int, str]
    key: list[int]
    rows: list[Row]
    primary: list[int] = field(default_factory=list)
    partitioned: bool = False

    def by(self, key: Sequence[int]) -> dict[tuple[str | None, ...], Row]:
        return {tuple(row[one] for one in key): row for row in self.rows}

    def named(self, row: Row) -> RowOf:
        return {name: row[number] for number, name in self.columns.items()}

    def key_of(self, row: Mapping[str, Any]) -> bytes:
        named = [row.get(self.columns[one]) for one in self.key]
        return orjson.dumps(named, default=str)

    def primary_of(self, row: Mapping[str, Any]) -> bytes:
        named = [row.get(self.columns[one]) for one in self.primary]
        return orjson.dumps(named, default=str)

    def folded(self) -> dict[bytes, RowOf]:
        named = [self.named(row) for row in self.rows]
        return {self.key_of(row): row for row in named}


Sight = dict[int, Seen]
"""Tables by oid."""


def look(connection: psycopg.Connection[Any]) -> Sight:
    """Read the tables, each value as PostgreSQL prints it."""
    found: Sight = {}
    rows = connection.execute(_CATALOG).fetchall()
    for oid, name, numbers, columns, key, primary, partitioned in rows:
        query = f"SELECT * FROM {name}"  # noqa: S608 - a name of the walk's own
        result = connection.execute(query.encode()).pgresult
        assert result is not None
        found[oid] = Seen(
            name=name,
            columns=dict(zip(numbers, columns, strict=True)),
            key=[numbers[columns.index("code")]] if BY_CODE in name else key,
            rows=[
                {
                    number: _text(result.get_value(at, index))
                    for index, number in enumerate(numbers)
                }
                for at in range(result.ntuples)
            ],
            primary=primary,
            partitioned=partitioned,
        )
    return found


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def now(connection: psycopg.Connection[Any]) -> int:
    """Say where the WAL ends: what commits from now on lies at or above."""
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return parse(row[0])


@dataclass
class Change:
    """What a change of the schema did by itself, at an LSN or behind a row of ticks."""

    lsn: int
    before: Sight
    after: Sight
    tick: str | None = None  # inside a transaction: the row's id
    detached: str = ""  # the leaf, if walstream knows it as one
    attached: str = ""

    def is_due(self, record: Record) -> bool:
        if record.op.table.name == "ticks" and record.new.get("id") == self.tick:
            return True
        return self.lsn <= record.op.lsn


class _Unread(RowOf):
    """A row with other values in place of what a key change left out.

    walstream found no such row any more, and they are null, or another one under its
    key, and they are `late`: its Delete is still to come. So nobody is to have it at
    the next comparison, but old rows until then may say more.
    """

    late: frozenset[str] = frozenset()

    def misses(self, name: str) -> bool:
        return self[name] is None or name in self.late


@dataclass
class Fold:
    """The rows of who read everything, and what does not fit."""

    state: dict[str, dict[bytes, RowOf]] = field(default_factory=dict)
    complaints: list[tuple[str, str]] = field(default_factory=list)  # table, what
    # without an identity: only its inserts are captured, and that is said
    unknown: set[str] = field(default_factory=set)
    # read anew beside the stream, and not yet as the tables are
    reread: set[str] = field(default_factory=set)
    # as it was with its former keys, and is now
    rekeyed: dict[str, tuple[list[Seen], Seen]] = field(default_factory=dict)
    # partition roots: by a name that one had until walstream looks, its name of now
    former_names: dict[str, str] = field(default_factory=dict)
    # with other columns, or another name, since walstream last looked: then it cannot
    # know whether a key is younger than a row
    recolumned: set[str] = field(default_factory=set)
    _met: set[str] = field(default_factory=set)  # of both: with rows since
    # the rows that leaves had when they were detached: what is done to them until they
    # are attached again is in no stream, and has to be told
    _aside: dict[str, list[Row]] = field(default_factory=dict)
    _since: int = 0  # what lies below was before the baseline
    _deleted: tuple[Name, RowOf] = ((0, 0), {})  # last: half of a key change?
    _taken: dict[Name, tuple[bytes, bytes]] = field(default_factory=dict)
    _highest: Name = (0, 0)
    _changes: list[Change] = field(default_factory=list)
    _read: int = 0  # records

    def restart(self, lsn: int, sight: Sight) -> None:
        """Begin anew with the tables as they are, as who lost something does."""
        self.state = {seen.name: seen.folded() for seen in sight.values()}
        self.complaints.clear()
        self._changes.clear()
        self.rekeyed.clear()
        self.former_names.clear()
        self.recolumned.clear()
        self._aside.clear()
        self.reread.clear()
        self.unknown = {seen.name for seen in sight.values() if not seen.key}
        self._since = lsn

    def know(self, table: Seen) -> None:
        """Take a table that is captured whole again as it is now."""
        self.unknown.discard(table.name)
        self.rekeyed.pop(table.name, None)
        self.state[table.name] = table.folded()

    def looked(self) -> None:
        """Take it that walstream knows the roots as they are now, and all agrees."""
        self.former_names.clear()
        self.reread.clear()
        for name, (former, after) in list(self.rekeyed.items()):
            same = all(one.primary == after.primary for one in former)
            if after.partitioned and same:
                del self.rekeyed[name]

    def change(self, change: Change) -> None:
        self._changes.append(change)

    def take(self, records: Sequence[Record]) -> None:
        """Apply what came since, each op once, with the changes in their places."""
        fresh: list[Record] = []
        for record in records[self._read :]:
            known = self._taken.get(record.name)
            if known is None:
                self._taken[record.name] = (record.key, record.value)
                fresh.append(record)
            elif record.op.snapshot or _truncates(record):
                continue
            elif known != (record.key, record.value) and not _went(record, known):
                self._complain(record, f"is sent again, but not alike: {known}")
        self._read = len(records)
        for record in sorted(fresh, key=lambda one: one.name):
            while self._changes and self._changes[0].is_due(record):
                self._apply_change(self._changes.pop(0))
            if record.op.lsn >= self._since:
                self._apply(record)
        for change in self._changes:
            self._apply_change(change)
        self._changes.clear()
        for name in self._met:
            self.rekeyed.pop(name, None)
        self.recolumned -= self._met
        self._met.clear()

    def differences(self, sight: Sight) -> list[tuple[str, str]]:
        """Name what is not as in the tables, with the table's name."""
        found = list(self.complaints)
        for seen in sight.values():
            if seen.name in self.unknown:
                continue
            wanted, have = seen.folded(), self.state.get(seen.name, {})
            found += [
                (seen.name, _differ(key, wanted.get(key), have.get(key)))
                for key in sorted(wanted.keys() | have.keys())
                if wanted.get(key) != have.get(key)
            ]
        return found

    def _complain(self, record: Record, what: str) -> None:
        op = record.op
        if op.table.full_name in self.reread:
            return  # its rows are coming
        at = f"{op.kind.name} at ({show(op.lsn)}, {op.seq_id})"
        self.complaints.append(
            (op.table.full_name, f"{at} under {record.key.decode()}: {what}")
        )

    def _name(self, record: Record) -> str:
        """Name its table as it is now: a root's rows go by its former name for a while.

        Once one came by the name of now, no later one comes by another.
        """
        said = record.op.table.full_name
        for former in [k for k, now in self.former_names.items() if now == said]:
            del self.former_names[former]
        return self.former_names.get(said, said)

    def _apply(self, record: Record) -> None:
        name = self._name(record)
        if self._is_passed_over(record, name):
            return
        table = self.state.setdefault(name, {})
        key, new_key = self._former(record, name)
        before = table.get(key)
        if record.kind is Kind.TRUNCATE:
            table.clear()
            if record.op.snapshot:
                self.reread.add(name)
                self.complaints = [one for one in self.complaints if one[0] != name]
            return
        if record.op.snapshot:
            self.reread.add(name)
        if (before is None) != (record.kind is Kind.INSERT):
            self._complain(record, f"the reader has {_short(before)}")
        for name, value in record.old.items():
            if isinstance(value, NotSent) or before is None or name not in before:
                continue
            unread = isinstance(before, _Unread) and before.misses(name)
            if before[name] != value and not unread:
                self._complain(
                    record, f"old {name} is {_cut(value)}, not {_cut(before[name])}"
                )
        table.pop(key, None)
        if record.kind is Kind.DELETE:
            self._deleted = record.name, before or {}
            return
        held = before or {}
        row = {
            name: held.get(name, "a value that nobody sent")
            if isinstance(value, NotSent)
            else value
            for name, value in record.new.items()
        }
        table[new_key] = self._unread(record, before, row)

    def _is_passed_over(self, record: Record, name: str) -> bool:
        """Tell whether nobody asks what it does.

        Its rows are not known, or it has no key since nobody can name its table's
        columns again: that was altered, and dropped before walstream looked
        (docs/operations.md).
        """
        if name in self.unknown or _ASIDE.match(record.op.table.name):
            return True
        keyless = orjson.dumps([record.op.table.full_name])
        if record.kind is Kind.TRUNCATE or record.key != keyless:
            return False
        return any(
            seen.name == name and oid not in change.after
            for change in self._changes
            for oid, seen in change.before.items()
        )

    def _unread(self, record: Record, before: RowOf | None, row: RowOf) -> RowOf:
        """Mark a row some values of which may have been read when it had gone."""
        place, deleted = self._deleted
        moved = place == (record.op.lsn, record.op.seq_id - 1)
        had = deleted if moved and record.kind is Kind.INSERT else {}
        late = {
            name
            for name, value in had.items()
            if value is not None and len(value) > _TOASTED and row.get(name) != value
        }
        for former in (before, had):
            if isinstance(former, _Unread):
                late |= former.late & {
                    name
                    for name, value in record.new.items()
                    if isinstance(value, NotSent)
                }
        if not (
            isinstance(before, _Unread)
            or isinstance(had, _Unread)
            or late
            or any(v is not None and row.get(name) is None for name, v in had.items())
        ):
            return row
        unread = _Unread(row)
        unread.late = frozenset(late)
        return unread

    def _former(self, record: Record, name: str) -> tuple[bytes, bytes]:
        """Give the keys of a record's row before and behind it.

        Under FULL nobody can know which of two keys over the same columns a row of a
        backlog had (docs/decisions/0059): walstream may read such a row under the
        key of before until it looks again, or under that of now. The row is known by
        its columns then, once: what comes after the next comparison has the right key.
        So it is with a partition root's identity, until walstream has looked at it.
        """
        if record.kind is Kind.TRUNCATE:
            return record.key, record.key
        self._met.add(name)
        found: list[tuple[Seen, Seen]] = []
        if name in self.recolumned:
            found = [(after, before) for before, after in self._rekeying(name)]
            # a key that comes back is no younger than a row that has it by now
            if found and record.key == found[0][1].key_of(record.new or record.old):
                return record.key, record.key
        if name in self.rekeyed:
            former, after = self.rekeyed[name]
            found += [(one, after) for one in former]
        row = record.new or record.old
        table = self.state.get(name, {})
        sent = {n: v for n, v in row.items() if not isinstance(v, NotSent)}
        had = {} if record.kind is Kind.INSERT or record.key in table else table
        for other, right in found:
            for key, held in had.items():
                if record.key in {other.primary_of(held), other.key_of(held)}:
                    return key, right.key_of({**held, **sent})
            named = {right.columns[one] for one in right.key}
            keys = {other.primary_of(row), other.key_of(row)}
            if record.key in keys and named <= row.keys():
                return right.key_of(record.old or row), right.key_of(row)
        return record.key, record.key

    def _rekeying(self, name: str) -> list[tuple[Seen, Seen]]:
        """List what is still to come of changes of a table's primary key."""
        return [
            (before, change.after[oid])
            for change in self._changes
            for oid, before in change.before.items()
            if before.name == name
            and oid in change.after
            and _rekeys(before, change.after[oid])
        ]

    def _apply_change(self, change: Change) -> None:
        renamed = {
            oid: self.state.pop(seen.name, {}) for oid, seen in change.before.items()
        }
        for oid, after in change.after.items():
            before = change.before.get(oid)
            if before is None or before.columns != after.columns:
                self._recolumn(after.name)
            if before is None:
                self.state[after.name] = after.folded()
                continue
            if before.name != after.name:
                self._recolumn(after.name)
            rows = renamed[oid]
            if before.name in self.rekeyed:
                former, _ = self.rekeyed.pop(before.name)
                self.rekeyed[after.name] = _renamed(former, after), after
            if after.partitioned and before.name != after.name:
                self._rename_root(before.name, after.name)
            if before.name in self.unknown or not after.key:
                self.unknown.add(after.name)
                continue
            leaf = change.attached if after.partitioned else ""
            gone = _change_rows(rows, before, after, self._aside.pop(leaf, None))
            if after.partitioned and change.detached:
                self._aside[change.detached] = gone
            if _rekeys(before, after):
                former, _ = self.rekeyed.get(after.name, ([], after))
                self.rekeyed[after.name] = ([*former, before], after)
                self._met.discard(after.name)
            self.state[after.name] = {after.key_of(row): row for row in rows.values()}

    def _recolumn(self, name: str) -> None:
        self.recolumned.add(name)
        self._met.discard(name)

    def _rename_root(self, before: str, after: str) -> None:
        for former, now in self.former_names.items():
            if now == before:
                self.former_names[former] = after
        self.former_names[before] = after


def _rekeys(before: Seen, after: Seen) -> bool:
    root = after.partitioned and before.key != after.key
    return root or before.primary != after.primary


def _renamed(former: list[Seen], now: Seen) -> list[Seen]:
    """Give a table as it was, with the names that its columns have now."""
    there = now.columns.keys()
    return [
        replace(one, columns=now.columns)
        for one in former
        if there >= {*one.key, *one.primary}
    ]


def _change_rows(
    rows: dict[bytes, RowOf], before: Seen, after: Seen, aside: list[Row] | None
) -> list[Row]:
    """Do to the reader's rows what the change did to the table's; give what went.

    `aside` are the rows of an attached leaf as the reader had them.
    """
    key = before.key if set(before.key) <= after.columns.keys() else after.key
    was, became = before.by(key), after.by(key)
    held = {at: before.key_of(before.named(row)) for at, row in was.items()}
    gone = [rows.pop(held[at], None) for at in was.keys() - became.keys()]
    for row in rows.values():
        _rename_columns(row, before, after)
    came = [row for at, row in became.items() if at not in was]
    for now_has in came if aside is None else aside:
        named = after.named(now_has)
        rows[orjson.dumps([named])] = named  # who asked gives it its key
    for at in was.keys() & became.keys():
        if (reader_has := rows.get(held[at])) is not None:
            for number, value in became[at].items():
                if number not in was[at] or was[at][number] != value:
                    reader_has[after.columns[number]] = value
    return [
        {number: row.get(name) for number, name in before.columns.items()}
        for row in gone
        if row is not None
    ]


def _rename_columns(row: RowOf, before: Seen, after: Seen) -> None:
    for number, old in before.columns.items():
        new = after.columns.get(number)
        if new != old:
            value = row.pop(old, None)
            if new is not None:
                row[new] = value
            if isinstance(row, _Unread) and old in row.late:
                row.late = row.late - {old} | {new or old}


def _differ(key: bytes, wanted: RowOf | None, have: RowOf | None) -> str:
    return f"key {key.decode()}: table {_short(wanted)}; topics {_short(have)}"


def _truncates(record: Record) -> bool:
    return record.kind is Kind.TRUNCATE


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:40]}… ({len(text)} characters)"


def _short(row: Mapping[str, object] | None) -> str:
    if row is None:
        return "no such row"
    return (
        "{" + ", ".join(f"{name}: {_cut(value)}" for name, value in row.items()) + "}"
    )


class Order:
    """Claims that each partition goes on, or goes back and repeats what it had."""

    def __init__(self) -> None:
        self._place: dict[tuple[str, int], dict[Name, int]] = {}
        self._last: dict[tuple[str, int], int] = {}
        self._high: dict[tuple[str, int], Name] = {}
        self._where: dict[tuple[str, bytes], int] = {}
        self._read = 0

    def take(self, records: Sequence[Record]) -> Iterable[str]:
        """Say what is out of order among what came since."""
        for record in records[self._read :]:
            if record.op.snapshot:
                continue  # may come otherwise after a crash
            where = (record.topic, record.partition)
            order = self._place.setdefault(where, {})
            index, last = order.get(record.name), self._last.get(where, -1)
            if index is None:
                index = order[record.name] = len(order)
                if record.name <= self._high.get(where, (0, 0)):
                    yield f"{where}: {record.name} after {self._high[where]}"
                if last != index - 1:
                    yield f"{where}: {record.name} cuts a replay short"
                self._high[where] = record.name
            elif index > last + 1:
                yield f"{where}: a replay left out what is before {record.name}"
            self._last[where] = index
            if record.kind is not Kind.TRUNCATE:
                key = (record.op.table.full_name, record.key)
                if self._where.setdefault(key, record.partition) != record.partition:
                    yield f"{key} is in partition {record.partition} too"
        self._read = len(records)

    def restart(self) -> None:
        """Take what comes next as a stream of its own: a position was reset."""
        for where, order in self._place.items():
            self._last[where] = len(order) - 1
