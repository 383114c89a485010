"""What is asked of the database beside the stream, over short sessions in threads.

Keys of relations, columns that a key change would lose, the watch over the publication,
and, while reading is paused, whether the server still lives. No plain session stays
open: it would hold up a smart shutdown.
"""

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Protocol

import psycopg

from walstream.errors import HistoryError, Transient, WalstreamError
from walstream.keys import KeyHistory, KeySet
from walstream.lsn import Lsn, show
from walstream.op import ReplicationOp
from walstream.pgoutput.messages import Relation
from walstream.ports import KeyFacts, Positions
from walstream.postgres import catalog
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.postgres.health import Health
from walstream.postgres.heartbeat import Heartbeat
from walstream.row import UNCHANGED, Value

_WATCH_EVERY_S: Final = 10.0
_FIRST_WATCH_S: Final = 1.0  # figures of the server are wanted soon
_EXTEND_EVERY: Final = 6  # watches: new tables are looked for once a minute
_PROBE_EVERY_S: Final = 5.0
_READ_AGAIN_S: Final = 1.0
_NO_COLUMN: Final = "42703"
_NO_TABLE: Final = "42P01"

PartitionKeys = Callable[[str, str], tuple[str, ...]]
"""(schema, table) -> the partition key columns of all sinks"""


class Keys(Protocol):
    """What decides the keys of a source's tables, and from where on."""

    def history(self, full_name: str) -> KeyHistory | None:
        """Give a table's; None: it was not learned yet."""

    def learn(
        self, facts: Mapping[str, TableFacts], flush_lsn: Lsn, oldest: Lsn
    ) -> None:
        """Take what counts for these tables from `flush_lsn` on."""

    def learn_unknown(self, relation: Relation) -> None:
        """Settle the keys of a table that the catalog no longer has."""


class KeyBook:
    """The key histories of a source's tables, kept with its position."""

    def __init__(self, positions: Positions, partition_keys: PartitionKeys) -> None:
        self._positions = positions
        self._partition_keys = partition_keys
        self._histories: dict[str, KeyHistory] = {}

    def history(self, full_name: str) -> KeyHistory | None:
        return self._histories.get(full_name)

    def learn(
        self, facts: Mapping[str, TableFacts], flush_lsn: Lsn, oldest: Lsn
    ) -> None:
        """Take what counts for these tables from `flush_lsn` on; store what is new.

        What counted below `oldest`, where no replay can begin, may be forgotten.
        """
        changed = {}
        for full_name, table in facts.items():
            history, is_new = self._find(full_name, oldest)
            now = KeySet(
                from_lsn=0 if is_new else flush_lsn,
                primary_key=table.primary_key,  # counts under FULL alone
                partition_key=self._partition_keys(table.schema, table.name),
            )
            if is_new:
                history = KeyHistory([now])
            if is_new or history.change(now):
                changed[f"keys/{full_name}"] = history.to_json()
            self._histories[full_name] = history
        if changed:
            self._positions.write(changed)

    def learn_unknown(self, relation: Relation) -> None:
        """Settle the keys of a table that the catalog no longer has."""
        full_name = f"{relation.namespace}.{relation.name}"
        history, is_new = self._find(full_name, 0)
        if is_new:
            keys = self._partition_keys(relation.namespace, relation.name)
            history = KeyHistory([KeySet(0, (), keys)])
            self._positions.write({f"keys/{full_name}": history.to_json()})
        self._histories[full_name] = history

    def _find(self, full_name: str, oldest: Lsn) -> tuple[KeyHistory, bool]:
        known = self._histories.get(full_name)
        if known is not None:
            return known, False
        stored = self._positions.read(f"keys/{full_name}")
        if stored is None:
            return KeyHistory([]), True
        history = KeyHistory.from_json(stored)
        history.forget_below(oldest)
        return history, False


@dataclass(frozen=True, slots=True)
class Watched:
    """What the companion asks about."""

    dsn: str
    slot: str
    capture: Capture
    read_toast: bool  # toast_on_key_change = "read"
    tell: Callable[[Health | None], None]  # how the slot is, at each watch
    heartbeat: Heartbeat | None = None


