"""One table's way beside the stream: wait, read, let its rows in.

    wait    once, for all transactions that have a number when the table is begun: what
            they did was streamed unnoticed, or never; no snapshot sees it till they end
    read    a chunk of rows by key, under a snapshot of its own; note from its asking on
            what the stream says of rows; of what it said before, the transactions are
            known, and the snapshot has to see them, or it is read again
    let in  where the stream has passed all that the snapshot saw; of what it did not
            see, the notes know

Called at the ends of transactions alone. Does no I/O: it submits, and looks later.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final, Protocol

from walstream.errors import Transient
from walstream.lsn import Lsn, show
from walstream.op import (
    CHUNK_BITS,
    Kind,
    ReplicationOp,
    Table,
    postgres_time,
    snapshot_truncate,
)
from walstream.row import UNCHANGED
from walstream.sources.postgres.incremental.chunk import (
    Key,
    KeyChunk,
    Visibility,
    shape,
)
from walstream.sources.postgres.incremental.earlier_transactions import (
    MOST,
    MOST_OF_ALL,
    Past,
)
from walstream.sources.postgres.incremental.progress import TableRequest
from walstream.sources.postgres.incremental.threads import Submit
from walstream.sources.postgres.incremental.window import (
    MOST_ENTRIES,
    MOST_SIZE,
    Window,
)
from walstream.telemetry import runtime

MOST_ROWS: Final = 5000  # of a chunk
_FIRST_ROWS: Final = 500  # while a row's size is not known
_CHUNK_BYTES: Final = 4 << 20  # about
_PORTION: Final = 500  # rows at a time: the stream goes on between
_MOST_TABLES: Final = 1000


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Limits of what is held of a table, for each chunk in flight."""

    entries: int = MOST_ENTRIES  # rows
    size: int = MOST_SIZE
    passed: int = MOST  # transactions, as `Past` has them
    most_passed: int = MOST_OF_ALL


LIMITS: Final = ChunkLimits()


@dataclass(slots=True)
class _Asked:
    """A chunk that is being read."""

    chunk: Future[KeyChunk]
    window: Window  # what is said from its asking on
    before: frozenset[int]  # transactions that spoke of the table before that


class ChunkReader(Protocol):
    """Queries to the database, over short sessions; each call may block."""

    def mark(self) -> int:
        """Run an empty transaction; return its number, above all assigned ones."""

    def seen(self, later_s: float) -> Visibility:
        """Return what a snapshot sees, after so long."""

    def blockers(self) -> str:
        """Name the sessions whose transactions run."""

    def table(self, name: str) -> tuple[Table, Lsn]:
        """Look at a table, as its rows will go out, and how far the server is.

        Have the stream come by there soon.
        """

    def read(
        self,
        name: str,
        after: Key | None,
        key: Sequence[str],
        most: int,
        where: str = "",
    ) -> KeyChunk:
        """Read rows behind a key `where` a condition is true; have the stream come by.

        `key` names the columns of `after`, and what orders them: from the first row on
        where that is another now.
        """


