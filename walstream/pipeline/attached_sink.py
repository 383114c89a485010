"""One sink of a stream: its ledger, its figures, and how far it goes."""

from walstream.lsn import Lsn
from walstream.pipeline.answer_time import AnswerTime
from walstream.pipeline.lag import SinkLag
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.pipeline.ports import Sink, proven, tell_delivered
from walstream.pipeline.reattach import JoiningSink
from walstream.telemetry.meter import SinkMeter


class AttachedSink:
    """One sink and its transactions in flight."""

    __slots__ = (
        "_answers",
        "_proven",
        "_told",
        "full",
        "ledger",
        "meter",
        "roomy",
        "sink",
        "transaction",
    )

    def __init__(
        self, sink: Sink, resume: Lsn, meter: SinkMeter, answers: AnswerTime
    ) -> None:
        self.sink = sink
        self.meter = meter
        self._answers = answers
        self.ledger = Ledger(resume, self._delivered)
        self.transaction: Transaction | None = None  # the open one
        self.full = False  # had no room at some time since the last look
        self.roomy = False  # had room at some time since then
        self._proven = resume
        self._told: Lsn = 0

    def _delivered(self, transaction: Transaction) -> None:
        # rows let in beside the stream are none of it: they count no ops
        if transaction.ops and transaction.table is not None:
            took_s = self.meter.deliver(
                transaction.ops,
                transaction.commit_time,
                transaction.began,
                transaction.table,
            )
            self._answers.observe(took_s)

    def advance(self) -> Lsn:
        """Return the position as far as this sink goes, and tell it to the sink.

        Raises Restart where what it left out is not there.
        """
        resume = self.ledger.advance()
        if resume != self._proven and proven(self.sink, resume) >= resume:
            self._proven = resume
        if self._proven != self._told and not isinstance(self.sink, JoiningSink):
            self._told = self._proven
            tell_delivered(self.sink, self._proven)
        return self._proven

    def sight(self) -> SinkLag:
        """Return its lag since the last call."""
        resume = self.ledger.advance()
        sight = SinkLag(resume, self.ledger.idle, self.full, self.roomy)
        self.full = self.roomy = False
        return sight
