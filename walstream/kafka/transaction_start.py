"""The start of a producer of Kafka transactions: what was before it is over."""

from collections.abc import Callable, Mapping
from typing import Final

import structlog
from confluent_kafka import Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.errors import ProducerLost
from walstream.kafka.fencing import successor
from walstream.kafka.offsets import Partition
from walstream.kafka.open_transaction import OpenTransactions
from walstream.kafka.position_reader import PositionHidden, read_position
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.transaction_plan import PositionBook
from walstream.kafka.unmarked_record import Name, UnmarkedRecords
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

_Where = tuple[ClientProperties, str, bytes, Callable[[], bool]]
# an expired transaction is aborted by a look that brokers take each 10 s:
# transaction.abort.timed.out.transaction.cleanup.interval.ms
_EXPIRY_S: Final = 15.0
_BRIEFER_S: Final = 1.0
_HIDDEN_S: Final = 5.0  # a position in an open transaction is hidden for longer
_AGAIN_S: Final = 0.5
_log = structlog.get_logger()
_BRIEF_S: Final = 3.0  # a position is the last record of a transaction: it ends soon
_REPEATED: Final = "the start of a sink is repeated: it keeps records that may be lost"


class TransactionStart:
    """Fences the producers before, ends what they have open, reads their position."""

    def __init__(
        self,
        producer: Producer,
        book: PositionBook,
        given: ClientProperties,
        client: ClientProperties,
    ) -> None:
        """`given` are the operator's properties, `client` a reader's."""
        self._producer = producer
        self._book = book
        self._given = given
        self._client = client
        self.leaderless: set[Partition] = set()  # nothing is known of what is there
        self._is_bound = False  # is only a bound known of what was delivered?

    def open(
        self,
        written: Callable[[], Mapping[str, int]],
        coordinator: TransactionCoordinator,
    ) -> bytes | None:
        """Return the last position that was committed; None: there is none.

        `written` tells the topics of stream ops, and their numbers of partitions; it is
        called once the producers before are fenced. Raises Transient once the
        `coordinator` is asked no more.
        """
        book, plan = self._book, self._book.plan
        unmarked = UnmarkedRecords(self._client, coordinator)
        where = self._client, plan.topic, plan.key, coordinator.is_stopped
        if book.repeats:  # else all that was open is of a stream that ended
            # where others write, too, nobody knows whose it is: theirs sends it again
            alone = {one: n for one, n in written().items() if book.is_alone(one)}
            unmarked.keep(_of_ops(alone, plan.topic), lambda: self._covered(where))
        others = [successor(self._given, name) for name in plan.others]
        for other in others:
            coordinator.answered("fencing", other.init_transactions)
        begin = self._producer.init_transactions
        coordinator.answered("beginning transactions", begin)
        producers = [self._producer, *others]
        still_open = OpenTransactions(
            producers, self._client, coordinator, self._longest_s
        )
        told = ""
        while True:
            try:
                if not self._is_bound:
                    # at once: who is stopped in what follows sends nothing again
                    unmarked.send_lost(self._producer)
                found = self._position(still_open, where)
                last = book.covered(found)
                if self._is_bound:
                    unmarked.drop_behind(last)
                    unmarked.send_lost(self._producer)
                still_open.end_ops(_of_ops(written(), plan.topic), last)
                unmarked.send_lost(self._producer)
            except WalstreamError as error:
                # another start would know nothing of what is kept
                passes = error.retryable and not isinstance(error, ProducerLost)
                if not (passes and unmarked.are_kept) or coordinator.is_stopped():
                    raise
                if (why := str(error.args[0])) != told:
                    _log.warning(_REPEATED, **{ERROR: why})
                told = why
                runtime.sleep(_AGAIN_S)
            else:
                self.leaderless = still_open.leaderless
                return found

    @property
    def _longest_s(self) -> float:
        """Seconds until Kafka has aborted what a producer like this one left."""
        return self._book.plan.timeout_ms / 1000 + _EXPIRY_S

    def _position(self, still_open: OpenTransactions, where: _Where) -> bytes | None:
        """Return the position, once nothing of this sink's hides it."""
        plan, there = self._book.plan, self._book.is_delivered
        try:
            return read_position(*where, _BRIEF_S)
        except Transient:
            # else nothing is open there, which costs no question
            still_open.end_position(plan.topic, plan.key, there)
            return self._read(where)

    def _read(self, where: _Where) -> bytes | None:
        """Return the position, also where another sink's transaction hides it.

        One that lives ends in time. Else nobody here can end it, and that sink may have
        nothing more to send: the stream begins at the state folder's position.
        """
        deadline = runtime.monotonic() + self._longest_s
        while True:
            try:
                return read_position(*where, is_delivered=self._book.is_delivered)
            except PositionHidden as error:
                if where[3]():
                    raise
                if runtime.monotonic() < deadline:
                    continue
                _log.warning(
                    "the position in Kafka is behind a transaction that Kafka left "
                    "open, and cannot be read: what is beyond the position in the "
                    "state folder may come again",
                    **{ERROR: str(error.args[0])},
                )
                return None

    def _covered(self, where: _Where) -> Name:
        """Return up to which op all was delivered before, at most.

        Waits for brokers: what is ended before they tell may be lost. Where the last
        position is in a transaction that is open, it is a bound: what is behind the one
        before may be delivered or not, which the end of that transaction tells.
        """
        began = runtime.monotonic()
        is_told = self._is_bound = False
        while True:
            try:
                return self._book.covered(read_position(*where, _BRIEFER_S))
            except Transient as error:
                if where[3]():
                    raise
                is_late = runtime.monotonic() > began + _HIDDEN_S
                if is_late and isinstance(error, PositionHidden):
                    break
                if is_late and not is_told:
                    is_told = True
                    _log.warning(
                        "the position in Kafka cannot be read: it is waited for",
                        **{ERROR: str(error.args[0])},
                    )
            runtime.sleep(_AGAIN_S)
        self._is_bound = True
        return self._book.covered(_as_written(where))


def _as_written(where: _Where) -> bytes | None:
    """Return the last position, committed or not."""
    return read_position(*where, _BRIEFER_S, is_delivered=lambda _value: True)


def _of_ops(written: Mapping[str, int], positions: str) -> dict[str, int]:
    return {name: count for name, count in written.items() if name != positions}
