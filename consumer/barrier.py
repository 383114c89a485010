"""The barrier of a TRUNCATE: rows before it are gone and rows after it stay.

Its record is in every partition of the topic. Each partition notes its arrival and
waits; the last one runs the handler, and all go on. That it was run is kept, so that a
partition that meets it again, or for the first time after a crash, passes.
"""

import threading
from enum import Enum, auto
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg

from consumer.lane import Lane
from consumer.lock import lock_key
from consumer.op import Op
from consumer.state import PartitionState

_RUN: Final = -1  # no partition: the handler ran
_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%s)"
_THIS: Final = (
    "group_id = %s AND topic = %s AND lsn = %s AND seq_id = %s"
    " AND (source = %s OR source = '' OR %s = '')"  # '': it was not told yet
)
# this partition's own row, and that of the run
_MET: Final = (
    f"SELECT partition FROM {{barrier}} WHERE {_THIS}"  # noqa: S608 - constants
    f" AND partition IN ({_RUN}, %s) ORDER BY partition"
)
_ARRIVE: Final = (
    "INSERT INTO {barrier}"
    " (group_id, topic, lsn, seq_id, source, partition)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_ARRIVED: Final = (  # at this one, or at any later op: it met that only after this one
    "SELECT partition FROM {barrier}"
    " WHERE group_id = %(group)s AND topic = %(topic)s AND partition >= 0"
    " AND (lsn::numeric, seq_id::numeric) >= (%(lsn)s::numeric, %(seq_id)s::numeric)"
    " AND (source = %(source)s OR source = '' OR %(source)s = '')"
    " UNION SELECT partition FROM {state}"
    " WHERE group_id = %(group)s AND topic = %(topic)s"
    " AND (lsn::numeric, seq_id::numeric) >= (%(lsn)s::numeric, %(seq_id)s::numeric)"
    " AND (source = %(source)s OR source IS NULL OR %(source)s = '')"
)
_KEPT: Final = 100  # the last that were run: for a state that was moved back by hand
# those before are forgotten once every partition is past them
_FORGET: Final = (
    "DELETE FROM {barrier} AS b WHERE group_id = %(group)s AND topic = %(topic)s"  # noqa: S608 - constants
    f" AND source = %(source)s AND partition = {_RUN}"
    " AND (lsn::numeric, seq_id::numeric) <= ("
    "  SELECT lsn::numeric, seq_id::numeric FROM {barrier}"
    "   WHERE group_id = %(group)s AND topic = %(topic)s AND source = %(source)s"
    f"  AND partition = {_RUN} ORDER BY 1 DESC, 2 DESC OFFSET %(kept)s LIMIT 1)"
    " AND %(partitions)s = ("
    "  SELECT count(*) FROM {state} AS s"
    "   WHERE s.group_id = %(group)s AND s.topic = %(topic)s"
    "   AND s.partition < %(partitions)s AND coalesce(s.source, '') = %(source)s"
    "   AND (s.lsn::numeric, s.seq_id::numeric)"
    "     >= (b.lsn::numeric, b.seq_id::numeric))"
)
_LEAVE: Final = f"DELETE FROM {{barrier}} WHERE {_THIS} AND partition <> {_RUN}"  # noqa: S608 - constants


class Turn(Enum):
    """What a partition at a barrier does next."""

    WAIT = auto()  # others have not arrived
    BUSY = auto()  # another partition runs the handler
    RUN = auto()  # the last one: run the handler, then `ran`
    PASS = auto()  # it was run


class Barrier:
    """One Truncate, as one partition meets it. Callers hold the transaction."""

    def __init__(self, state: PartitionState, op: Op, source: str | None) -> None:
        group, place, self._tables = state.group, state.place, state.tables
        self._place = place
        self._partitions = op.partitions
        self._lock = lock_key(group, place.topic, "truncate")
        lsn, seq_id, source = str(op.lsn), str(op.seq_id), source or ""
        self.name = (group, place.topic, lsn, seq_id, source)
        self._asked = {
            "group": group,
            "topic": place.topic,
            "lsn": lsn,
            "seq_id": seq_id,
            "source": source,
        }
        self.missing: list[int] = []  # partitions that had not arrived when last asked

    def arrive(self, tx: psycopg.Connection[Any]) -> Turn:
        """Note this partition's arrival; tell what to do."""
        met = self._met(tx)
        if _RUN in met:
            return Turn.PASS
        if not met:
            self._tables.execute(tx, _ARRIVE, (*self.name, self._place.partition))
        arrived = {
            row[0] for row in self._tables.execute(tx, _ARRIVED, self._asked).fetchall()
        }
        self.missing = [n for n in range(self._partitions) if n not in arrived]
        if self.missing:
            return Turn.WAIT
        locked = self._tables.execute(tx, _LOCK, (self._lock,)).fetchone()
        if not locked or not locked[0]:
            return Turn.BUSY
        # it may have been run since it was asked for
        return Turn.PASS if _RUN in self._met(tx) else Turn.RUN

    def _met(self, tx: psycopg.Connection[Any]) -> list[int]:
        asked = (*self.name, self.name[-1], self._place.partition)
        return [row[0] for row in self._tables.execute(tx, _MET, asked).fetchall()]

    def ran(self, tx: psycopg.Connection[Any]) -> None:
        """Note that the handler ran, in its own transaction."""
        self._tables.execute(tx, _LEAVE, (*self.name, self.name[-1]))
        self._tables.execute(tx, _ARRIVE, (*self.name, _RUN))
        forgotten = {**self._asked, "partitions": self._partitions, "kept": _KEPT}
        self._tables.execute(tx, _FORGET, forgotten)


class Crossings:
    """Who of this consumer waits at which barrier: told when it was run here.

    What other members run is found by asking now and then.
    """

    def __init__(self) -> None:
        # weak: one that is revoked meanwhile may never pass
        self._waiting: WeakKeyDictionary[Lane, tuple[str, ...]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def wait(self, name: tuple[str, ...], lane: Lane) -> None:
        with self._lock:
            self._waiting[lane] = name

    def run(self, name: tuple[str, ...], lane: Lane) -> None:
        """Say that it was run, after its transaction."""
        with self._lock:
            lanes = [one for one, where in self._waiting.items() if where == name]
            for one in lanes:
                del self._waiting[one]
        for other in lanes:
            if other is not lane:
                other.urge()
