"""What must hold at each moment: confirmed is stored, and stored is in Kafka.

Each check is told of its event as it happens, and raises Violation.
"""

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.simulation.disk import Documents, read
from tests.simulation.installation import PARTITIONS
from tests.simulation.kafka import Record, SimCluster
from tests.simulation.kafka_transactions import POSITIONS, KafkaTransaction
from tests.simulation.server import START, SimServer
from tests.simulation.tables import WalTransaction
from tests.simulation.walsender import SimSlot
from tests.simulation.world import Process, Violation
from walstream.lsn import Lsn, show
from walstream.op import CHUNK_BITS, Kind
from walstream.sources.postgres.detached.detached_sink import AWAY
from walstream.sources.postgres.incremental.progress import FIRST_CHUNK

Name = tuple[Lsn, int]
_PART_S = 30.0  # half of transaction.timeout.ms: longer ones are committed in parts


@dataclass
class SinkView:
    """What one sink's topics have, and what they lack."""

    name: str
    partitions: int
    lacks: list[set[tuple[int, int]]] = field(default_factory=list)  # by transaction
    front: int = 0  # the first transaction that lacks something

    def expect(self, transaction: WalTransaction) -> None:
        wanted = set()
        for op in transaction.expected:
            if op.kind is Kind.TRUNCATE:
                wanted |= {(op.seq_id, part) for part in range(self.partitions)}
            else:
                wanted.add((op.seq_id, -1))
        self.lacks.append(wanted)


