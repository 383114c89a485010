"""Whole transactions out of partitions: whole, once, in order, whatever was sent again.

A model of the source and of its sink writes the partitions and the transaction topic:
backfilled rows, crashes after which a replay goes some steps back (and may count
otherwise, since keys moved to other partitions), TRUNCATE in every partition. A reader
meets the partitions in any order while they grow, asks for ends at any time, and is
killed at any: it begins again where its state says.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from unittest.mock import patch

from hypothesis import event, given, settings
from hypothesis import strategies as st

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.state.position import SnapshotChunk
from consumer.whole.assembler import TransactionAssembler
from consumer.whole.lane import Lane
from consumer.whole.open_transaction import Gap
from consumer.whole.pile import Piles
from consumer.whole.told import ResolvedMark, ToldTransaction
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table

ITEM = Table("public", "item", ("id",))
TOPIC = "t"
PARTITIONS = 3
Name = tuple[int, int]


@dataclass
class Sent:
    """What partitions hold, and the transaction topic."""

    lanes: list[list[Op | None]] = field(
        default_factory=lambda: [[] for _ in range(PARTITIONS)]
    )
    told: list[ToldTransaction | ResolvedMark | None] = field(
        default_factory=list
    )  # None: it is lost
    times: dict[int, list[int]] = field(
        default_factory=lambda: {number: [] for number in range(-1, PARTITIONS)}
    )  # when each record came
    now: int = 0

    def tell(self, told: ToldTransaction | ResolvedMark) -> None:
        self.told.append(told)
        self._note(-1)

    def _note(self, number: int) -> None:
        self.now += 1
        self.times[number].append(self.now)

    def drop(self, number: int, keep: int) -> None:
        """Have a partition end there: what is behind did not arrive."""
        del self.times[number][keep:]
        if number < 0:
            del self.told[keep:]
        else:
            del self.lanes[number][keep:]

    def put(self, number: int, op: ReplicationOp) -> None:
        offset = len(self.lanes[number])
        value = OpEncoder(ITEM).encode(op)
        record = ConsumerRecord(TOPIC, number, offset, b"k", value)
        self.lanes[number].append(Op(decode(value), record))
        self._note(number)


@dataclass(frozen=True)
class Step:
    """One thing that the source did: a transaction, or backfilled rows behind it."""

    lsn: int
    keys: tuple[int, ...]  # one op each; a negative one is a TRUNCATE
    rows: tuple[int, ...] = ()  # keys of backfilled rows; the first may be a TRUNCATE

    def ops(self) -> list[ReplicationOp]:
        found = []
        for seq_id, key in enumerate(self.keys):
            kind = Kind.TRUNCATE if key < 0 else Kind.INSERT
            new = None if key < 0 else [str(key)]
            count = PARTITIONS if key < 0 else 0
            found.append(
                ReplicationOp(kind, ITEM, self.lsn, seq_id, new=new, partitions=count)
            )
        return found

    def backfilled(self) -> list[ReplicationOp]:
        found = []
        for index, key in enumerate(self.rows):
            emptied = key < 0
            found.append(
                ReplicationOp(
                    Kind.TRUNCATE if emptied else Kind.INSERT,
                    ITEM,
                    self.lsn,
                    (1 << 32) if emptied else (2 << 32) + index,
                    new=None if emptied else [str(key)],
                    partitions=PARTITIONS if emptied else 0,
                    snapshot=True,
                )
            )
        return found


KEYS = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, -1]), min_size=1, max_size=5)
ROWS: st.SearchStrategy[list[int]] = st.one_of(
    st.just([]),
    st.lists(st.integers(0, 5), max_size=4),
    st.lists(st.integers(0, 5), max_size=4).map(lambda rows: [-1, *rows]),
)


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    found = []
    for number in range(draw(st.integers(1, 7))):
        keys = draw(KEYS)
        found.append(Step((number + 1) * 10, tuple(keys), tuple(draw(ROWS))))
    return found


def places_of(op: ReplicationOp, shift: int) -> list[int]:
    if op.kind is Kind.TRUNCATE:
        return [*range(PARTITIONS)]
    assert op.new is not None
    return [(int(str(op.new[0])) + shift) % PARTITIONS]


def send(
    sent: Sent, steps: list[Step], lost: dict[int, int], shift: int, marks: set[int]
) -> int:
    """Send steps; of each partition, what comes after `lost` records did not arrive.

    The transaction topic is partition -1 here. Return how many steps arrived whole.
    """
    begun = {number: len(lane) for number, lane in enumerate(sent.lanes)}
    begun[-1] = len(sent.told)
    whole = 0
    for step in steps:
        counts: Counter[Place] = Counter()
        for op in step.ops():
            for number in places_of(op, shift):
                counts[Place(TOPIC, number)] += 1
                sent.put(number, op)
        told = ToldTransaction(step.lsn, step.lsn + 5, step.lsn, step.lsn, dict(counts))
        sent.tell(told)
        for op in step.backfilled():  # its attempts have one partitioning
            for number in places_of(op, 0):
                sent.put(number, op)
        if step.lsn in marks and not lost:
            ends = {Place(TOPIC, n): len(one) for n, one in enumerate(sent.lanes)}
            sent.tell(ResolvedMark(step.lsn + 1, ends))
        reached = {number: len(lane) for number, lane in enumerate(sent.lanes)}
        reached[-1] = len(sent.told)
        whole += all(reached[n] - begun[n] <= kept for n, kept in lost.items())
    for number, kept in lost.items():
        sent.drop(number, begun[number] + kept)
    return whole


@st.composite
def topics(draw: st.DrawFn) -> tuple[list[Step], Sent]:
    """Draw what was sent, through crashes: what was not delivered comes again.

    A step is done with when all of it arrived; a replay may begin at any one before.
    """
    found, sent = draw(steps()), Sent()
    marks = draw(st.sets(st.integers(1, 7).map(lambda number: number * 10)))
    first = 0
    for _ in range(draw(st.integers(0, 2))):
        last = draw(st.integers(first, len(found)))
        kept = {number: draw(st.integers(0, 12)) for number in range(-1, PARTITIONS)}
        shift = draw(st.sampled_from([0, 0, 1]))
        whole = send(sent, found[first:last], kept, shift, marks)
        event(f"a crash, {'some' if whole else 'no'} step whole")
        first = draw(st.integers(0, first + whole))
    send(sent, found[first:], {}, draw(st.sampled_from([0, 0, 1])), marks)
    return found, sent


@dataclass
class State:
    """What a reader stores with what it handled."""

    position: int = 0
    told: int = 0
    offsets: dict[Place, int] = field(default_factory=dict)
    chunks: dict[tuple[Place, SnapshotChunk], int] = field(default_factory=dict)


class Reader:
    """A reader of the model; `handled` is what its application wrote."""

    def __init__(self, sent: Sent, memory: int) -> None:
        self.sent, self.memory = sent, memory
        self.lacks = None in sent.told or any(None in lane for lane in sent.lanes)
        self.state = State()
        self.handled: list[tuple[int, bool, list[Name]]] = []
        self.now = 0  # what came later is not there yet
        self.begin()

    def begin(self) -> None:
        self.piles = Piles(
            self.memory, lambda record: Op(decode(record.value or b""), record)
        )
        self.assembler = TransactionAssembler(
            self.piles,
            lambda topic: topic == TOPIC,
            lambda place, chunk: self.state.chunks.get((place, chunk), -1),
            position=self.state.position,
        )
        self.assembler.pass_told(self.state.told)
        for number in range(PARTITIONS):
            place = Place(TOPIC, number)
            offset = self.state.offsets.get(place, 0)
            self.assembler.lanes[place] = Lane(place, offset)
        self.doubted: tuple[Gap, int] | None = None

    def end(self, number: int) -> int:
        return bisect_right(self.sent.times[number], self.now)

    def read(self, number: int) -> bool:
        if number < 0:
            offset = self.assembler.spine.next_offset
            if offset >= self.end(-1):
                return False
            told = self.sent.told[offset]
            if isinstance(told, ResolvedMark):
                self.assembler.mark(told, offset)
            elif told is not None:
                self.assembler.tell(told, offset)
            else:
                self.assembler.pass_told(offset + 1)
            return True
        lane = self.assembler.lanes[Place(TOPIC, number)]
        if lane.next_offset >= self.end(number):
            return False
        offset = lane.next_offset
        op = self.sent.lanes[number][offset]
        if op is None:
            self.assembler.pass_over(lane.place, offset + 1)
        else:
            assert self.assembler.take(op)
        return True

    def ask(self) -> None:
        serial = self.assembler.ask()
        ends = {Place(TOPIC, number): self.end(number) for number in range(PARTITIONS)}
        ends[self.assembler.spine.place] = self.end(-1)
        self.assembler.answer(serial, ends)

    def handle(self, *, store_offsets: bool) -> bool:
        due = self.assembler.next()
        if due is None:
            return False
        whole = due.whole
        names = [(op.lsn, op.seq_id) for op in whole.ops]
        assert len(names) == len(whole.ops)
        self.handled.append((whole.lsn, whole.snapshot, names))
        if not whole.snapshot:
            self.state.position = whole.lsn
        for place, chunks in due.chunks.items():
            for chunk, index in chunks.items():
                self.state.chunks[place, chunk] = index
        self.assembler.done(due)
        if store_offsets:
            self.store()
        return True

    def store(self) -> None:
        self.state.told = self.assembler.resume_told
        self.state.offsets = {
            place: lane.resume for place, lane in self.assembler.lanes.items()
        }

    def look_for_gap(self) -> None:
        """Doubt what looks like a gap as a reader does; none is one where all is."""
        if self.lacks:
            return
        gap = self.assembler.gap()
        if gap is None or (self.doubted is not None and self.doubted[0] != gap):
            self.doubted = None
        elif self.doubted is None:
            self.doubted = gap, self.assembler.doubt()
        else:
            assert not self.assembler.is_final(self.doubted[1]), gap

    def idle(self) -> set[int]:
        """Name what a reader leaves unread, since enough waits already."""
        idle = set[int]()
        if self.assembler.bytes > self.memory:
            needed = {place.partition for place in self.assembler.needed()}
            idle = {*range(PARTITIONS)} - needed
        with patch("consumer.whole.assembler._AHEAD", 2):
            return idle | {-1} if self.assembler.is_told_ahead else idle

    def to_the_end(self) -> None:
        self.now = self.sent.now
        while True:
            idle = self.idle()
            read = [
                self.read(number)
                for number in range(-1, PARTITIONS)
                if number not in idle
            ]
            self.ask()
            handled = len(self.handled)
            while self.handle(store_offsets=True):
                pass
            if not any(read) and len(self.handled) == handled:
                return


@settings(deadline=None, max_examples=300)
@given(given_topics=topics(), data=st.data())
def test_transactions_are_whole_once_and_in_order(
    given_topics: tuple[list[Step], Sent], data: st.DataObject
) -> None:
    steps, sent = given_topics
    reader = Reader(sent, data.draw(st.sampled_from([1 << 20, 1, 3000])))
    roam(reader, data)
    reader.to_the_end()
    agree(steps, reader.handled)
    assert reader.assembler.gap() is None
    assert reader.assembler.bytes == 0


def roam(reader: Reader, data: st.DataObject) -> None:
    """Read in any order, ask, handle, and be killed."""
    whats = ["read"] * 8 + ["ask", "handle", "grow"] * 2 + ["kill"]
    reader.now = data.draw(st.integers(0, reader.sent.now))
    for _ in range(data.draw(st.integers(0, 60))):
        what = data.draw(st.sampled_from(whats))
        if what == "read":
            reader.read(data.draw(st.integers(-1, PARTITIONS - 1)))
        elif what == "ask":
            reader.ask()
        elif what == "grow":
            reader.now += data.draw(st.integers(1, 4))
        elif what == "handle":
            reader.handle(store_offsets=data.draw(st.booleans()))
        else:
            reader.piles.close()
            reader.begin()
        reader.look_for_gap()


@settings(deadline=None, max_examples=300)
@given(found=steps(), shift=st.integers(0, 1), data=st.data())
def test_a_transaction_that_lacks_something_is_never_handled(
    found: list[Step], shift: int, data: st.DataObject
) -> None:
    """Retention or compaction took a record before it was read."""
    sent = Sent()
    send(sent, found, {}, shift, set())
    end = Step((len(found) + 1) * 10, (-1,))  # each partition shows something later
    send(sent, [end], {}, shift, set())
    number = data.draw(st.integers(-1, PARTITIONS - 1))
    gone: list[Op | None] | list[ToldTransaction | ResolvedMark | None]
    gone = sent.told if number < 0 else sent.lanes[number]
    at = data.draw(st.integers(0, len(gone) - 1))
    taken = gone[at]
    gone[at] = None
    reader = Reader(sent, 1 << 20)
    roam(reader, data)
    reader.to_the_end()
    assert isinstance(taken, Op | ToldTransaction)
    lsns = [lsn for lsn, snapshot, _ in reader.handled if not snapshot]
    if isinstance(taken, Op) and taken.snapshot:
        if taken.kind is Kind.TRUNCATE:  # what comes after it would be wrong
            assert max(lsns) == taken.lsn
        return  # nothing counts a row
    assert lsns == [step.lsn for step in [*found, end] if step.lsn < taken.lsn]
    if taken.lsn < end.lsn:
        gap = reader.assembler.gap()
        assert gap is not None
        assert gap.lsn == taken.lsn


def agree(steps: list[Step], handled: list[tuple[int, bool, list[Name]]]) -> None:
    """Claim that it is what the source did."""
    transactions = [(lsn, names) for lsn, snapshot, names in handled if not snapshot]
    assert transactions == [
        (step.lsn, [(op.lsn, op.seq_id) for op in step.ops()]) for step in steps
    ]
    rows: dict[int, list[Name]] = defaultdict(list)
    passed = 0
    for lsn, snapshot, names in handled:
        if snapshot:
            assert passed == lsn, "behind its transactions, and before the next"
            rows[lsn] += names
        else:
            passed = lsn
    for step in steps:
        wanted = [(op.lsn, op.seq_id) for op in step.backfilled()]
        assert sorted(rows[step.lsn]) == wanted
        if wanted and step.rows[0] < 0:
            assert rows[step.lsn][0] == wanted[0], "the Truncate comes first"
