"""The position never passes an undelivered record, whatever is delivered when."""

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from walstream.pipeline.ledger import Ledger, Transaction


class AnyInterleaving(RuleBasedStateMachine):
    """The model: every transaction ever seen, with what it still waits for."""

    @initialize(resume=st.integers(0, 1000))
    def start(self, resume: int) -> None:
        self.ledger = Ledger(resume)
        self.lsn = resume
        self.floor = resume  # of what was promised so far
        self.open: Transaction | None = None
        self.all: list[Transaction] = []
        self.keepalives = [resume]  # that may count

    @precondition(lambda self: self.open is None)
    @rule(gap=st.integers(0, 5))
    def begin(self, gap: int) -> None:
        self.lsn += gap
        self.open = self.ledger.begin(self.lsn)
        self.all.append(self.open)

    @precondition(lambda self: self.open is not None)
    @rule(records=st.integers(1, 3))
    def send(self, records: int) -> None:
        assert self.open is not None
        self.open.undelivered += records

    @precondition(lambda self: self.open is not None)
    @rule(length=st.integers(1, 5))
    def commit(self, length: int) -> None:
        self.lsn += length
        self.ledger.commit(self.lsn)
        self.open = None

    @precondition(lambda self: any(one.undelivered for one in self.all))
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        waiting = [one for one in self.all if one.undelivered]
        data.draw(st.sampled_from(waiting)).undelivered -= 1

    @rule(gap=st.integers(-3, 5))
    def keepalive(self, gap: int) -> None:
        quiet = self.open is None and not any(one.undelivered for one in self.all)
        wal_end = max(0, self.lsn + gap)
        if quiet:
            self.lsn = max(self.lsn, wal_end)  # the server sends nothing below it
            self.keepalives.append(wal_end)
        self.ledger.keepalive(wal_end)

    @invariant()
    def position_is_the_last_before_anything_undelivered(self) -> None:
        whole = []
        for one in self.all:
            if one.undelivered or one.end_lsn is None:
                break
            whole.append(one.end_lsn)
        promised = self.ledger.advance()
        assert promised == max([*whole, *self.keepalives])
        assert promised >= self.floor
        self.floor = promised

    @invariant()
    def what_is_left_is_counted(self) -> None:
        self.ledger.advance()
        assert self.ledger.undelivered == sum(one.undelivered for one in self.all)
        assert self.ledger.idle == (
            self.open is None and not any(one.undelivered for one in self.all)
        )


TestAnyInterleaving = AnyInterleaving.TestCase