class Checker:
    """Invariants of one schedule."""

    def __init__(self, server: SimServer, cluster: SimCluster) -> None:
        self._server = server
        self._cluster = cluster
        self.sinks = {name: SinkView(name, parts) for name, parts in PARTITIONS.items()}
        self._commits: list[WalTransaction] = []
        self._lsns: list[Lsn] = []
        self._ends: set[Lsn] = {START}
        self._greatest: dict[tuple[str, int], Name] = {}
        self._seen: dict[tuple[str, int], dict[Name, bytes]] = {}
        # the partition and the key of each op, by topic
        self._places: dict[str, dict[Name, tuple[int, bytes | None]]] = {}
        self._inset: dict[tuple[str, int], Lsn] = {}  # of the last old rows
        self._rows: dict[tuple[tuple[str, int], Lsn, int], set[int]] = {}  # by chunk
        self.stored: dict[str, Lsn] = {}  # the positions on disk, by folder
        self._of_slot: dict[str, Lsn] = {}  # the same, by slot
        self._below: dict[str, Lsn] = {}  # no commit from here on was sent, by the disk
        self._checked: dict[str, tuple[Lsn, Collection[str]]] = {}
        self._away: set[str] = set()  # sinks of which a worker of their own has care
        # the greatest commit of which Kafka has something, by sink
        self._sent = dict.fromkeys(PARTITIONS, 0)
        self.records = 0
        self.repeated = 0
        self.once = False  # may no record come again?
        self.whole = False  # does a Kafka transaction have the source's whole?
        # what is committed, and not read yet; who aborted it all the same, if anybody
        self._promised: dict[tuple[tuple[str, int], Name], Process | None] = {}
        self.excused = False  # something of it was lost where the docs say so
        self._lost: set[Lsn] = set()  # commits of which a failover knows nothing
        self.readers_have: set[str] = set()  # of these sinks, some of those
        self._left: Lsn = 0  # where the last timeline was left
        server.lost = self.lose
        server.committed = self.committed
        server.confirming = self.confirmed
        cluster.appended = self.appended
        cluster.transactions.decided = self.decided
        cluster.transactions.undone = self.undone

    # what happens

    def committed(self, transaction: WalTransaction) -> None:
        self._lost.discard(transaction.lsn)
        self._commits.append(transaction)
        self._lsns.append(transaction.lsn)
        self._ends.add(transaction.end_lsn)
        for sink in self.sinks.values():
            sink.expect(transaction)

    def lose(self, left: Lsn) -> None:
        """Forget what the new primary lacks; who was sent some may go no further."""
        at = bisect_left(self._lsns, left)
        self._left = left
        self._lost |= {*self._lsns[at:]}
        del self._lsns[at:], self._commits[at:]
        for sink in self.sinks.values():
            del sink.lacks[at:]
            sink.front = min(sink.front, at)
        self._ends = {one for one in self._ends if one <= left}
        self.readers_have |= {name for name, sent in self._sent.items() if sent >= left}

    def decided(self, transaction: KafkaTransaction) -> None:
        """Count what a coordinator committed: readers will have it."""
        told = set()
        for record in transaction.records:
            if record.topic == POSITIONS:
                continue
            document: dict[str, Any] = orjson.loads(record.value or b"{}")
            lsn, seq_id = name = document["lsn"], document["seq_id"]
            self._promised[(record.topic, record.partition), name] = None
            at = bisect_left(self._lsns, lsn)
            if lsn in self._lost:
                self.readers_have.add(record.topic[0])
            elif not document.get("snapshot") and self._lsns[at : at + 1] == [lsn]:
                self._note_sent(record, lsn)
                lacks = self.sinks[record.topic[0]].lacks[at]
                lacks -= {(seq_id, -1), (seq_id, record.partition)}
                told.add((at, record.topic[0]))
        if not self._cluster.transactions.mixed.isdisjoint(transaction.places):
            self.once = False  # what ends both may commit a part: a known gap
            return
        lasted = self._cluster.world.now - transaction.began
        if not self.whole or lasted > _PART_S:
            return
        for at, sink in told:
            if self.sinks[sink].lacks[at]:
                lsn = show(self._lsns[at])
                raise Violation(f"a part of {lsn} is committed in sink {sink}")

    def undone(self, record: Record, by: Process | None) -> None:
        """Note what was committed, and is aborted: it has to be sent again.

        The docs except what Kafka aborts by itself, and rows of a backfill where the
        position could not be read.
        """
        if record.topic == POSITIONS or not record.value:
            return
        document: dict[str, Any] = orjson.loads(record.value)
        promise = (
            (record.topic, record.partition),
            (document["lsn"], document["seq_id"]),
        )
        if promise in self._promised:
            is_row = bool(document.get("snapshot"))
            hidden = is_row and bool(self._cluster.transactions.hidden)
            if by is None or by.dead or hidden:
                self._excuse(promise)
            else:
                self._promised[promise] = by

    def excuse(self, process: Process) -> None:
        """Forget what a start that is killed was to send again, as the docs do."""
        for promise in [one for one, by in self._promised.items() if by is process]:
            self._excuse(promise)

    def kept(self) -> None:
        """See that readers have all that was committed."""
        if self._promised:
            raise Violation(f"committed, and aborted: {sorted(self._promised)}")

    def _excuse(self, promise: tuple[tuple[str, int], Name]) -> None:
        del self._promised[promise]
        self.excused = True

    def appended(self, record: Record) -> None:
        if record.topic == POSITIONS:
            return
        document: dict[str, Any] = orjson.loads(record.value or b"{}")
        lsn, seq_id = name = document["lsn"], document["seq_id"]
        self._promised.pop(((record.topic, record.partition), name), None)
        if lsn in self._lost:
            self.readers_have.add(record.topic[0])  # it was on its way
            return
        # a chunk of a table may still be on its way, at a place that is no commit's
        lost = record.topic[0] in self.readers_have
        if lost and lsn >= self._left and not document.get("snapshot"):
            raise Violation(f"it sends {name}, though readers have what is lost")
        first = bool(document.get("snapshot")) and seq_id >> CHUNK_BITS < FIRST_CHUNK
        if first:  # of the first backfill, before the stream
            self._inserted((record.topic, record.partition), name)
            return
        if lsn >= max(self._below.values(), default=0):
            raise Violation(f"{show(lsn)} was sent before that was noted on disk")
        self.records += 1
        self._note_sent(record, lsn)
        if document.get("snapshot"):
            self._inserted((record.topic, record.partition), name)
            return
        at = bisect_left(self._lsns, lsn)
        if at == len(self._lsns) or self._lsns[at] != lsn:
            raise Violation(f"phantom: {record.topic} has a commit {show(lsn)}")
        self._compare(record, document, self._commits[at], seq_id)
        self._in_order(record, name, same=not self._commits[at].reads)
        if document["op"] != "Truncate":
            self._in_one_place(record, name)
        lacks = self.sinks[record.topic[0]].lacks[at]
        lacks.discard((seq_id, -1))
        lacks.discard((seq_id, record.partition))

    @property
    def sent(self) -> Lsn:
        """Return the greatest commit of which Kafka has something."""
        return max(self._sent.values())

    def _note_sent(self, record: Record, lsn: Lsn) -> None:
        sink = record.topic[0]
        self._sent[sink] = max(self._sent[sink], lsn)

    def _inserted(self, place: tuple[str, int], name: Name) -> None:
        """See that an old row stands behind all that is older."""
        if name[0] < self._greatest.get(place, (0, 0))[0]:
            raise Violation(f"{place} has the old row {name} behind newer ops")
        if name[0] < self._inset.get(place, 0):
            raise Violation(f"{place} has {name} behind old rows of a later snapshot")
        self._inset[place] = max(name[0], self._inset.get(place, 0))
        lsn, seq_id = name
        seen = self._rows.setdefault((place, lsn, seq_id >> CHUNK_BITS), set())
        if seq_id not in seen and seq_id < max(seen, default=0):
            raise Violation(f"I10: {place} has the row {name} behind later ones")
        seen.add(seq_id)

    def _in_order(self, record: Record, name: Name, *, same: bool) -> None:
        """See that it is the next one of its partition, or one that came before."""
        place = record.topic, record.partition
        seen = self._seen.setdefault(place, {})
        before = seen.get(name)
        if before is not None:
            self.repeated += 1
            if self.once and not any(one.reads for one in self._commits):
                raise Violation(f"twice: {place} has {name} again")
            if same and before != record.value:
                raise Violation(f"I3: {place} {name} is another record in a replay")
            return
        if name < self._greatest.get(place, (0, 0)):
            raise Violation(f"I10: {place} has {name} behind {self._greatest[place]}")
        if name[0] <= self._inset.get(place, 0):
            raise Violation(f"{place} has {name} behind old rows of later")
        self._greatest[place] = name
        seen[name] = record.value or b""

    def _in_one_place(self, record: Record, name: Name) -> None:
        """See that it comes again where it came first: by the same key."""
        places = self._places.setdefault(record.topic, {})
        first = places.setdefault(name, (record.partition, record.key))
        if first != (record.partition, record.key):
            raise Violation(f"I3: {record.topic} {name} has another key in a replay")

    @staticmethod
    def _compare(
        record: Record, document: dict[str, Any], done: WalTransaction, seq_id: int
    ) -> None:
        """See that it is the op of that number."""
        kind, row = "Truncate", None
        if document["op"] != kind:
            ((kind, rows),) = document["op"].items()
            row = rows[1] if kind == "Update" else rows
        if seq_id >= len(done.expected):
            raise Violation(f"phantom: {record.topic} has ({show(done.lsn)}, {seq_id})")
        op = done.expected[seq_id]
        key = "" if row is None else row[document["col_names"].index("id")]
        found = (kind, f"public.{document['table_name']}", key)
        if found != (op.kind.value, op.table, op.key):
            raise Violation(f"({show(done.lsn)}, {seq_id}) is {found}, not {op}")

    def complete(self, names: Collection[str] = tuple(PARTITIONS)) -> Lsn:
        """Return the commit LSN from which on something is not in Kafka."""
        first = len(self._commits)
        for sink in (self.sinks[name] for name in names):
            while sink.front < len(sink.lacks) and not sink.lacks[sink.front]:
                sink.front += 1
            first = min(first, sink.front)
        if first == len(self._commits):
            return self._server.wal_end
        return self._commits[first].lsn

    def written(self, folder: str, documents: Documents) -> None:
        given = read(documents, "given")
        if given:
            self._below[folder] = given["below"]
        position = read(documents, "position")
        if position is None:
            return
        sinks, resume = self._sinks_of(folder, documents), position["resume"]
        if self._checked.get(folder) == (resume, sinks):
            return  # what was true then may have been lost by a failover
        self._checked[folder] = resume, sinks
        complete = self.complete(sinks)
        if resume < self.stored.get(folder, 0):
            raise Violation(f"the position went back to {show(resume)}")
        # of the history that a failover left: Kafka has what that server sent, and
        # the next start sees that this one does not
        left = position["timeline"] < self._server.timeline
        if resume > complete and not left:
            raise Violation(
                f"I1: the position {show(resume)} is on disk, and Kafka lacks"
                f" {show(complete)}"
            )
        self.stored[folder] = resume
        slot = position["slot"]  # another instance's state may be of it, too
        self._of_slot[slot] = max(resume, self._of_slot.get(slot, 0))

    def _sinks_of(self, folder: str, documents: Documents) -> Collection[str]:
        """Name the sinks that a position is about."""
        _, away, sink = folder.partition("/away/")
        if away:
            return {sink}
        self._away = {name for name in PARTITIONS if phase_of(documents, name) == AWAY}
        return PARTITIONS.keys() - self._away

    def ended(self, folder: str, documents: Documents) -> None:
        """See what a process says that stopped: it sent nothing beyond its position."""
        sent, stored = read(documents, "sent"), self.stored.get(folder)
        if self._away or not sent or sent["drained"] != stored or stored is None:
            return
        if self.sent >= max(stored, sent["below"]):  # what earlier streams sent
            raise Violation(
                f"it says that it drained at {show(stored)}, and sent {show(self.sent)}"
            )

    def restored(self, folder: str, documents: Documents) -> None:
        """Take an older copy of the state, as an operator did."""
        self.stored[folder] = 0
        self._of_slot.clear()
        self._checked.pop(folder, None)
        self.written(folder, documents)

    def discarded(self, folder: str) -> None:
        """Forget a state that was deleted."""
        self.stored.pop(folder, None)
        self._checked.pop(folder, None)

    def confirmed(self, slot: SimSlot, lsn: Lsn) -> None:
        stored = self._of_slot.get(slot.name, 0)
        if lsn > stored:
            raise Violation(
                f"I1: {show(lsn)} is confirmed, and {show(stored)} is on disk"
            )
        if lsn not in self._ends and lsn not in self._server.keepalives:
            raise Violation(f"I2: {show(lsn)} is confirmed, where nothing ends")

    # what has to be in the end

    @property
    def arrived(self) -> bool:
        """Return whether everything is delivered, stored and confirmed.

        Not while readers have what a failover lost: then it has to stop.
        """
        if self.readers_have:
            return False
        end = self._commits[-1].end_lsn if self._commits else 0
        return self.complete() >= self._server.wal_end and all(
            slot.confirmed >= end for slot in self._server.slots.values()
        )

    def state(self) -> str:
        first = self.complete()
        slots = {name: show(one.confirmed) for name, one in self._server.slots.items()}
        return (
            f"Kafka has all below {show(first)} of {show(self._server.wal_end)}, the"
            f" positions are {list(map(show, self.stored.values()))}, slots {slots},"
            f" away {sorted(self._away)}"
        )

    def folded(self) -> None:
        """See that who reads a sink's topics ends with the server's tables."""
        for sink in self.sinks:
            for table in self._server.tables:
                if self._server.catalog.root(table.oid) is not None:
                    continue  # its rows are its root's
                found = fold(self._cluster, f"{sink}.{table.full_name}")
                columns = table.shape.columns
                rows = {
                    key: [row.get(name) for name in columns]
                    for key, row in found.items()
                }
                wanted = {
                    key: [row[name] for name in columns]
                    for key, row in self._server.rows_of(table).items()
                }
                if rows != wanted:
                    raise Violation(
                        f"topic {sink}.{table.full_name} folds to {rows}, the table"
                        f" has {wanted}"
                    )


