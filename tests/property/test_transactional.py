"""Whatever Kafka's transactions have when a process ends, each op is there once."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from walstream.errors import Restart
from walstream.kafka.replay_mark import REPLAY, ReplayMark
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transaction_position import (
    DeliveredTransactions,
    HistoryPlace,
)
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Counted, Ledger, Transaction
from walstream.telemetry.meter import SinkMeter

_TABLE = Table("public", "t", ("id",))
_AT_TIMES = st.integers(0, 2).map(lambda drawn: drawn == 2)
Committed = tuple[int, int, int]  # LSN, commit time, ops


@dataclass
class Kafka:
    """What is committed: ops, and the position."""

    ops: list[tuple[int, int, int]] = field(default_factory=list)
    position: bytes | None = None


@dataclass
class State:
    """What the state folder has."""

    resume: int = 0
    replay: ReplayMark | None = None


class Process:
    """One life: sends ops, and commits Kafka's transactions."""

    def __init__(self, kafka: Kafka, state: State, flush: int) -> None:
        self.kafka = kafka
        self.state = state
        plan = TransactionPlan("id", (), "p", 0.1, 1)
        place = HistoryPlace(
            "o", state.resume, flush, repeats=True, replay=state.replay
        )
        self.delivered = DeliveredTransactions(
            "k", plan, place, SinkMeter(), self.disown
        )
        self.delivered.open(kafka.position)
        self.ledger = Ledger(state.resume)
        self.open: list[tuple[int, int, int]] = []
        self.shares: dict[Counted, int] = {}
        self.held: list[tuple[ReplicationOp, Transaction, bool]] = []

    def disown(self) -> None:
        self.state.replay = ReplayMark(f"{len(self.kafka.ops)}")
        assert REPLAY.name == "replay"

    def stream(self, source: list[Committed], choose: st.DataObject) -> bool:
        """Send all from the position on; False: it was killed meanwhile."""
        for lsn, time, count in source:
            if lsn < self.state.resume:
                continue
            transaction = self.ledger.begin(lsn, time)
            for seq in range(count):
                op = ReplicationOp(Kind.INSERT, _TABLE, lsn, seq, commit_time=time)
                self.send(op, transaction, waits=choose.draw(_AT_TIMES))
                if seq + 1 < count and choose.draw(st.integers(0, 9)) == 0:
                    self.commit(whole=False)
                    if choose.draw(st.booleans()):
                        return False
            self.ledger.commit(lsn + 1, count)
            act = choose.draw(st.sampled_from(["commit", "store", "kill", "go", "go"]))
            if act in {"commit", "store"}:
                self.commit(whole=True)
            if act == "store":
                self.store()
            if act == "kill":
                return False
        self.commit(whole=True)
        self.store()
        return True

    def send(self, op: ReplicationOp, transaction: Transaction, *, waits: bool) -> None:
        """Hold an op; of one that `waits` for its topic it is asked later."""
        if waits:
            self.delivered.waiting += 1
        elif self.delivered.has(op, transaction):
            return
        transaction.undelivered += 1
        self.held.append((op, transaction, waits))

    def flush(self) -> None:
        """Send what is held: all topics are known."""
        held, self.held = self.held, []
        for op, transaction, waits in held:
            self.delivered.waiting -= waits
            is_there = waits and self.delivered.has(op, transaction)
            if is_there:
                transaction.undelivered -= 1
                continue
            self.shares[transaction] = self.shares.get(transaction, 0) + 1
            self.open.append((op.lsn, op.seq_id, op.commit_time))

    def commit(self, *, whole: bool) -> None:
        self.flush()
        position = self.delivered.position(self.shares, whole=whole)
        self.kafka.ops += self.open
        if position is not None:
            self.kafka.position = position
        for transaction, count in self.shares.items():
            transaction.undelivered -= count
        self.open, self.shares = [], {}

    def store(self) -> None:
        self.state.resume = max(
            self.state.resume, self.delivered.proven(self.ledger.advance())
        )


def history(start: int, tag: int) -> st.SearchStrategy[list[Committed]]:
    """Draw transactions; `tag` tells them from those of another history."""

    def made(steps: list[tuple[int, int]]) -> list[Committed]:
        found, lsn = [], start
        for step, count in steps:
            lsn += step
            found.append((lsn, lsn * 10 + tag, count))
        return found

    step = st.tuples(st.integers(2, 4), st.integers(1, 5))
    return st.lists(step, min_size=1, max_size=8).map(made)


def expected(source: list[Committed]) -> list[tuple[int, int, int]]:
    return [(lsn, seq, time) for lsn, time, count in source for seq in range(count)]


@given(history(0, 0), st.data())
def test_each_op_is_there_once_in_order(
    source: list[Committed], choose: st.DataObject
) -> None:
    kafka, state, flush = Kafka(), State(), source[-1][0] + 1
    for _ in range(6):
        if Process(kafka, state, flush).stream(source, choose):
            break
        if choose.draw(st.integers(0, 5)) == 0:
            state.resume = 0  # the state folder is an old one
    while not Process(kafka, state, flush).stream(source, choose):
        pass
    assert kafka.ops == expected(source)


@given(history(0, 0), st.data())
def test_of_a_server_that_was_set_back_nothing_is_left_out(
    source: list[Committed], choose: st.DataObject
) -> None:
    """It has other transactions from some point on, under the same LSNs or others."""
    kafka, state, flush = Kafka(), State(), source[-1][0] + 1
    Process(kafka, state, flush).stream(source, choose)
    kept = choose.draw(st.integers(0, len(source) - 1))
    state.resume = min(state.resume, source[kept][0])
    begin = max(source[kept - 1][0] if kept else 0, state.resume - 2)
    source = source[:kept] + choose.draw(history(begin, 1))
    flush = source[-1][0] + 1
    for _ in range(30):
        try:
            if Process(kafka, state, flush).stream(source, choose):
                break
        except Restart:
            continue
    else:
        return  # it was killed all the time
    assert set(expected(source)) <= set(kafka.ops)
