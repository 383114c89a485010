"""The slowest lane decides; one may leave and come, and nothing is lost on the way."""

import pytest

from walstream.errors import HistoryError, Restart, Transient, WalstreamError
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.ports import Sink
from walstream.pipeline.reattach import JoiningSink
from walstream.testing import Delivery, MemorySink, Reject, faulty

TABLE = Table("public", "t", ("id",), key=(0,))
DETACH_S = 10.0


def op(lsn: int, seq_id: int = 0) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, new=[str(seq_id)])


class Membership:
    """Lets all leave; who comes is said by the test."""

    def __init__(self) -> None:
        self.released: list[tuple[Sink, int, str]] = []
        self.copied = False
        self.coming: Sink | None = None
        self.whole = True

    def release(self, sink: Sink, resume: int, why: str) -> None:
        self.released.append((sink, resume, why))

    def gone(self, sink: Sink) -> bool:
        del sink
        return self.copied

    def arriving(self, place: int) -> Sink | None:
        del place
        coming, self.coming = self.coming, None
        return coming


class Stream:
    """Lanes that are driven as the loop does."""

    def __init__(self, *sinks: Sink) -> None:
        self.now = 0.0
        self.members = Membership()
        self.lanes = Fanout(sinks, 100, lambda: self.now)
        self.lanes.share(self.members, DETACH_S)
        self.place = 100

    def transact(self, rows: int = 1) -> None:
        self.lanes.begin(self.place)
        for seq_id in range(rows):
            self.lanes.send(op(self.place, seq_id))
        self.place += 100
        self.lanes.commit(self.place, rows)

    def look(self, after_s: float = 1.0) -> None:
        self.now += after_s
        self.lanes.ready()
        self.lanes.look(self.place, 0)


def held() -> MemorySink:
    return MemorySink(delivery=Delivery.ON_COMMAND)


def names(sink: MemorySink) -> list[tuple[int, int]]:
    return [record.name for record in sink.sent]


def test_the_slowest_sink_decides_the_position() -> None:
    fast, slow = MemorySink(), held()
    stream = Stream(fast, slow)
    stream.transact()
    assert stream.lanes.advance() == 100
    assert (stream.lanes.undelivered, stream.lanes.delivered_ops) == (1, 0)
    slow.deliver_all()
    assert stream.lanes.advance() == 200
    assert stream.lanes.idle


def test_a_sink_that_fails_for_good_holds_the_position_until_it_is_gone() -> None:
    error = HistoryError("refused")
    good, bad = MemorySink(), MemorySink()
    failing = faulty(bad, send=[None, Reject(error)])
    stream = Stream(failing, good)
    stream.transact()
    stream.transact(3)
    assert names(good) == [(100, 0), (200, 0), (200, 1), (200, 2)]
    assert stream.members.released == [(failing, 200, "refused")]
    assert stream.lanes.advance() == 200
    assert stream.lanes.sinks == [good]
    stream.members.copied = True
    stream.look()
    assert stream.lanes.advance() == 300


@pytest.mark.parametrize(
    ("sinks", "error"),
    [(1, HistoryError("refused")), (2, Transient("away for a moment"))],
)
def test_a_lone_sink_and_a_failure_that_passes_end_the_stream(
    sinks: int, error: WalstreamError
) -> None:
    failing = faulty(MemorySink(), ready=[Reject(error)])
    stream = Stream(failing, *(MemorySink() for _ in range(sinks - 1)))
    with pytest.raises(type(error)):
        stream.lanes.ready()


def test_the_last_one_left_is_not_let_go() -> None:
    error = HistoryError("refused")
    one, other = (faulty(MemorySink(), ready=[None, Reject(error)]) for _ in range(2))
    stream = Stream(one, other)
    stream.lanes.ready()
    with pytest.raises(HistoryError):
        stream.lanes.ready()
    assert len(stream.members.released) == 1


def test_a_sink_that_lags_too_long_is_let_go_with_what_it_got() -> None:
    fast, slow = MemorySink(), held()
    stream = Stream(fast, slow)
    stream.transact()
    slow.deliver_all()
    for _ in range(12):
        stream.transact()
        stream.look()
    ((sink, resume, why),) = stream.members.released
    assert (sink, resume) == (slow, 200)
    assert "behind" in why
    assert len(names(fast)) == 13


class Other:
    """The worker that sent to a sink while it was away."""

    def __init__(self) -> None:
        self.ended: int | None = None
        self.too_late = False

    def joining(self, sink: Sink) -> JoiningSink:
        return JoiningSink(sink, lambda: self.ended, lambda _error: not self.too_late)


def joined(stream: Stream, *, ended: int) -> MemorySink:
    """Have a sink come back that its other worker got as far as `ended`."""
    other, sink = Other(), MemorySink()
    stream.members.coming = other.joining(sink)
    stream.look()
    stream.transact()
    stream.transact()
    assert names(sink) == []
    other.ended = ended
    stream.look()
    return sink


@pytest.mark.parametrize(("ended", "first"), [(200, 200), (250, 300), (300, 300)])
def test_a_sink_that_comes_back_gets_what_its_other_worker_did_not_deliver(
    ended: int, first: int
) -> None:
    stream = Stream(MemorySink())
    stream.transact()
    sink = joined(stream, ended=ended)
    stream.transact()
    assert names(sink) == [(lsn, 0) for lsn in range(first, 500, 100)]
    assert sink in stream.lanes.sinks  # itself: nothing stands before it
    assert stream.lanes.advance() == 500