def fold(cluster: SimCluster, topic: str) -> dict[str, dict[str, Any]]:
    """Apply each partition's records as they stand, as a consumer does."""
    whole: dict[str, dict[str, Any]] = {}
    found = cluster.topics.get(topic)
    for records in found.partitions if found else ():
        state: dict[str, dict[str, Any]] = {}
        position = (-1, -1)
        chunks: dict[tuple[int, int], int] = {}
        for record in records:
            document = orjson.loads(record.value or b"{}")
            name = document["lsn"], document["seq_id"]
            if document.get("snapshot"):
                chunk, index = (name[0], name[1] >> 32), name[1] & 0xFFFFFFFF
                if index > chunks.get(chunk, -1):
                    chunks[chunk] = index
                    _apply(state, document)
            elif name > position:
                position = name
                _apply(state, document)
        whole |= state
    return whole


def _apply(state: dict[str, dict[str, Any]], document: dict[str, Any]) -> None:
    if document["op"] == "Truncate":
        state.clear()
        return
    ((kind, rows),) = document["op"].items()
    row = dict(
        zip(document["col_names"], rows[1] if kind == "Update" else rows, strict=True)
    )
    if kind == "Delete":
        state.pop(row["id"], None)
        return
    before = state.get(row["id"], {})
    absent = document.get("absent", {}).get("new", ())
    kept = {name: before.get(name, "a value that nobody sent") for name in absent}
    state[row["id"]] = row | kept


def phase_of(documents: Documents, sink: str) -> str:
    """Return the phase of a detached sink; "": it is in the stream."""
    found = read(documents, f"away/{sink}")
    return found["phase"] if found else ""
