"""No offset is stored below which some sink has not delivered."""

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
)

from walstream.sources.kafka.offset_ledger import Offsets, Portion
from walstream.sources.kafka.offset_metadata import OffsetMetadata


class AnyInterleaving(RuleBasedStateMachine):
    """The model: each record's offset, with the deliveries that it still waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets = Offsets()
        self.portion: Portion | None = None
        self.next = 0
        self.waiting: list[tuple[int, Portion]] = []  # a delivery each
        self.sent: list[int] = []
        self.reached = 0
        self.passed = 0

    @rule(gap=st.integers(0, 3))
    def begin(self, gap: int) -> None:
        self.next += gap  # of what was compacted away
        self.portion = self.offsets.begin(self.next)

    @precondition(lambda self: self.portion is not None)
    @rule(sinks=st.integers(0, 3), gap=st.integers(0, 2))
    def send(self, sinks: int, gap: int) -> None:
        """Send to some sinks; to none is a record that was dropped."""
        assert self.portion is not None
        self.next += gap
        for _ in range(sinks):
            self.portion.undelivered += 1
            self.waiting.append((self.next, self.portion))
        self.offsets.sent(self.portion, self.next, OffsetMetadata("t", str(self.next)))
        self.sent.append(self.next)
        self.next += 1

    @rule(markers=st.integers(0, 2))
    def pass_over(self, markers: int) -> None:
        """Markers of transactions come behind all that was sent."""
        self.next += markers
        self.passed = self.next
        self.offsets.pass_over(self.next)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.waiting) - 1))
        _, portion = self.waiting.pop(index)
        portion.undelivered -= 1

    @rule()
    def close(self) -> None:
        self.offsets.close()
        self.portion = None

    @invariant()
    def nothing_undelivered_lies_below(self) -> None:
        reached = self.offsets.advance()
        if reached is not None:
            assert all(offset >= reached for offset, _ in self.waiting)
            assert reached >= self.reached
            self.reached = reached
            done = [offset for offset in self.sent if offset < reached]
            if done and self.offsets.reached_note.source:
                assert int(self.offsets.reached_note.source) in {-1, *done}

    @invariant()
    def all_is_reached_when_all_is_delivered(self) -> None:
        if self.sent and not self.waiting:
            assert (self.offsets.advance() or 0) > self.sent[-1]
            assert (self.offsets.advance() or 0) >= self.passed
            assert not self.offsets.undelivered

    def teardown(self) -> None:
        while self.waiting:
            _, portion = self.waiting.pop()
            portion.undelivered -= 1
        self.offsets.advance()
        assert self.offsets.take_delivered() == len(self.sent)


TestAnyInterleaving = AnyInterleaving.TestCase
