"""The barrier of a TRUNCATE: rows before it are gone and rows after it stay.

Its record is in every partition of the topic. Each partition notes its arrival and
waits; the last one runs the handler, and all go on. That it was run is kept, so that a
partition that meets it again, or for the first time after a crash, passes.

Where the group began behind it, as Kafka deleted it in one partition sooner than in
another, it is not run: it would take rows with it that came after it. It is passed, if
nothing before it took effect in the others, which begin with it.
"""

import logging
import threading
from enum import Enum, auto
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg

from consumer.error_text import blamed, shown
from consumer.errors import BarrierTimeout, TopicReplaced
from consumer.group.assigned_partition import AssignedPartition
from consumer.op import Op
from consumer.pg_catalog import ABOVE, BELOW, FROM, IS, IS_NOT, MINUS, UP_TO
from consumer.state.advisory_lock import lock_key
from consumer.state.partition_state import BEGUN, LATE, PartitionState
from consumer.state.schema import reset

_log = logging.getLogger(__name__)
_RUN: Final = -1  # no partition: the handler ran
# likewise, less the number of a partition: nothing before took effect in that one
_FIRST: Final = -2
_LOCK: Final = "SELECT pg_catalog.pg_try_advisory_xact_lock(%s)"
_THIS: Final = (
    f"group_id {IS} %s AND topic {IS} %s AND lsn {IS} %s AND seq_id {IS} %s"
    f" AND (source {IS} %s OR source {IS} '' OR %s {IS} '')"  # '': it was not told yet
)
# this partition's own row, and that of the run
_MET: Final = (
    f"SELECT partition FROM {{barrier}} WHERE {_THIS}"  # noqa: S608 - constants
    f" AND (partition {IS} {_RUN} OR partition {IS} %s) ORDER BY partition"
)
_ARRIVE: Final = (
    "INSERT INTO {barrier}"
    " (group_id, topic, lsn, seq_id, source, partition)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_TOPIC: Final = f"group_id {IS} %(group)s AND topic {IS} %(topic)s"
_SOURCE: Final = f"source {IS} %(source)s"
_OF_SOURCE: Final = f"({_SOURCE} OR source {IS} '' OR %(source)s {IS} '')"  # named
_LATER: Final = (
    f"(lsn::numeric, seq_id::numeric) {FROM} (%(lsn)s::numeric, %(seq_id)s::numeric)"
)
# at this one, or at any later op: it met that only after this one. Is it at this one?
_ARRIVED: Final = (
    f"SELECT partition, lsn {IS} %(lsn)s AND seq_id {IS} %(seq_id)s FROM {{barrier}}"  # noqa: S608 - constants
    f" WHERE {_TOPIC} AND partition {FROM} 0"
    f" AND {_LATER} AND {_OF_SOURCE}"
    f" UNION ALL SELECT partition, false FROM {{state}} WHERE {_TOPIC}"
    f" AND {_LATER} AND ({_SOURCE} OR source IS NULL OR %(source)s {IS} '')"
)
# if this partition had the Truncate when the group began: else it is to come in others
_BEGUN_LATE: Final = (
    f"SELECT partition, next_offset FROM {{state}} AS s WHERE {_TOPIC}"  # noqa: S608 - constants
    f" AND EXISTS (SELECT FROM {{barrier}} AS b WHERE b.group_id {IS} s.group_id"
    f" AND b.topic {IS} s.topic AND b.partition {IS} s.partition"
    f" AND b.lsn {IS} '{BEGUN}' AND b.source {IS} '{LATE}')"
    f" AND EXISTS (SELECT FROM {{barrier}} AS own WHERE own.group_id {IS} s.group_id"
    f" AND own.topic {IS} s.topic AND own.partition {IS} %(partition)s"
    f" AND own.lsn {IS} '{BEGUN}' AND own.seq_id::bigint {ABOVE} %(offset)s)"
)
# where a partition waits at a Truncate before: one that was run has no such rows
_EARLIER: Final = (
    f"SELECT DISTINCT lsn, seq_id FROM {{barrier}} WHERE {_TOPIC}"  # noqa: S608 - constants
    f" AND partition {IS} ANY(%(missing)s::integer[]) AND lsn {IS_NOT} '{BEGUN}'"
    f" AND NOT {_LATER} AND {_OF_SOURCE}"
)
_CHUNKS: Final = (
    f"SELECT DISTINCT partition FROM {{snapshot}} WHERE {_TOPIC}"  # noqa: S608 - constants
    f" AND partition {IS} ANY(%(lacking)s::integer[])"
)
# did anything take effect in the partitions that are at it? Not the Truncate before, if
# nothing had before that one
_BEFORE: Final = (
    f"SELECT EXISTS (SELECT FROM {{state}} AS s WHERE {_TOPIC} AND lsn {IS_NOT} '0'"  # noqa: S608 - constants
    f" AND partition {IS} ANY(%(at_it)s::integer[]) AND NOT EXISTS (SELECT FROM"
    f" {{barrier}} AS b WHERE b.group_id {IS} s.group_id AND b.topic {IS} s.topic"
    f" AND b.partition {IS} ({_FIRST} {MINUS} s.partition)"
    f" AND b.lsn {IS} s.lsn AND b.seq_id {IS} s.seq_id)) OR EXISTS (SELECT FROM"
    f" {{snapshot}} WHERE {_TOPIC} AND partition {IS} ANY(%(at_it)s::integer[]))"
)
_FORGET_FIRST: Final = (
    f"DELETE FROM {{barrier}} WHERE {_TOPIC}"  # noqa: S608 - constants
    f" AND partition {IS} ANY(%(first)s::integer[])"
)
_BEGIN_AT_END: Final = (
    "make the group forget the topic, start it with auto.offset.reset=latest, and then"
    " backfill the tables with --replace"
)
_KEPT: Final = 100  # the last that were run: for a state that was moved back by hand
# those before are forgotten once every partition is past them
_FORGET: Final = (
    f"DELETE FROM {{barrier}} AS b WHERE {_TOPIC}"  # noqa: S608 - constants
    f" AND {_SOURCE} AND partition {IS} {_RUN}"
    f" AND (lsn::numeric, seq_id::numeric) {UP_TO} ("
    f"  SELECT lsn::numeric, seq_id::numeric FROM {{barrier}} WHERE {_TOPIC}"
    f"   AND {_SOURCE} AND partition {IS} {_RUN}"
    "   ORDER BY 1 DESC, 2 DESC OFFSET %(kept)s LIMIT 1)"
    f" AND %(partitions)s {IS} ("
    f"  SELECT pg_catalog.count(*) FROM {{state}} AS s WHERE {_TOPIC}"
    f"   AND s.partition {BELOW} %(partitions)s"
    f"   AND coalesce(s.source, '') {IS} %(source)s"
    f"   AND (s.lsn::numeric, s.seq_id::numeric)"
    f"     {FROM} (b.lsn::numeric, b.seq_id::numeric))"
)
_LEAVE: Final = f"DELETE FROM {{barrier}} WHERE {_THIS} AND partition {IS_NOT} {_RUN}"  # noqa: S608 - constants


class Turn(Enum):
    """The next step of a partition at a barrier."""

    WAIT = auto()  # others have not arrived
    BUSY = auto()  # another partition runs the handler
    RUN = auto()  # the last one: run the handler, then `ran`
    PASS = auto()  # it was run
    BEHIND = auto()  # it cannot be run: partitions began behind it


class Barrier:
    """One Truncate, as one partition meets it. Callers hold the transaction."""

    def __init__(
        self,
        state: PartitionState,
        op: Op,
        source: str | None,
        lacking: frozenset[int] = frozenset(),
    ) -> None:
        """`lacking` are partitions in which it is not, and will not be met."""
        self._lacking = lacking
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
            "partition": place.partition,
            "offset": op.record.offset,
        }
        self.missing: list[int] = []  # partitions that had not arrived when last asked
        self.behind: list[int] = []  # those that began behind it, and went on
        self._first: list[int] = []  # in which nothing before it took effect

    def arrive(self, tx: psycopg.Connection[Any]) -> Turn:
        """Note this partition's arrival; tell what to do."""
        met = self._met(tx)
        if _RUN in met:
            return Turn.PASS
        if not met:
            self._tables.execute(tx, _ARRIVE, (*self.name, self._place.partition))
        arrived = self._tables.execute(tx, _ARRIVED, self._asked).fetchall()
        there = {partition for partition, _ in arrived}
        awaited = set(range(self._partitions)) - self._lacking
        self.missing = sorted(awaited - there)
        if self.missing:
            # its own row is gone where another one ran it since it was asked for
            own = self._place.partition in self.missing
            return Turn.PASS if own and _RUN in self._met(tx) else Turn.WAIT
        at_it = {partition for partition, is_at_it in arrived if is_at_it}
        gone_by = there - at_it | self._begun(tx)
        if gone_by and self._is_behind(tx, gone_by):
            return self._without(tx, sorted(at_it))
        locked = self._tables.execute(tx, _LOCK, (self._lock,)).fetchone()
        if not locked or not locked[0]:
            return Turn.BUSY
        if _RUN in self._met(tx):  # since it was asked for
            return Turn.PASS
        if self._lacking:
            self._look_before(tx, sorted(at_it))
        return Turn.RUN

    def _begun(self, tx: psycopg.Connection[Any]) -> set[int]:
        """Return those that lack it of which rows took effect: they came behind it."""
        if not self._lacking:
            return set()
        asked = {**self._asked, "lacking": sorted(self._lacking)}
        found = self._tables.execute(tx, _CHUNKS, asked).fetchall()
        return {partition for (partition,) in found}

    def late_offsets(self, tx: psycopg.Connection[Any]) -> dict[int, int]:
        """Return what comes next, of partitions that may have lost it before."""
        found = self._tables.execute(tx, _BEGUN_LATE, self._asked).fetchall()
        return dict(found)

    def earlier(self, tx: psycopg.Connection[Any]) -> frozenset[tuple[str, str]]:
        """Return the Truncates before this one at which missing partitions wait."""
        asked = {**self._asked, "missing": self.missing}
        return frozenset(self._tables.execute(tx, _EARLIER, asked).fetchall())

    def _is_behind(self, tx: psycopg.Connection[Any], gone_by: set[int]) -> bool:
        """Return whether the group began some of them behind their first record."""
        self.behind = sorted(gone_by & self.late_offsets(tx).keys())
        return bool(self.behind)

    def _without(self, tx: psycopg.Connection[Any], at_it: list[int]) -> Turn:
        """Return the turn where partitions of the group lack this Truncate."""
        if _RUN in self._met(tx):  # since it was asked for
            return Turn.PASS
        if not self._look_before(tx, at_it):
            return Turn.BEHIND
        self.ran(tx)
        _log.warning(
            "%s: the TRUNCATE at lsn %s is not run: Kafka had deleted it from"
            " partitions %s when group %s began; nothing before it took effect",
            *(self.name[1], self.name[2], self.behind, self.name[0]),
        )
        return Turn.PASS

    def _look_before(self, tx: psycopg.Connection[Any], at_it: list[int]) -> bool:
        """Return whether nothing before it took effect in the partitions at it."""
        asked = {**self._asked, "at_it": at_it}
        before = self._tables.execute(tx, _BEFORE, asked).fetchone()
        self._first = [] if before and before[0] else at_it
        return bool(self._first)

    def timeout(self, op: Op, waited_s: float) -> BarrierTimeout:
        """Return the error of a Truncate that others did not reach in time."""
        error = BarrierTimeout(
            f"waited {waited_s:g} s at {shown(op)}: these partitions of the topic have"
            f" not reached it: {self.missing}",
            hint="make sure that members of the group read them, then restart",
        )
        return blamed(error, op)

    def begun_behind(self, op: Op) -> TopicReplaced:
        """Return the error of a Truncate that cannot be run."""
        group, topic, *_ = self.name
        repair = reset(group, topic)
        error = TopicReplaced(
            f"Kafka had deleted {shown(op)} from partitions {self.behind} when group"
            f" {group} began: it would take rows with it that came after it",
            hint=f"{_BEGIN_AT_END}; in the application's database:\n{repair.sql}",
            repair=repair,
        )
        return error.at(topic, self.behind[0])

    def _met(self, tx: psycopg.Connection[Any]) -> list[int]:
        asked = (*self.name, self.name[-1], self._place.partition)
        return [row[0] for row in self._tables.execute(tx, _MET, asked).fetchall()]

    def ran(self, tx: psycopg.Connection[Any]) -> None:
        """Note that the handler ran, in its own transaction."""
        self._tables.execute(tx, _LEAVE, (*self.name, self.name[-1]))
        self._tables.execute(tx, _ARRIVE, (*self.name, _RUN))
        if self._first:
            first = [_FIRST - partition for partition in self._first]
            asked = {**self._asked, "first": first}
            self._tables.execute(tx, _FORGET_FIRST, asked)
            for mark in first:
                self._tables.execute(tx, _ARRIVE, (*self.name, mark))
        forgotten = {**self._asked, "partitions": self._partitions, "kept": _KEPT}
        self._tables.execute(tx, _FORGET, forgotten)


class Crossings:
    """Lanes of this consumer that wait at a barrier; they learn when it was run here.

    Runs by other members are found by asking from time to time.
    """

    def __init__(self) -> None:
        # weak: one that is revoked meanwhile may never pass
        self._waiting: WeakKeyDictionary[AssignedPartition, tuple[str, ...]] = (
            WeakKeyDictionary()
        )
        self._lock = threading.Lock()

    def wait(self, name: tuple[str, ...], lane: AssignedPartition) -> None:
        with self._lock:
            self._waiting[lane] = name

    def run(self, name: tuple[str, ...], lane: AssignedPartition) -> None:
        """Note that it was run, after its transaction."""
        with self._lock:
            lanes = [one for one, where in self._waiting.items() if where == name]
            for one in lanes:
                del self._waiting[one]
        for other in lanes:
            if other is not lane:
                other.urge()
