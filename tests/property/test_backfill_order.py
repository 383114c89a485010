"""Rows under one snapshot, the stream up to the next, the rest under that, the stream.

A database in memory writes at random between any two steps of backfills that crash at
random: whatever the schedule, who reads the topics ends at the tables.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.oracles.table_state import Rows, by_arrival, by_position, in_place
from tests.support.oracles.topic_reader import Record
from walstream.errors import Transient
from walstream.formats.op import decode
from walstream.lsn import NEVER
from walstream.op import Kind, ReplicationOp, Table, snapshot_truncate
from walstream.pipeline.checkpoint import Checkpointer, StartPoint
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.pgoutput import (
    Column,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Update,
)
from walstream.pipeline.ports import Position
from walstream.pipeline.shutdown import Stop, Waker
from walstream.row import UNCHANGED
from walstream.sources.postgres.backfill.progress import BackfillProgress as Left
from walstream.testing import (
    MemoryCompanion,
    MemorySink,
    MemorySource,
    MemoryStore,
    keepalive,
    transaction,
)

NAMES = ("a", "b", "bare")  # the last has no row key
COLUMNS = ("id", "n", "big")
FIRST = 1000
_END = 48  # bytes of a commit record

Row = tuple[str, str]  # n, big
Tables = dict[str, dict[str, Row]]


@dataclass
class Server:
    """A database, and the WAL of what was committed there."""

    tables: Tables = field(default_factory=lambda: {name: {} for name in NAMES})
    wal: list[tuple[int, str, Message]] = field(default_factory=list)
    end: int = FIRST
    values: int = 0

    def write(self, table: str, change: str, key: str, other: str) -> None:
        """Change a row, as far as it can be; each change is a transaction."""
        rows = self.tables[table]
        oid = NAMES.index(table) + 1
        self.values += 1
        if table == "bare":  # only its inserts are published
            key = f"{key}-{self.values}"
        fresh = (str(self.values), f"{self.values}" * 3)
        message: Message
        if change == "truncate":
            rows.clear()
            message = Truncate(0, (oid,))
        elif key not in rows:
            rows[key] = fresh
            message = Insert(oid, [key, *fresh], toasted=False)
        elif change == "delete":
            del rows[key]
            message = Delete(oid, [key, None, None], old_whole=False)
        elif change == "move" and other not in rows:
            rows[other] = (fresh[0], rows.pop(key)[1])
            message = Update(
                oid,
                old=[key, None, None],
                old_whole=False,
                new=[other, fresh[0], UNCHANGED],
                toasted=True,
            )
        elif change == "whole":
            rows[key] = fresh
            message = Update(
                oid, None, old_whole=False, new=[key, *fresh], toasted=False
            )
        else:  # its large value is left alone, and not sent
            rows[key] = (fresh[0], rows[key][1])
            message = Update(
                oid,
                None,
                old_whole=False,
                new=[key, fresh[0], UNCHANGED],
                toasted=True,
            )
        self.wal.append((self.end, table, message))
        self.end += _END + self.values % 7

    def snapshot(self) -> tuple[int, Tables]:
        """Give one and its LSN: the slot that exports it writes WAL itself."""
        self.end += 1
        return self.end, {name: dict(rows) for name, rows in self.tables.items()}

    def frames(self, resume: int) -> Iterator[bytes]:
        """Send what a stream that was asked for at `resume` is sent."""
        for lsn, table, message in self.wal:
            if lsn >= resume:
                yield from transaction(lsn, _relation(table), message)
        yield keepalive(self.end)

    def truncated_since(self, table: str, point: int) -> bool:
        return any(
            lsn >= point and name == table and isinstance(message, Truncate)
            for lsn, name, message in self.wal
        )


def _relation(table: str) -> Relation:
    columns = [Column(name in _key(table), name, 25, -1) for name in COLUMNS]
    return Relation(NAMES.index(table) + 1, "public", table, "d", columns)


def _key(table: str) -> tuple[str, ...]:
    return () if table == "bare" else ("id",)


class Asking(MemoryCompanion):
    """Reads what a key change would lose, from the table as it is by then."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server

    def complete(self, op: ReplicationOp) -> bool:
        assert op.new is not None
        found = self._server.tables[op.table.name].get(str(op.new[0]))
        big = found[1] if found else None
        op.new = [big if one is UNCHANGED else one for one in op.new]
        return True


