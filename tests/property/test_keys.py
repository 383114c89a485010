"""Keys under REPLICA IDENTITY FULL: random DDL, looks at any time, restarts anywhere.

A model of a server changes a table; walstream's own key book and assembler read its
WAL, sooner or later, from any place once more. Each row is named, keyed and split in
every replay as the first time, or the stream stops; and where no key was replaced by
another one of the same columns, the key is the table's own. A change that lies behind
a row is not that row's, however soon walstream hears of it.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.support.table_facts import table_facts
from walstream.errors import HistoryError
from walstream.op import ReplicationOp
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.pgoutput import Begin, Column, Insert, Relation, Update
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.table_keys import KeyBook
from walstream.row import Value
from walstream.testing import MemoryStore

NAMES: Final = "abcdefgh"
NAME: Final = "public.t"
_WITHIN: Final = "in "
_DROPS: Final = {False: "drop", True: "lose"}  # a column, that of the key
STEP: Final = 10  # LSNs from one transaction to the next


@dataclass(frozen=True)
class State:
    """The table, at some time."""

    oid: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    version: int = 0  # a description each
    full: bool = True  # its replica identity; else DEFAULT
    numbers: tuple[int, ...] = (1, 2)  # of the columns, for good
    deferrable: bool = False  # DEFAULT marks no such key

    def relation(self) -> Relation:
        marked = self.columns if self.full else () if self.deferrable else self.key
        columns = [Column(name in marked, name, 25, -1) for name in self.columns]
        identity = "f" if self.full else "d"
        return Relation(self.oid, "public", "t", identity, columns)

    def facts(self) -> TableFacts:
        return table_facts(
            replica_identity="f" if self.full else "d",
            primary_key=self.key,
            identity=(),
            columns=self.columns,
            not_null=frozenset(),
            leaves_full=self.full,
            key_immediate=not self.deferrable,
            oid=self.oid,
            numbers=self.numbers,
        )


@dataclass
class Server:
    """Its WAL: what the table was at each row, by transaction."""

    state: State = State(1, ("a", "b"), ("a",))
    other: State | None = None  # which had the name before, and is there
    oids: int = 1
    columns: int = 2  # numbers given
    wal: list[list[State]] = field(default_factory=list)
    keys: list[set[str]] = field(default_factory=lambda: [{"a"}])  # by version

    @property
    def flush(self) -> int:
        return len(self.wal) * STEP + STEP // 2

    def find(self, oid: int) -> State | None:
        return next(
            (one for one in (self.state, self.other) if one and one.oid == oid), None
        )

    def trade(self) -> None:
        """Give the name to a table that had it before, or to a new one like this."""
        self.oids += self.other is None
        version = self.state.version + 1
        came = self.other or replace(self.state, oid=self.oids)
        self.state, self.other = replace(came, version=version), self.state
        self.keys.append(set(self.state.key))

    def _transact(self, changes: list[str], where: int) -> None:
        """Run them in one transaction, with rows before and behind each."""
        states = [self.state]
        for how in changes:
            self.change(how, where)
            states.append(self.state)
        self.wal.append(states)

    def change(self, how: str, where: int) -> None:
        """Run DDL; `where` chooses what it is about.

        "in ..., ...": in one transaction, each between a row and another.
        """
        old = self.state
        if how.startswith(_WITHIN):
            self._transact(how.removeprefix(_WITHIN).split(", "), where)
            return
        columns, key, numbers = list(old.columns), old.key, list(old.numbers)
        free = [name for name in NAMES if name not in columns]
        at = where % len(columns)
        named = columns[at]
        oid = old.oid
        if how == "rename" and free:
            columns[at] = free[where % len(free)]
            key = tuple(columns[at] if name == named else name for name in key)
        elif how == "swap":
            other = columns[0]
            columns[0], columns[at] = named, other
            names = {named: other, other: named}
            key = tuple(names.get(name, name) for name in key)
        elif how == "add" and free:
            columns.append(free[where % len(free)])
            self.columns += 1
            numbers.append(self.columns)
        elif how == _DROPS.get(named in key) and len(columns) > 1:
            columns.pop(at)
            numbers.pop(at)
            key = tuple(name for name in key if name != named)
        elif how == "recreate":
            self.oids += 1
            oid, key = self.oids, (named,)
        elif how == "replace":
            key = (named,)
        elif how == "unkey":
            key = ()
        elif how == "write":
            self.wal.append([old])
            return
        # "analyze" changes nothing, and pgoutput describes the table again
        self.state = State(
            oid,
            tuple(columns),
            key,
            old.version + 1,
            full=how == "full" or (how != "default" and old.full),
            numbers=tuple(numbers),
            deferrable=old.deferrable is not (how == "defer"),
        )
        self.keys.append(set(key))


@dataclass
class Walstream:
    """What was sent, by name; and what is kept."""

    server: Server
    positions: MemoryStore = field(default_factory=MemoryStore)
    sent: dict[tuple[int, int], tuple[object, ...]] = field(default_factory=dict)
    true: list[bool] = field(default_factory=list)  # was the key that of then?
    keys: list[tuple[int, set[str]]] = field(default_factory=list)  # as of a version
    place: int = 0  # transactions read
    furthest: int = 0
    oldest: int = 0  # no replay begins before it

    def start(self, place: int) -> None:
        """Stream from a place that was passed already."""
        self.place = max(self.oldest, min(place, self.furthest))
        self.book = KeyBook(self.positions, lambda _schema, _table: ())
        facts = self.server.state.facts()
        oldest = self.oldest * STEP + 1 if self.oldest else 0
        self.book.learn({NAME: facts}, self.server.flush, oldest)
        self.assembler = Assembler(0)
        self.described: State | None = None

    def read(self, count: int) -> bool:
        """Read so many transactions; False: stopped."""
        for states in self.server.wal[self.place : self.place + count]:
            self.assembler.begin(Begin((self.place + 1) * STEP, 0, 1))
            try:
                for state in states:
                    if state != self.described:
                        self._describe(state)
                        self.described = state
                    self._rows(state)
            except HistoryError:
                return False
            self.place += 1
            self.furthest = max(self.furthest, self.place)
        return True

    def _describe(self, state: State) -> None:
        relation, now = state.relation(), self.server.find(state.oid)
        facts = now.facts() if now is not None else None
        flush = self.server.flush
        place = self.assembler.place
        if state.full or not self.book.knows(relation, place):
            with capture_logs():
                self.book.meet(relation, Looked(facts, flush), place)
        history = self.book.history(NAME)
        assert history is not None
        self.assembler.describe(relation, history)

    def _rows(self, state: State) -> None:
        """Read an insert, and an update of each column."""
        row: list[Value] = ["0"] * len(state.columns)
        self._send(self.assembler.row(Insert(state.oid, list(row), False), 0), state)
        if not state.full:
            return
        for index in range(len(row)):
            new = list(row)
            new[index] = "1"
            message = Update(state.oid, list(row), True, new, False)
            self._send(self.assembler.row(message, 0), state)

    def _send(self, op: ReplicationOp, state: State) -> None:
        key = tuple(op.table.columns[index] for index in op.table.key)
        made = (op.kind, key, op.key_changed, op.new)
        assert self.sent.setdefault((op.lsn, op.seq_id), made) == made
        self.true.append(set(key) == set(state.key))
        if op.lsn > self.furthest * STEP:  # for the first time
            self.keys.append((state.version, set(key)))


Steps = list[tuple[str, int]]
_READ: Final = ["write", "write", "read", "read", "restart"]


def steps(*ddl: str) -> st.SearchStrategy[Steps]:
    kinds = st.sampled_from([*_READ, *ddl])
    return st.lists(st.tuples(kinds, st.integers(0, 20)), max_size=40)


def play(drawn: Steps) -> Walstream:
    server = Server()
    walstream = Walstream(server)
    walstream.start(0)
    for how, where in drawn:
        if how == "read":
            if not walstream.read(1 + where % 5):
                walstream.start(walstream.place)
        elif how == "restart":
            walstream.start(where)
        elif how == "trade":
            server.trade()
        elif how == "confirm":
            walstream.oldest = max(walstream.oldest, walstream.place)
            walstream.start(walstream.place)
        else:
            server.change(how, where)
    for place in (walstream.place, 0, walstream.furthest // 2):
        walstream.start(place)
        walstream.read(len(server.wal))
    return walstream


# a column comes and goes unseen, then comes again and is the key
_COMES_AGAIN: Final[Steps] = [
    *(("add", 0), ("write", 0), ("drop", 2), ("read", 4)),
    *(("add", 0), ("replace", 2), ("write", 0), ("read", 4)),
]

# the name of the key's column is another column's by the look, and its key next
_GOES_OVER: Final[Steps] = [
    *(("drop", 1), ("recreate", 0), ("write", 0), ("rename", 0), ("add", 0)),
    *(("read", 0), ("in replace", 1)),
]

# the key's column is another one by the look, and the row has none of that name
_GOES_AND_COMES: Final[Steps] = [
    *(("drop", 1), ("write", 0), ("add", 0), ("swap", 1), ("read", 0)),
]
# the key's column is renamed to and fro, and its name between is another column's now
_GOES_ROUND: Final[Steps] = [
    *(("drop", 1), ("rename", 0), ("in rename", 0), ("add", 0), ("read", 0)),
]
# the name goes to another table and back, while what is old is forgotten
_COMES_BACK: Final[Steps] = [
    *(("write", 0), ("trade", 0), ("write", 0), ("read", 0), ("read", 0)),
    *(("trade", 0), ("write", 0), ("read", 0), ("confirm", 0), ("write", 0)),
    *(("read", 0), ("replace", 1)),
]
_IDENTITIES: Final = [
    *("default", "full", "in default", "in full", "defer"),
    *("in default, replace, full", "in replace, full", "in replace, default, unkey"),
]
_DDL: Final = ["rename", "swap", "add", "drop", "lose", "recreate", "replace", "unkey"]


@settings(max_examples=1500, deadline=None)
@example(_COMES_AGAIN)
@example(_GOES_OVER)
@example(_COMES_BACK)
@given(
    steps(
        *_DDL,
        *(f"{_WITHIN}{ddl}" for ddl in _DDL),
        *_IDENTITIES,
        *("analyze", "trade", "confirm"),
    )
)
def test_every_replay_names_keys_and_splits_alike(drawn: Steps) -> None:
    play(drawn)


# the same examples in each run: what is still open below would be found now and then
@settings(max_examples=1500, deadline=None, derandomize=True)
@example(_GOES_AND_COMES)
@example(_GOES_ROUND)
@given(steps("rename", "swap", "add", "drop", "analyze", "in rename", "in swap"))
def test_a_key_that_is_not_replaced_is_the_tables_own_or_stops(drawn: Steps) -> None:
    assert all(play(drawn).true)


@settings(max_examples=1500, deadline=None)
@example([("write", 0), ("read", 0), ("analyze", 0), ("in replace", 1), ("read", 0)])
@example([("write", 0), ("analyze", 0), ("unkey", 0), ("read", 0)])
@given(steps("replace", "unkey", "analyze", "in replace", "in unkey"))
def test_no_row_goes_under_a_key_that_came_behind_it(drawn: Steps) -> None:
    walstream = play(drawn)
    for version, key in walstream.keys:
        assert key in walstream.server.keys[: version + 1]


@settings(max_examples=500, deadline=None)
@example([("write", 0), ("read", 0), ("analyze", 0)], "in rename", [("read", 0)])
@given(steps("analyze"), st.sampled_from(["rename", "in rename"]), steps("analyze"))
def test_a_key_that_is_renamed_once_is_known_before_and_behind(
    before: Steps, rename: str, behind: Steps
) -> None:
    walstream = play([*before, (rename, 0), *behind])
    assert walstream.furthest == len(walstream.server.wal)
    assert all(walstream.true)


# told under DEFAULT, and read; then FULL, and rows, while walstream is down
_TOLD: Final[Steps] = [
    *(("default", 0), ("write", 0), ("replace", 1), ("write", 0), ("read", 4)),
    *(("full", 0), ("write", 0), ("restart", 20), ("read", 4)),
]
# all of it in a backlog
_TOLD_IN_A_BACKLOG: Final[Steps] = [
    *(("default", 0), ("replace", 1), ("write", 0), ("full", 0), ("write", 0)),
    *(("restart", 20), ("read", 4)),
]
# and the same of a key that went
_TOLD_TO_BE_GONE: Final[Steps] = [
    *(("default", 0), ("unkey", 0), ("write", 0), ("full", 0), ("write", 0)),
    *(("restart", 20), ("read", 4)),
]


@pytest.mark.parametrize("drawn", [_TOLD, _TOLD_IN_A_BACKLOG, _TOLD_TO_BE_GONE])
def test_a_key_that_the_stream_told_counts_under_full(drawn: Steps) -> None:
    assert all(play(drawn).true)


@st.composite
def told_steps(draw: st.DrawFn) -> Steps:
    """Change the key under DEFAULT alone, where a row tells it."""
    drawn: Steps = []
    for how, where in draw(steps("replace", "unkey", "analyze")):
        if how in {"replace", "unkey"} and draw(st.booleans()):
            drawn.append((f"{_WITHIN}default, {how}, full, analyze", where))
        elif how in {"replace", "unkey"}:
            drawn += [("default", 0), (how, where), ("write", 0)]
            if draw(st.booleans()):
                drawn.append(("read", draw(st.integers(0, 4))))
            drawn.append(("full", 0))
        else:
            drawn.append((how, where))
    return drawn


@settings(max_examples=1500, deadline=None)
@given(told_steps())
def test_a_key_that_changes_under_default_is_that_of_each_row(drawn: Steps) -> None:
    assert all(play(drawn).true)
