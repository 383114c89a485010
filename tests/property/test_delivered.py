"""Streams that end at random moments lose nothing, and repeat nothing.

A source in memory is streamed into partitions in memory, behind the classes that look
at what is there. Whatever is changed between two runs, each change finds its row; and
each rule that sees to it can be taken out, and is missed then.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import pytest

from walstream.errors import Restart
from walstream.formats.op import OpEncoder, decode
from walstream.kafka import delivered_tails as tails
from walstream.kafka import delivery_era, tail_reader
from walstream.kafka.delivered_tails import DeliveredTails, SinkTopics, StreamStart
from walstream.kafka.delivery_era import DeliveryEra, rules_of
from walstream.kafka.last_record import DeliveredRecords, LastRecord
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import Tail
from walstream.kafka.topic import Topic
from walstream.kafka.topic_reader import TopicRecord
from walstream.lsn import Lsn
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.telemetry.meter import SinkMeter

_TABLE: Final = Table("public", "t", ("id", "v"), (0,))
_ENCODER: Final = OpEncoder(_TABLE)
_PARTS: Final = 3
_SEEDS: Final = 400
_MOST: Final = 3000  # seeds until a rule that is out has to be missed


@dataclass(frozen=True)
class _Commit:
    lsn: Lsn
    time: int
    ops: tuple[ReplicationOp, ...]

    @property
    def end(self) -> Lsn:
        return self.lsn + 8


@dataclass(eq=False)
class _Pending:
    """A record that is on its way."""

    partition: int
    record: tuple[bytes, bytes | None, int, list[Any]]
    transaction: Transaction


class _Store:
    """Documents in memory."""

    def __init__(self) -> None:
        self.documents: dict[str, object] = {}

    def read(self, name: str) -> object | None:
        return self.documents.get(name)

    def names(self, prefix: str) -> list[str]:
        return sorted(one for one in self.documents if one.startswith(prefix))

    def tree(self, name: str) -> Mapping[str, object]:
        return {n: d for n, d in self.documents.items() if n.startswith(f"{name}/")}

    def damaged(self, what: str) -> Any:
        raise AssertionError(what)

    def write(self, documents: Mapping[str, object]) -> None:
        for name, document in documents.items():
            if document is None:
                self.documents.pop(name, None)
            else:
                self.documents[name] = orjson.loads(orjson.dumps(document))

    def store(self, *_: object) -> None:
        raise AssertionError


class _Reader:
    """Reads the partitions of a world."""

    world: "_World"

    def __init__(self, _properties: object, timeout_s: float) -> None:
        assert timeout_s > 0
        self._next: dict[Partition, int] = {}

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        assert list(topics) == ["t"]
        return {
            Partition("t", at): OffsetBounds(0, len(records))
            for at, records in enumerate(self.world.log)
        }

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self._next = dict(offsets)

    def poll(self, _timeout_s: float) -> list[TopicRecord]:
        found = []
        for one, at in self._next.items():
            found += self.world.log[one.number][at:]
            self._next[one] = len(self.world.log[one.number])
        return found

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def close(self) -> None:
        pass


@dataclass
class _World:
    """A server, Kafka, and one program that is started again and again."""

    draw: random.Random
    commits: list[_Commit] = field(default_factory=list)
    log: list[list[TopicRecord]] = field(
        default_factory=lambda: [[] for _ in range(_PARTS)]
    )
    parked: list[tuple[Lsn, int]] = field(default_factory=list)
    store: _Store = field(default_factory=_Store)
    position: Lsn = 100
    salt: int = 0  # of the partitioner: another one maps keys elsewhere
    limit: int = 400
    clock: int = 1_000_000
    made: int = 0
    identity: str = "1"
    late: list[_Pending] = field(default_factory=list)  # on the wire of a dead one
    special: bool = False
    rules: str = ""  # of the era
    rewound: list[tuple[Lsn, list[int]]] = field(default_factory=list)

    @property
    def end(self) -> Lsn:
        return self.commits[-1].end if self.commits else 100

    def commit(self) -> None:
        """Commit up to four changes; that the WAL grows is what tells them apart."""
        self.clock += self.draw.randint(1_000, 50_000)
        self.made += 1
        lsn = self.end + self.draw.choice((0, 0, 16))
        ops = []
        for seq_id in range(self.draw.randint(1, 4)):
            key = str(self.draw.randint(0, 5))
            size = self.draw.choice((1, 1, 1, 200))
            row: list[Any] = [key, f"{self.made}.{seq_id}" + "x" * size]
            deletes = self.draw.random() < 0.25
            op = ReplicationOp(
                Kind.DELETE if deletes else Kind.INSERT,
                _TABLE,
                lsn,
                seq_id,
                old=row if deletes else None,
                new=None if deletes else row,
                commit_time=self.clock,
            )
            ops.append(op)
        self.commits.append(_Commit(lsn, self.clock, tuple(ops)))

    def append(self, pending: _Pending) -> None:
        key, value, stamp, headers = pending.record
        log = self.log[pending.partition]
        found = [*headers]
        log.append(
            TopicRecord("t", pending.partition, len(log), key, value, found, stamp)
        )

    def look(self) -> tuple[Topic, DeliveredRecords]:
        topic = Topic("t", self.identity, _PARTS, self.limit)
        topics = SinkTopics("s", [self.salt], {}, lambda _name: True)
        start = StreamStart(self.position, self.end, repeats=True)
        look = DeliveredTails(topics, self.store, start)
        look.look([topic])
        self.rules = rules_of(topic, [self.salt])
        delivered = DeliveredRecords("s", SinkMeter(), look.disown)
        return topic, delivered

    def partition(self, key: bytes) -> int:
        return (key[0] * (7 + self.salt) + self.salt) % _PARTS


class _Program:
    """One life of the program."""

    def __init__(self, world: _World) -> None:
        self.world = world
        self.queues: list[deque[_Pending]] = [deque() for _ in range(_PARTS)]
        self.topic, self.delivered = world.look()
        self.ledger = Ledger(world.position)
        for pending in world.late:  # it came after the look
            world.append(pending)
        world.late = []

    def run(self, most: int) -> bool:
        """Stream so many transactions, then die; False: all is delivered."""
        world = self.world
        try:
            todo = [one for one in world.commits if one.lsn >= world.position]
            for commit in todo[:most]:
                self._send(commit)
                self._deliver(world.draw.randint(0, 4))
                self._advance()
            if most < len(todo) or world.draw.random() < 0.5:
                return True
            self._deliver(1 << 30)
            self._advance()
        except Restart:
            return True
        return world.position < world.end

    def die(self) -> None:
        """Leave some records on the wire: they come in order, or not at all."""
        for queue in self.queues:
            arrive = self.world.draw.randint(0, len(queue))
            for at in range(arrive):
                if self.world.draw.random() < 0.1:
                    self.world.late += [queue[one] for one in range(at, arrive)]
                    self.world.special = True  # who looks does not see them
                    break
                self.world.append(queue[at])

    def _send(self, commit: _Commit) -> None:
        transaction = self.ledger.begin(commit.lsn, commit.time)
        for op in commit.ops:
            (key, *_), *_ = [row for row in (op.new, op.old) if row]
            partition = self.world.partition(str(key).encode())
            values: list[bytes | None] = [_ENCODER.encode(op)]
            if op.kind is Kind.DELETE:
                values.append(None)
            for value in values:
                self._put(partition, str(key).encode(), value, op, transaction)
        self.ledger.commit(commit.end, len(commit.ops))

    def _put(
        self,
        partition: int,
        key: bytes,
        value: bytes | None,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        topic = self.topic
        if len(value or b"") > topic.limit:
            self.world.parked.append((op.lsn, op.seq_id))  # at once
            return
        if topic.tails and topic.has(self.delivered, partition, op, value):
            return
        headers = topic.headers(partition, [("walstream-source", b"1/a/0")])
        stamp = op.commit_time // 1000 + EPOCH_S * 1000
        stamp -= self.world.draw.choice((0, 0, 0, 3))  # our clock may be behind
        record = key, value, stamp, headers or []
        transaction.undelivered += 1
        self.queues[partition].append(_Pending(partition, record, transaction))

    def _deliver(self, count: int) -> None:
        for queue in self.queues:
            for _ in range(min(count, len(queue))):
                pending = queue.popleft()
                self.world.append(pending)
                pending.transaction.undelivered -= 1

    def _advance(self) -> None:
        resume = self.ledger.advance()
        if self.delivered.proven(resume) >= resume:
            self.world.position = max(self.world.position, resume)


# what happens between two lives


def _nothing(_world: _World) -> None:
    pass


def _remap(world: _World) -> None:
    world.special = True
    world.salt += 1


def _rewind(world: _World) -> None:
    world.special = True
    before = [one.lsn for one in world.commits if one.lsn < world.position]
    if before:
        world.position = world.draw.choice(before)
        world.rewound.append((world.position, [len(log) for log in world.log]))
        world.store.write(delivery_era.ended(world.store))


def _restore(world: _World) -> None:
    """Set the server back, on its timeline; it grows past what was lost."""
    kept = [one for one in world.commits if one.end <= world.position]
    lost = len(world.commits) - len(kept)
    if not lost:
        return
    world.special = True
    world.commits = kept
    world.clock += 60_000_000
    while world.end <= max(_highest(world), world.position):
        world.commit()


def _highest(world: _World) -> Lsn:
    values = [one.value for log in world.log for one in log if one.value is not None]
    return max((decode(value).lsn for value in values), default=0)


def _lose_state(world: _World) -> None:
    """Lose the state folder: the slot knows the position, and nobody the eras."""
    world.store = _Store()
    world.rewound.clear()  # that one was to go back, too


def _resize(world: _World) -> None:
    world.special = True
    world.limit = 150 if world.limit == 400 else 400


def _backfill(world: _World) -> None:
    """Have rows of a backfill at the ends, named after what is to come."""
    for partition in range(_PARTS):
        op = ReplicationOp(
            Kind.INSERT, _TABLE, world.end + 4000, 1 << 32, new=["0", "old"]
        )
        op.snapshot = True
        record = _Pending(partition, (b"0", _ENCODER.encode(op), 1, []), Transaction(0))
        world.append(record)


_PLAIN: Final = (_nothing, _nothing, _nothing, _backfill)
_CHANGES: Final = (*_PLAIN, _remap, _rewind, _restore, _lose_state, _resize)


def _run(seed: int, changes: tuple[Callable[[_World], None], ...]) -> str:
    """Run one history; return what is wrong with it."""
    world = _World(random.Random(seed))  # noqa: S311 - a test's history
    _Reader.world = world
    goes_on = True
    lives = 0
    while goes_on or lives < 3:
        lives += 1
        assert lives < 60, "it does not come to an end"
        if lives < 8:
            for _ in range(world.draw.randint(0, 4)):
                world.commit()
        program = _Program(world)
        most = world.draw.randint(0, 6) if lives < 12 else 1 << 30
        goes_on = program.run(most)
        program.die()
        if lives < 8:
            world.draw.choice(changes)(world)
            goes_on = True
    for pending in world.late:
        world.append(pending)
    return _wrong(world)


def _wrong(world: _World) -> str:
    values = [[one.value for one in log] for log in world.log]
    found = Counter(value for log in values for value in log if value)
    ops = [
        op
        for commit in world.commits
        for op in commit.ops
        if (op.lsn, op.seq_id) not in world.parked
    ]
    for op in ops:
        if not found[_ENCODER.encode(op)]:
            return f"lost: {op.lsn} {op.seq_id}"
    for position, ends in world.rewound:
        later = {
            one for log, end in zip(values, ends, strict=True) for one in log[end:]
        }
        for op in ops:
            if op.lsn >= position and _ENCODER.encode(op) not in later:
                return f"lost: {op.lsn} {op.seq_id} was not sent again"
    deletes = Counter(
        str((op.old or [""])[0]).encode() for op in ops if op.kind is Kind.DELETE
    )
    buried = Counter(one.key for log in world.log for one in log if one.value is None)
    if any(buried[key] < count for key, count in deletes.items()):
        return "lost: a tombstone"
    changes = Counter({v: n for v, n in found.items() if b'"snapshot"' not in v})
    if not world.special and (changes.total() > len(ops) or buried != deletes):
        return "repeated"
    return ""


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_reader, "TopicReader", _Reader)
    monkeypatch.setattr(tails, "_log", _Silence())


class _Silence:
    def info(self, *_: object, **__: object) -> None: ...

    def warning(self, *_: object, **__: object) -> None: ...


def test_crashes_repeat_nothing_and_lose_nothing() -> None:
    for seed in range(_SEEDS):
        assert _run(seed, _PLAIN) == "", f"seed {seed}"


def test_a_lost_state_repeats_nothing() -> None:
    for seed in range(_SEEDS):
        assert _run(seed, (*_PLAIN, _lose_state)) == "", f"seed {seed}"


def test_whatever_is_changed_nothing_is_lost() -> None:
    for seed in range(_SEEDS):
        wrong = _run(seed, _CHANGES)
        assert not wrong.startswith("lost"), f"seed {seed}: {wrong}"


def _other_limit(topic: Topic, told: object) -> str:
    same = Topic(topic.name, topic.identity, topic.partitions, 1)
    return delivery_era.rules_of(same, told)


def _from_the_first(rules: str, _since: Lsn, bounds: Iterable[object]) -> DeliveryEra:
    return DeliveryEra(rules, 0, [0 for _ in bounds])


def _of_any_record(rules: str, _since: Lsn, bounds: Iterable[OffsetBounds]) -> Any:
    return DeliveryEra(rules, 0, [bound.end for bound in bounds])


def _anybodys(tail: Tail, record: TopicRecord) -> None:
    _ADD(tail, record)
    tail.era, tail.era_offset = _Reader.world.rules, 0


_ADD: Final = Tail.add
_RULES: Final[dict[str, tuple[object, str, object]]] = {
    "an era has one set of rules": (tails, "rules_of", lambda *_: "always"),
    "an era has one limit": (tails, "rules_of", _other_limit),
    "records of another era do not count": (delivery_era, "fresh", _from_the_first),
    "nor those that come late": (delivery_era, "fresh", _of_any_record),
    "nor do they where the state was lost": (Tail, "add", _anybodys),
    "a rewind ends the eras": (delivery_era, "ended", lambda *_: {}),
    "the last record is met with its time": (LastRecord, "is_of", lambda *_: True),
    "the position waits for that": (DeliveredRecords, "proven", lambda _, at: at),
    "a tombstone is a record of its own": (LastRecord, "has", lambda *_: True),
}


@pytest.mark.parametrize("rule", _RULES)
def test_a_rule_that_is_out_is_missed(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*_RULES[rule])
    assert any(_run(seed, _CHANGES).startswith("lost") for seed in range(_MOST))