class Life:
    """One walstream over its crashes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.sink = MemorySink(partitions=2)
        self.positions = MemoryStore()
        self.positions.store(Position(server.end, 1, 1, "d", "s"))
        tables = tuple(f"public.{name}" for name in NAMES)
        self.left = Left(server.end - 1, tables, begun=dict.fromkeys(tables))

    def stream(self, until: int = NEVER, crash_after: int | None = None) -> None:
        """Stream up to a limit; raise Transient where it crashes before."""
        position = self.positions.position()
        assert position is not None
        frames = list(self.server.frames(position.resume))[:crash_after]
        stop = Stop(Waker(), 10.0)
        source = MemorySource(
            frames, ending=Transient("crash"), on_exhausted=lambda: None
        )
        checkpointer = Checkpointer(
            StartPoint(position), self.positions, source, stop.waker.wake
        )
        pipeline = Pipeline(source, [self.sink], Asking(self.server), checkpointer)
        try:
            pipeline.run(stop, min(until, self.server.end))
        finally:
            checkpointer.close()
            source.close()
        if until != NEVER:
            stored = self.positions.position()
            assert stored is not None
            if stored.resume < until:
                self.positions.store(replace(stored, resume=until))

    def fill(self, point: int, snapshot: Tables, rows: int | None) -> None:
        """Send what is left under a snapshot, or crash after so many rows."""
        keys = {f"public.{name}": _key(name) for name in NAMES}
        self.left = self.left.under(point - 1, keys)
        left = self.left
        self.left = left.beginning({name: keys[name] for name in left.tables})
        for chunk, full_name in enumerate(left.replace, 1):
            bare = Table("public", full_name.partition(".")[2], COLUMNS)
            op = snapshot_truncate(bare, point - 1, chunk, commit_time=0)
            self.sink.send(op, Transaction(point - 1))
        for chunk, full_name in enumerate(left.tables, len(left.replace) + 1):
            name = full_name.partition(".")[2]
            table = Table("public", name, COLUMNS, tuple(range(len(_key(name)))))
            for index, (key, row) in enumerate(snapshot[name].items()):
                if rows is not None:
                    if not rows:
                        raise Transient("crash")
                    rows -= 1
                op = ReplicationOp(
                    Kind.INSERT,
                    table,
                    point - 1,
                    (chunk << 32) + index,
                    new=[key, *row],
                    snapshot=True,
                )
                self.sink.send(op, Transaction(point - 1))
            if self.server.truncated_since(name, point):
                raise Transient("rewritten")
            self.left = self.left.without(full_name, rows=len(snapshot[name]))

    def records(self) -> list[Record]:
        return [
            Record(
                one.topic,
                one.partition,
                offset,
                one.key,
                one.value,
                [],
                0,
                decode(one.value),
            )
            for offset, one in enumerate(self.sink.sent)
        ]


Write = tuple[str, str, str, str]
"""Table, change, key, and another one to move to."""

KEYS = st.sampled_from("123")
WRITES = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["part", "part", "whole", "delete", "move", "truncate"]),
        KEYS,
        KEYS,
    ),
    max_size=4,
)
# writes before the snapshot, frames until a crash, writes meanwhile, rows until a crash
TRIES = st.lists(
    st.tuples(WRITES, st.none() | st.integers(1, 12), WRITES, st.integers(0, 5)),
    max_size=4,
)


# two snapshots, and nothing was written in between
@example(
    [("bare", "part", "1", "1"), ("bare", "part", "1", "1")], [], [([], None, [], 1)]
)
@given(WRITES, WRITES, TRIES)
def test_whatever_crashes_a_reader_ends_at_the_tables(
    before: list[Write],
    after: list[Write],
    tries: list[tuple[list[Write], int | None, list[Write], int]],
) -> None:
    server = Server()
    for write in before:
        server.write(*write)
    life = Life(server)
    first = True
    for early, frames, late, rows in tries:
        if not first:
            for write in early:
                server.write(*write)
        point, snapshot = server.snapshot()
        for write in late:
            server.write(*write)
        with contextlib.suppress(Transient):
            if not first:
                life.stream(point, frames)
            life.fill(point, snapshot, rows)
        first = False
    for write in after:
        server.write(*write)
    finish(life)
    records = life.records()
    expected = {
        (f"public.{name}", f'["{key}"]'.encode()): dict(
            zip(COLUMNS, (key, *row), strict=True)
        )
        for name, rows in server.tables.items()
        if _key(name)
        for key, row in rows.items()
    }
    agree([r for r in records if r.op.table.name != "bare"], expected)
    bare = [r for r in records if r.op.table.name == "bare"]
    in_place(bare)
    assert held(bare) == dict.fromkeys(server.tables["bare"], 1)


def held(records: list[Record]) -> Counter[str]:
    """Count the rows of a table without a key, as who drops what is repeated has it."""
    rows: Counter[str] = Counter()
    for part in {record.partition for record in records}:
        mine: Counter[str] = Counter()
        seen: set[tuple[int, int]] = set()
        for record in records:
            if record.partition != part or record.name in seen:
                continue
            seen.add(record.name)
            if record.kind is Kind.TRUNCATE:
                mine.clear()
            else:
                mine[record.new["id"]] += 1
        rows += mine
    return rows


def finish(life: Life) -> None:
    """Let the last start go through."""
    point, snapshot = life.server.snapshot()
    life.stream(point)
    life.fill(point, snapshot, None)
    assert not life.left.tables
    life.server.write("a", "whole", "9", "9")
    life.stream()


def agree(records: list[Record], expected: Rows) -> None:
    expected[("public.a", b'["9"]')] = by_position(records)["public.a", b'["9"]']
    assert by_position(records) == expected
    assert by_arrival(records) == expected
    in_place(records)


def test_without_the_stream_between_a_reader_would_be_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The claim can fail: rows of the second snapshot before the stream up to it."""
    server = Server()
    server.write("a", "whole", "1", "1")
    life = Life(server)
    with pytest.raises(Transient):
        life.fill(server.end, {"a": {"1": ("0", "0")}, "b": {}}, 0)
    server.write("a", "delete", "1", "1")
    server.write("a", "whole", "1", "1")
    point = server.end
    monkeypatch.setattr(Life, "stream", lambda *_: None)
    life.fill(point, server.tables, None)
    monkeypatch.undo()
    life.stream()
    with pytest.raises(AssertionError):
        in_place(life.records())