def test_a_sink_on_its_way_back_holds_the_position() -> None:
    stream = Stream(MemorySink())
    stream.members.coming = Other().joining(MemorySink())
    stream.look()
    stream.transact()
    assert stream.lanes.advance() == 100
    stream.lanes.close()  # a drain begins: it stays where it is
    assert stream.lanes.advance() == 200


def test_one_that_nobody_else_sends_to_any_more_is_not_left_behind() -> None:
    stream, other, sink = Stream(MemorySink()), Other(), MemorySink()
    stream.members.coming = other.joining(sink)
    stream.look()
    stream.transact()
    other.too_late = True
    other.ended = 100
    stream.lanes.close()
    stream.lanes.ready()
    assert names(sink) == [(100, 0)]


def test_one_that_cannot_come_back_costs_the_others_nothing() -> None:
    def ended() -> int | None:
        raise Transient("its worker did not catch up")

    heard: list[WalstreamError | None] = []

    def given_up(error: WalstreamError | None) -> bool:
        heard.append(error)
        return True

    first, back = MemorySink(), MemorySink()
    stream = Stream(first)
    stream.members.coming = JoiningSink(back, ended, given_up)
    stream.look()
    stream.transact()
    assert stream.lanes.ready()
    assert stream.lanes.sinks == [first]
    assert stream.lanes.advance() == 200
    assert len(heard) == 1
    assert back.closed


class Resolving(MemorySink):
    """Sink that notes how far it is told to be."""

    def __init__(self) -> None:
        super().__init__(delivery=Delivery.ON_COMMAND)
        self.resolved: list[int] = []

    def resolve(self, lsn: int) -> None:
        self.resolved.append(lsn)


def test_each_sink_hears_of_its_own_position_once() -> None:
    slow, quick = Resolving(), Resolving()
    stream = Stream(slow, quick)
    stream.transact()
    quick.deliver_all()
    for _ in range(2):
        assert stream.lanes.advance() == 100
    assert (slow.resolved, quick.resolved) == ([100], [200])
    slow.deliver_all()
    assert stream.lanes.advance() == 200
    assert slow.resolved == [100, 200]


def test_one_that_comes_back_hears_of_it_when_it_is_back() -> None:
    stream, back = Stream(MemorySink()), Resolving()
    ended: list[int] = []
    stream.members.coming = JoiningSink(
        back, lambda: ended[0] if ended else None, lambda _: True
    )
    stream.look()
    stream.transact()
    stream.lanes.ready()
    stream.lanes.advance()
    assert back.resolved == []
    ended.append(100)
    stream.lanes.ready()
    stream.lanes.advance()
    back.deliver_all()
    stream.lanes.advance()
    assert back.resolved == [100, 200]


class Proving(Resolving):
    """Sink that left records out from an LSN on."""

    def __init__(self, first: int | None) -> None:
        super().__init__()
        self.first = first  # None: it met the last one
        self.failure: WalstreamError | None = None

    def proven(self, resume: int) -> int:
        if self.failure is not None:
            raise self.failure
        return resume if self.first is None else min(resume, self.first)


def test_the_position_waits_until_what_is_left_out_is_met() -> None:
    sink, other = Proving(200), MemorySink()
    stream = Stream(sink, other)
    for whole in (True, False, False):
        stream.transact()
        sink.deliver_all()
        assert stream.lanes.advance() == 200
        assert stream.lanes.proven is whole
    assert sink.resolved == [200]
    sink.first = None
    assert stream.lanes.proven
    assert stream.lanes.advance() == 400
    assert sink.resolved == [200, 400]


def test_what_is_left_out_of_another_history_begins_the_stream_again() -> None:
    sink = Proving(None)
    stream = Stream(sink)
    stream.transact()
    sink.deliver_all()
    sink.failure = Restart("the last record is another one")
    with pytest.raises(Restart):
        stream.lanes.advance()
    assert sink.resolved == []


def test_one_that_leaves_does_so_before_what_is_not_met() -> None:
    """Its own worker has to come by what was left out."""
    fast, slow = MemorySink(), Proving(200)
    stream = Stream(fast, slow)
    for _ in range(2):
        stream.transact()
        slow.deliver_all()
        assert stream.lanes.advance() == 200
    for _ in range(12):
        stream.transact()
        stream.look()
    ((sink, resume, _why),) = stream.members.released
    assert (sink, resume) == (slow, 200)


def test_one_that_comes_back_hears_of_what_was_delivered_before_that() -> None:
    back = Resolving()
    stream = Stream(MemorySink())
    ended: list[int] = []
    stream.members.coming = JoiningSink(
        back, lambda: ended[0] if ended else None, lambda _: True
    )
    stream.look()
    ended.append(400)
    for _ in range(2):
        stream.transact()
        stream.lanes.ready()
        assert stream.lanes.advance() == stream.place
    assert back.resolved == []
    stream.transact()
    stream.look()
    stream.lanes.ready()
    stream.lanes.advance()
    assert back.resolved == [400]