class Run:
    """One table, as one wish; from its first watch to its last row."""

    def __init__(
        self,
        name: str,
        wish: TableRequest,
        reader: ChunkReader,
        submit: Submit,
        limits: ChunkLimits = LIMITS,
    ) -> None:
        self.name = name
        self.wish = replace(wish, error="")  # as it is when all that was sent is there
        self.over = False  # nothing more is to be sent
        self.overflows = 0  # how often more was said than may be held
        self.sessions = ""  # that it waits for
        self._reader = reader
        self._submit = submit
        self._limits = limits
        self._tables: dict[Table, bool] = {}  # is it ours? by identity
        self._past = Past(reader, submit, limits.passed, limits.most_passed)
        self._truncated = False  # no old row is left
        self._describing: Future[tuple[Table, Lsn]] | None = None
        self._high: Lsn = 0  # of the Truncate, or of a chunk that has another key
        self._disagreed = False  # had the last chunk another key?
        self._asked: _Asked | None = None
        self._chunk: KeyChunk | None = None
        self._window = Window()  # of the chunk
        self._taken = 0  # rows of the chunk
        self._number: int | None = None  # of the chunk
        self._most = _FIRST_ROWS
        self._table: Table | None = None

    @property
    def waits(self) -> bool:
        """Return whether it waits for transactions that run."""
        return self._past.waits

    @property
    def remark(self) -> str:
        """Return how it goes: what it waits for, and what did not fit."""
        said = []
        if self.waits:
            said.append(f"waits for running transactions: {self.sessions}".rstrip(": "))
        elif self.high:
            said.append(f"waits for the stream to reach {show(self.high)}")
        if self.overflows:
            said.append(f"the watch overflowed {self.overflows} times")
        return ", ".join(said)

    @property
    def high(self) -> Lsn:
        """How far the stream has to come; 0: it waits for something else."""
        return self._chunk.high if self._chunk is not None else self._high

    def note(self, op: ReplicationOp) -> None:
        """Note an op of any table."""
        mine = self._tables.get(op.table)
        if mine is None:
            if len(self._tables) >= _MOST_TABLES:
                self._tables.clear()
            mine = self._tables[op.table] = op.table.full_name == self.name
        # in a replay come ops once more that readers had before the Truncate
        if not mine or op.lsn < self.wish.floor:
            return
        self._past.note(op.xid)
        if op.kind is Kind.TRUNCATE:
            # an earlier one is in each chunk, and the table may have been filled again
            # by transactions that are not streamed
            self._truncated = self._truncated or self._past.later(op.xid)
            return
        if self._chunk is not None:
            self._window.note(op)
        if self._asked is not None:
            self._asked.window.note(op)

    def rows(
        self,
        place: Lsn,
        number: Callable[[], int | None],
        known: Callable[[Table], bool],
    ) -> list[ReplicationOp]:
        """Return rows that may go in at this place; none: not now, or no more.

        `number` gives a chunk's number, or None while there is none; `known` tells
        whether the sinks know where a table's rows go.
        """
        if self.wish.replace and not self.wish.truncated:
            return self._truncate(place, number, known)
        if self._past.full:
            self._overflow()
            self._past.begin()
        if not self._past.ready():
            return []
        self.sessions = ""
        if self._truncated:
            self.over = True
            return []
        if place >= self._high:
            self._high = 0
        if self._chunk is None and (self._high or not self._take()):
            return []
        chunk = self._chunk
        if self._number is None:
            self._number = number()
        if chunk is None or self._number is None or not known(chunk.table):
            return []
        return self._let_in(chunk, place, self._number)

    def _truncate(
        self,
        place: Lsn,
        number: Callable[[], int | None],
        known: Callable[[Table], bool],
    ) -> list[ReplicationOp]:
        """Return the mark after which readers have nothing, and what follows counts."""
        if self._describing is None:
            self._describing = self._submit(self._reader.table, self.name)
        if not self._describing.done():
            return []
        table, self._high = self._describing.result()
        # in a replay, a reader may have what comes behind, and take it for a repeat
        if place < self._high or not known(table) or (taken := number()) is None:
            return []
        self._describing = None
        self.wish = replace(self.wish, truncated=True, floor=place, after=None)
        self._high = 0
        self._past.begin()
        now = postgres_time(runtime.time())
        return [snapshot_truncate(table, place - 1, taken, now)]

    def _overflow(self) -> None:
        """Leave what is read, since more was said than may be held; read less."""
        self.overflows += 1
        self._most = max(_FIRST_ROWS // 10, self._most // 2)
        self._void()

    def _void(self) -> None:
        """Read again behind the last row that went in."""
        self._chunk = self._asked = self._number = None

    def _take(self) -> bool:
        """Take the next chunk that was read; False: not yet."""
        if self._asked is None:
            self._read(self.wish.after, self.wish.key)
        asked = self._asked
        if asked is None or not asked.chunk.done():
            return False
        self._asked = None
        chunk = asked.chunk.result()
        if not self._past.is_seen(asked.before, chunk.seen):
            return False
        if asked.window.full:
            self._overflow()
            return False
        if asked.window.void:
            return False
        if chunk.rows and chunk.size:
            self._most = min(
                MOST_ROWS, max(1, _CHUNK_BYTES * len(chunk.rows) // chunk.size)
            )
        self._chunk, self._taken, self._number = self._as_before(chunk), 0, None
        self._window = asked.window
        self._window.focus(chunk)
        if not chunk.last:
            self._read(chunk.end(len(chunk.rows)), chunk.names)  # one ahead
        return True

    def _agree(self, chunk: KeyChunk) -> bool:
        """See that stream and chunk name rows by the same columns.

        Else the stream is behind a change of the key: until it has come by what the
        chunk saw, another chunk would be of no more use.
        """
        if self._window.void:
            if self._window.full:
                self._overflow()
            self._void()
            return False
        if not chunk.rows or self._window.agrees(chunk):
            self._disagreed = False
            return True
        if self._disagreed:
            raise Transient(
                f"the stream identifies rows of table {self.name!r} by other columns "
                "than its key",
                hint="the key may have changed: walstream reads the table again then",
            )
        self._disagreed = True
        self._void()
        self._high = chunk.high
        return False

    def _read(self, after: Key | None, key: Sequence[str]) -> None:
        limits = self._limits
        self._asked = _Asked(
            self._submit(
                self._reader.read, self.name, after, key, self._most, self.wish.where
            ),
            Window(limits.entries, limits.size),
            self._past.before(),
        )

    def _as_before(self, chunk: KeyChunk) -> KeyChunk:
        """Keep the table's object while it is the same: sinks know it."""
        if self._table is None or shape(self._table) != shape(chunk.table):
            self._table = chunk.table
        return replace(chunk, table=self._table)

    def _let_in(self, chunk: KeyChunk, place: Lsn, number: int) -> list[ReplicationOp]:
        ops: list[ReplicationOp] = []
        if not self._agree(chunk) or place < chunk.high:
            return ops
        while self._taken < len(chunk.rows) and not ops:
            for index, table, row in self._window.rows(chunk, self._taken, _PORTION):
                op = ReplicationOp(
                    Kind.INSERT,
                    table,
                    place - 1,
                    number << CHUNK_BITS | index,
                    new=row,
                    absent=UNCHANGED in row,
                    row_lsn=place - 1,
                    commit_time=chunk.read_at,
                    snapshot=True,
                )
                ops.append(op)
            self._taken = min(self._taken + _PORTION, len(chunk.rows))
        if self._taken:
            self.wish = replace(
                self.wish,
                after=chunk.end(self._taken),
                key=chunk.names,
                rows=self.wish.rows + len(ops),
            )
        if self._taken == len(chunk.rows):
            self.over = chunk.last
            self._chunk = None
        return ops
