"""Tables of the simulated server: transactions change them, and leave WAL behind."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tests.simulation.catalog import SimCatalog
from walstream.op import Kind
from walstream.pipeline.pgoutput import (
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Relation,
    Truncate,
    Update,
)
from walstream.postgres.catalog import TableFacts
from walstream.row import UNCHANGED, Value
from walstream.testing import encode, wal_data

_INT8, _TEXT = 20, 25
TOASTED: Final = "large"
KEYS: Final = 6  # few, so that rows meet
_COMMIT_RECORD: Final = 40
NOWHERE: Final = -1

Row = dict[str, str | None]


class ShapeVersion(NamedTuple):
    """A table as of one transaction."""

    columns: tuple[str, ...]
    identity: str  # d | f | n
    key: bool = True  # has it a primary key?


FIRST: Final = ShapeVersion(("id", "note", "large"), "d")


class Expected(NamedTuple):
    """One op that each sink has to get."""

    seq_id: int
    kind: Kind
    table: str
    key: str  # "" of a truncation


@dataclass(eq=False)
class SimTable:
    oid: int
    name: str
    shape: ShapeVersion = FIRST
    rows: dict[str, Row] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  # of columns, by name
    last: int = 0
    file: int = 0  # another one after each TRUNCATE
    # as others see it: a commit is in the WAL before
    seen: dict[str, Row] = field(default_factory=dict)
    seen_shape: ShapeVersion = FIRST
    leaves: "tuple[SimTable, ...]" = ()  # of a partition root, attached or not
    keyed: bool = False  # never FULL: else nobody can say from where its key counts
    bound: tuple[int, int] | None = None  # of a partition: remainder and modulus

    def fill(self, keys: int) -> None:
        """Have rows that were there before all."""
        for key in map(str, range(keys)):
            self.rows[key] = {name: f"{key}{name}" for name in self.shape.columns}
            self.rows[key]["id"] = key
        self.seen = dict(self.rows)

    def __post_init__(self) -> None:
        for column in self.shape.columns:
            self.number(column)

    def number(self, column: str) -> None:
        self.last += 1
        self.numbers[column] = self.last

    @property
    def full_name(self) -> str:
        return f"public.{self.name}"

    @property
    def identity(self) -> tuple[str, ...]:
        """Name the columns that an old row carries, unless it is FULL."""
        return ("id",) if self.shape.identity == "d" and self.shape.key else ()

    @property
    def identified(self) -> bool:
        return self.shape.identity == "f" or bool(self.identity)

    def facts(
        self, root: "SimTable | None" = None, leaves: "Sequence[SimTable]" = ()
    ) -> TableFacts:
        columns = self.shape.columns
        return TableFacts(
            schema="public",
            name=self.name,
            kind="p" if self.leaves else "r",
            persistence="p",
            replica_identity=self.shape.identity,
            primary_key=("id",) if self.shape.key else (),
            identity=self.identity,
            columns=columns,
            not_null=frozenset(("id",)),
            root=root.full_name if root else None,
            leaves_full=all(one.shape.identity == "f" for one in leaves),
            leaves_identified=all(one.identified for one in leaves),
            oid=self.oid,
            numbers=tuple(self.numbers[column] for column in columns),
        )

    def relation(self, shape: ShapeVersion) -> Relation:
        full, marked = shape.identity == "f", shape.identity == "d" and shape.key
        return Relation(
            self.oid,
            "public",
            self.name,
            shape.identity,
            [
                Column(
                    full or (marked and name == "id"),
                    name,
                    _INT8 if name == "id" else _TEXT,
                    -1,
                )
                for name in shape.columns
            ],
        )


@dataclass
class WalTransaction:
    """A committed transaction, as the slot decodes it."""

    lsn: int
    end_lsn: int
    xid: int
    commit_time: int
    # frames, each with the tables' shapes that it needs to have been described
    frames: list[tuple[tuple[tuple[SimTable, ShapeVersion], ...], bytes]]
    expected: list[Expected]
    reads: bool = False  # a value is read from the table later: bytes may differ
    # by frame: the partition root as which a leaf's row goes out
    above: dict[int, tuple[SimTable, ShapeVersion]] = field(default_factory=dict)
    version: int = 0  # of the catalog
    # what others see of each table when they see it
    states: list[tuple[SimTable, dict[str, Row], ShapeVersion]] = field(
        default_factory=list
    )
    # tables whose description is void before a frame; at NOWHERE: behind all of them.
    # Behind all of them each of these is void once more.
    voided: dict[int, list[SimTable]] = field(default_factory=dict)

    def show(self) -> None:
        """Let others see it."""
        for table, rows, shape in self.states:
            table.seen, table.seen_shape = rows, shape

    @property
    def head(self) -> bytes:
        return wal_data(encode(Begin(self.lsn, self.commit_time, self.xid)), self.lsn)

    @property
    def tail(self) -> bytes:
        message = Commit(0, self.lsn, self.end_lsn, self.commit_time)
        return wal_data(encode(message), self.end_lsn)


@dataclass
class CatalogChange:
    """A committed transaction of which the slot decodes nothing."""

    lsn: int
    end_lsn: int
    xid: int
    catalog: SimCatalog
    states: list[tuple[SimTable, dict[str, Row], ShapeVersion]]

    def show(self) -> None:
        """Let others see it."""
        for table, rows, shape in self.states:
            table.seen, table.seen_shape = rows, shape


class Writer:
    """Draws the steps of one transaction and applies them to the tables."""

    def __init__(self, tables: list[SimTable], lsn: int, seed: int) -> None:
        self._tables = tables
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self._start = self._lsn = lsn
        self._number = seed
        self._frames: list[tuple[tuple[tuple[SimTable, ShapeVersion], ...], bytes]] = []
        self._expected: list[Expected] = []
        self._seq_id = 0
        self._reads = False
        self._voided: dict[int, list[SimTable]] = {}

    def write(self, xid: int, commit_time: int) -> WalTransaction:
        draw = self._random
        # its rows were written before another commit, which ends where this one begins
        interleaved = draw.random() < 0.3
        for _ in range(draw.choice((0, 1, 1, 2, 3, 5, 9))):
            self._lsn += 0 if interleaved else draw.randrange(8, 80)
            step = draw.choices(
                (
                    self._put,
                    self._delete,
                    self._move,
                    self._truncate,
                    self._alter,
                    self._say,
                ),
                (10, 3, 2, 0.5, 1, 1),
            )[0]
            step(draw.choice(self._tables))
        lsn = self._lsn + (0 if interleaved else draw.randrange(0, 64))
        end = lsn + _COMMIT_RECORD + draw.randrange(0, 24)
        return WalTransaction(
            lsn,
            end,
            xid,
            commit_time,
            self._frames,
            self._expected,
            self._reads,
            states=[(table, dict(table.rows), table.shape) for table in self._tables],
            voided=self._voided,
        )

    def _void(self, frame: int, *tables: SimTable) -> None:
        """Have descriptions of tables be void before a frame: the catalog changed."""
        self._voided.setdefault(frame, []).extend(tables)

    def _frame(self, table: SimTable, message: Insert | Update | Delete) -> None:
        frame = wal_data(encode(message), self._lsn)
        self._frames.append((((table, table.shape),), frame))

    def _expect(self, kind: Kind, table: SimTable, key: str) -> None:
        self._expected.append(Expected(self._seq_id, kind, table.full_name, key))
        self._seq_id += 1

    def _text(self) -> str:
        return f"{self._number}.{self._seq_id}"

    def _row(self, table: SimTable, key: str) -> Row:
        row: Row = dict.fromkeys(table.shape.columns)
        for name in table.shape.columns:
            row[name] = None if self._random.random() < 0.1 else self._text() + name
        row["id"] = key
        return row

    @staticmethod
    def _values(table: SimTable, row: Row) -> list[Value]:
        return [row[name] for name in table.shape.columns]

    def _put(self, table: SimTable) -> None:
        """Insert a row, or update the one that is there."""
        key = str(self._random.randrange(KEYS))
        if key in table.rows:
            self._update(table, key, key)
            return
        row = table.rows[key] = self._row(table, key)
        self._frame(table, Insert(table.oid, self._values(table, row), toasted=False))
        self._expect(Kind.INSERT, table, key)

    def _update(self, table: SimTable, before: str, after: str) -> None:
        old = table.rows.pop(before)
        new, kept = self._changed(table, old, after)
        table.rows[after] = new
        values = self._values(table, new)
        if kept:
            values[table.shape.columns.index(TOASTED)] = UNCHANGED
        whole = table.shape.identity == "f"
        old_values: list[Value] | None = None
        if whole:
            old_values = self._values(table, old)
        elif before != after:
            old_values = [before if name == "id" else None for name in old]
            self._reads |= kept
        self._frame(table, Update(table.oid, old_values, whole, values, kept))
        if before == after:
            self._expect(Kind.UPDATE, table, after)
        else:
            self._expect(Kind.DELETE, table, before)
            self._expect(Kind.INSERT, table, after)

    def _changed(self, table: SimTable, old: Row, key: str) -> tuple[Row, bool]:
        """Draw a row's next version; tell whether its large value is left alone."""
        new = self._row(table, key)
        kept = (
            TOASTED in old and old[TOASTED] is not None and self._random.random() < 0.5
        )
        if kept:
            new[TOASTED] = old[TOASTED]
        return new, kept

    def _delete(self, table: SimTable) -> None:
        if not table.rows:
            return
        key = self._random.choice(list(table.rows))
        old = table.rows.pop(key)
        whole = table.shape.identity == "f"
        values = self._values(table, old)
        if not whole:
            values = [key if name == "id" else None for name in table.shape.columns]
        self._frame(table, Delete(table.oid, values, whole))
        self._expect(Kind.DELETE, table, key)

    def _move(self, table: SimTable) -> None:
        """Change a row's key."""
        free = [key for key in map(str, range(KEYS)) if key not in table.rows]
        if table.rows and free:
            self._update(
                table, self._random.choice(list(table.rows)), self._random.choice(free)
            )

    def _truncate(self, table: SimTable) -> None:
        tables = [table]
        other = self._random.choice(self._tables)
        if other is not table:
            tables.append(other)
        message = Truncate(0, tuple(one.oid for one in tables))
        shapes = tuple((one, one.shape) for one in tables)
        self._void(len(self._frames), *tables)
        self._frames.append((shapes, wal_data(encode(message), self._lsn)))
        for one in tables:
            one.rows.clear()
            one.file += 1
            self._expect(Kind.TRUNCATE, one, "")

    def _alter(self, table: SimTable) -> None:
        """Add or drop a column, or change the identity."""
        self._void(len(self._frames), table)
        columns, identity, _ = table.shape
        added = [name for name in columns if name.startswith("c")]
        if self._random.random() < 0.4:
            identity = "d" if identity == "f" else "f"
        elif added and self._random.random() < 0.5:
            columns = tuple(name for name in columns if name != added[0])
        else:
            column = f"c{table.last}"
            table.number(column)
            columns = (*columns, column)
        table.shape = table.shape._replace(columns=columns, identity=identity)
        for key, row in table.rows.items():
            table.rows[key] = {name: row.get(name) for name in columns}

    def _say(self, _table: SimTable) -> None:
        """Write a logical message, which no sink wants."""
        message = LogicalMessage(
            transactional=True, lsn=self._lsn, prefix="p", content=b"c"
        )
        self._frames.append(((), wal_data(encode(message), self._lsn)))
