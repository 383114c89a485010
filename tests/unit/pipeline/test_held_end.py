"""An end that is held is heard once, whenever the commit was read."""

from walstream.lsn import Lsn
from walstream.pipeline.held_end import HeldEnd
from walstream.pipeline.ledger import Ledger, Transaction


class Rig:
    def __init__(self) -> None:
        self.heard: list[Lsn] = []
        self.held = HeldEnd()
        self.ledger = Ledger(0)
        self.transaction = self.ledger.begin(8)
        self.transaction.at_end = (self.hear,)
        self.transaction.undelivered = 1

    def hear(self, transaction: Transaction, end_lsn: Lsn) -> None:
        assert transaction is self.transaction
        self.heard.append(end_lsn)


def test_a_commit_that_was_read_is_heard_when_it_is_let_go() -> None:
    rig = Rig()
    rig.held.take(rig.transaction)
    rig.ledger.commit(9)
    assert rig.heard == []
    rig.held.let_go(rig.transaction)
    rig.held.let_go(rig.transaction)
    assert rig.heard == [9]


def test_one_that_is_read_later_is_heard_then() -> None:
    rig = Rig()
    rig.held.take(rig.transaction)
    rig.held.let_go(rig.transaction)
    rig.held.take(rig.transaction)
    rig.held.let_go(rig.transaction)
    assert rig.heard == []
    rig.ledger.commit(9)
    assert rig.heard == [9]