class SessionCompanion:
    """The companion over short sessions. Methods are called by the loop alone."""

    def __init__(
        self,
        watched: Watched,
        keys: Keys,
        facts: Mapping[str, TableFacts],
        wake: Callable[[], None],
    ) -> None:
        self._watched = watched
        self._keys = keys
        self._facts = dict(facts)
        self._wake = wake
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="companion")
        self._looking: Future[TableFacts | None] | None = None
        self._reading: Future[list[str | None] | None] | None = None
        self._watching: Future[None] | None = None
        self._next_watch = time.monotonic() + _FIRST_WATCH_S
        self._watches = 0
        self._probing: Future[None] | None = None
        self._next_probe = 0.0
        self._next_read = 0.0

    def _start(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future = self._threads.submit(task, *arguments)
        future.add_done_callback(lambda _: self._wake())
        return future

    def keys(self, relation: Relation, xid: int) -> KeyFacts | None:
        """Find a relation's keys; None: being looked up, ask again.

        Under FULL the message does not tell the primary key: it is looked up each time,
        and a change counts from the server's flush LSN then.
        """
        name = f"{relation.namespace}.{relation.name}"
        known = self._keys.history(name) is not None
        full = relation.replica_identity == "f"
        # a look-up that is under way is this relation's: the loop asks for no other
        if self._looking is not None or full or not known:
            if self._looking is None:
                self._looking = self._start(self._look_up, relation, xid)
                return None
            if not self._looking.done():
                return None
            looking, self._looking = self._looking, None
            if (facts := looking.result()) is not None:
                self._facts[name] = facts
        history = self._keys.history(name)
        if history is None:
            raise WalstreamError(f"keys of table {name!r} were not found: a defect")
        known_facts = self._facts.get(name)
        return KeyFacts(history, known_facts.old_rows_whole if known_facts else True)

    def _look_up(self, relation: Relation, xid: int) -> TableFacts | None:
        table = (relation.namespace, relation.name)
        facts, flush_lsn = catalog.look_up(self._watched.dsn, table, xid=xid)
        if facts is not None:
            self._keys.learn({facts.full_name: facts}, flush_lsn, 0)
        else:
            self._keys.learn_unknown(relation)
        return facts

    def complete(self, op: ReplicationOp) -> bool:
        """Read what a key change would lose: toasted values that were not sent.

        No record of the new key would ever hold them. False: being read, ask again.
        """
        new = op.new
        if new is None or UNCHANGED not in new:
            return True
        wanted = [
            name
            for name, value in zip(op.table.columns, new, strict=True)
            if value is UNCHANGED
        ]
        if not self._watched.read_toast:
            raise HistoryError(
                f"an update of {op.table.full_name!r} at ({show(op.lsn)}, {op.seq_id})"
                f" changed its key, and PostgreSQL did not send {wanted}",
                hint="ALTER TABLE ... REPLICA IDENTITY FULL, or"
                ' toast_on_key_change = "read"; then: walstream run',
            )
        if self._reading is None:
            if time.monotonic() < self._next_read:
                return False
            key = {op.table.columns[index]: new[index] for index in op.table.key}
            self._reading = self._start(self._read, op, key, wanted)
            return False
        if not self._reading.done():
            return False
        reading, self._reading = self._reading, None
        if isinstance(reading.exception(), Transient):
            # asked again: a new stream would send all before it once more
            self._next_read = time.monotonic() + _READ_AGAIN_S
            return False
        values = iter(reading.result() or [None] * len(wanted))
        op.new = [next(values) if value is UNCHANGED else value for value in new]
        return True

    def _read(
        self, op: ReplicationOp, key: Mapping[str, Value], wanted: list[str]
    ) -> list[str | None] | None:
        table = (op.table.schema, op.table.name)
        try:
            return catalog.read_columns(
                self._watched.dsn, table, key, wanted, xid=op.xid
            )
        except WalstreamError as error:
            cause = error.__cause__
            if isinstance(cause, psycopg.Error) and cause.sqlstate in (
                _NO_COLUMN,
                _NO_TABLE,
            ):
                return None  # gone since: the row cannot be needed any more
            raise

    def tick(self, *, paused: bool) -> None:
        """Watch the publication; while paused, see whether the server shuts down."""
        now = time.monotonic()
        self._watch(now)
        if self._watched.heartbeat is not None:
            self._watched.heartbeat.tick(self._start, paused=paused)
        if paused or self._probing is not None:
            self._probe(now)
        else:
            self._next_probe = now + _PROBE_EVERY_S

    def _watch(self, now: float) -> None:
        if self._watching is not None:
            if not self._watching.done():
                return
            watching, self._watching = self._watching, None
            with contextlib.suppress(Transient):  # the stream itself will notice
                watching.result()
        elif now >= self._next_watch:
            self._next_watch = now + _WATCH_EVERY_S
            self._watches += 1
            extend = self._watches % _EXTEND_EVERY == 0
            self._watching = self._start(self._look, extend)

    def _look(
        self,
        extend: bool,  # noqa: FBT001 - called by a thread pool, by position
    ) -> None:
        """Watch the publication, extend it if asked; measure the slot."""
        with session(self._watched.dsn) as connection:
            self._watched.tell(slots.health(connection, self._watched.slot))
            self._watched.capture.check(connection)
            if extend:
                self._watched.capture.extend(connection, catalog.tables(connection))

    def _probe(self, now: float) -> None:
        if self._probing is None:
            if now >= self._next_probe:
                self._next_probe = now + _PROBE_EVERY_S
                self._probing = self._start(self._ask_for_life)
        elif self._probing.done():
            probing, self._probing = self._probing, None
            probing.result()

    def _ask_for_life(self) -> None:
        """Raise when PostgreSQL takes no sessions: it waits for this stream to end."""
        try:
            with session(self._watched.dsn):
                pass
        except Transient as error:
            text = str(error)
            if "too many" not in text and "reserved" not in text:
                raise

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
