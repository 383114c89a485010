"""Queries to the database beside the stream, over short sessions in threads.

Keys of relations, columns that a key change would lose, the watch over the publication,
and, while reading is paused, whether the server still lives. No plain session stays
open for long: it would hold up a smart shutdown.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

import structlog

from walstream.errors import (
    RETRIED,
    HistoryError,
    Restart,
    Transient,
    WalstreamError,
)
from walstream.op import ReplicationOp
from walstream.pipeline.column_history import FactHistory, Labels
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory
from walstream.postgres import catalog, toast
from walstream.postgres import slot as slots
from walstream.postgres.background_query import Question
from walstream.postgres.capture import Capture
from walstream.postgres.connection import session
from walstream.postgres.fact_book import FactRules
from walstream.postgres.heartbeat import Heartbeat
from walstream.postgres.session_reuse import SessionReuse
from walstream.postgres.slot_health import (
    SlotHealth,
)
from walstream.postgres.table_keys import KeyRules
from walstream.postgres.toast import Values
from walstream.row import UNCHANGED, Value
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT

_WATCH_EVERY_S: Final = 10.0
_FIRST_WATCH_S: Final = 1.0  # figures of the server are wanted soon
_EXTEND_EVERY: Final = 6  # watches: new tables are looked for once a minute
_PROBE_EVERY_S: Final = 5.0
_SAID_AFTER: Final = 3  # watches that failed, one after the other
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class CompanionTable:
    """Queries of the companion."""

    dsn: str
    slot: str
    capture: Capture
    read_toast: bool  # toast_on_key_change = "read"
    tell: Callable[[SlotHealth | None], None]  # how the slot is, at each watch
    heartbeat: Heartbeat | None = None
    is_held: Callable[[], bool] = lambda: False  # does a limit hold the stream?


class SessionCompanion:
    """The companion over short sessions. Methods are called by the loop alone."""

    def __init__(
        self,
        watched: CompanionTable,
        keys: KeyRules,
        facts: FactRules,
        wake: Callable[[], None],
    ) -> None:
        self._watched = watched
        self._keys = keys
        self._facts = facts
        self._wake = wake
        self._sessions = SessionReuse(watched.dsn)
        self._threads = runtime.thread_pool(4, thread_name_prefix="companion")
        self._looking = Question[None](self._start, "the keys of a table")
        self._learning = Question[None](self._start, "the columns of a table")
        self._reading = Question[Values | None](
            self._start, "the values that an update of a key left out"
        )
        self._watching: Future[None] | None = None
        self._failed = 0  # watches, since one that did not
        self._next_watch = runtime.monotonic() + _FIRST_WATCH_S
        self._watches = 0
        self._probing: Future[None] | None = None
        self._next_probe = 0.0

    def _start(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future = self._threads.submit(task, *arguments)
        future.add_done_callback(lambda _: self._wake())
        return future

    def keys(self, relation: Relation, xid: int, place: Place) -> KeyHistory | None:
        """Find a relation's keys; None: being looked up, ask again.

        Under FULL the message does not tell the primary key: it is looked up each time.
        """
        name = f"{relation.namespace}.{relation.name}"
        known = self._keys.knows(relation, place)
        full = relation.replica_identity == "f"
        # a look-up that is under way is this relation's: the loop asks for no other
        if (self._looking.open or full or not known) and (
            self._looking.ask(self._look_up, relation, xid, place) is None
        ):
            return None
        history = self._keys.history(name)
        if history is None:
            raise WalstreamError(f"keys of table {name!r} were not found: a defect")
        return history

    def _look_up(self, relation: Relation, xid: int, place: Place) -> None:
        with self._sessions.session() as connection:
            found = catalog.look_up(connection, relation.oid, xid=xid)
        self._keys.meet(relation, found, place)

    def facts(
        self, relation: Relation, xid: int, place: Place, labels: Labels = ()
    ) -> FactHistory | None:
        """Find what the catalog says of columns; None: being looked up, ask again."""
        known = self._facts.known(relation, place, labels)
        if known is not None and not self._learning.open:
            return known
        asked = self._sessions.session, relation, xid, place, labels
        if self._learning.ask(self._facts.look, *asked) is None:
            return None
        return self._facts.known(relation, place, labels)

    def complete(self, op: ReplicationOp) -> bool:
        """Read what a key change would lose: toasted values that were not sent.

        No record of the new key would ever hold them; nor of a row that a row filter
        lets in, which is an Insert. False: being read, ask again.
        """
        new = op.new
        if new is None or UNCHANGED not in new:
            return True
        if not op.table.key:
            return True  # no one row is meant
        wanted = [
            name
            for name, value in zip(op.table.columns, new, strict=True)
            if value is UNCHANGED
        ]
        if not self._watched.read_toast:
            raise HistoryError(
                toast.which(op, wanted),
                hint="ALTER TABLE ... REPLICA IDENTITY FULL, or"
                ' toast_on_key_change = "read"; then: walstream run',
            )
        key = {op.table.columns[index]: new[index] for index in op.table.key}
        answer = self._reading.ask(self._read, op, key, wanted)
        if answer is None:
            return False
        values = iter(answer.value or [None] * len(wanted))
        op.new = [next(values) if value is UNCHANGED else value for value in new]
        return True

    def _read(
        self, op: ReplicationOp, key: Mapping[str, Value], wanted: Sequence[str]
    ) -> Values | None:
        with self._sessions.session() as connection:
            return toast.read(connection, op.table.oid, op, key, wanted)

    def tick(self, *, paused: bool) -> None:
        """Watch the publication; while paused, see whether the server shuts down.

        Held by a limit it reads on: too slowly for a server that waits for its end.
        """
        now = runtime.monotonic()
        self._sessions.tick()
        self._watch(now)
        if self._watched.heartbeat is not None:
            self._watched.heartbeat.tick(self._start, paused=paused)
        questions = self._looking, self._learning, self._reading
        waiting = any(question.refused for question in questions)
        slow = paused or waiting or self._watched.is_held()
        if slow or self._probing is not None:
            self._probe(now)
        else:
            self._next_probe = now + _PROBE_EVERY_S

    def _watch(self, now: float) -> None:
        if self._watching is not None:
            if not self._watching.done():
                return
            watching, self._watching = self._watching, None
            try:
                watching.result()
            except Restart:
                raise
            except Transient as error:
                # a server that is away the stream itself will notice
                self._failed += 1
                if self._failed == _SAID_AFTER:
                    _log.warning(
                        "slot and publication cannot be looked at: new tables are not "
                        "captured meanwhile",
                        **{ERROR: str(error.args[0]), HINT: RETRIED},
                    )
            else:
                if self._failed >= _SAID_AFTER:
                    _log.info("slot and publication are looked at again")
                self._failed = 0
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
            self._keys.watch(connection)
            for oid in self._keys.regained():
                if self._watched.capture.watch.regained(connection, oid):
                    self._keys.told(oid)
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
        self._sessions.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
