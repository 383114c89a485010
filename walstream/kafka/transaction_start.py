"""The start of a producer of Kafka transactions: what was before it is over."""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.fencing import successor
from walstream.kafka.offsets import Partition
from walstream.kafka.open_transaction import OpenTransactions
from walstream.kafka.position_reader import read_position
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.transaction_plan import PositionBook
from walstream.kafka.unmarked_record import Name, UnmarkedRecords

_Where = tuple[ClientProperties, str, bytes, Callable[[], bool]]
_BRIEFER_S: Final = 1.0
_BRIEF_S: Final = 3.0  # a position is the last record of a transaction: it ends soon


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
            unmarked.keep(_of_ops(written(), plan.topic), lambda: self._covered(where))
        others = [successor(self._given, name) for name in plan.others]
        for other in others:
            coordinator.answered("fencing", other.init_transactions)
        begin = self._producer.init_transactions
        coordinator.answered("beginning transactions", begin)
        producers = [self._producer, *others]
        longest_s = plan.timeout_ms / 1000
        still_open = OpenTransactions(producers, self._client, coordinator, longest_s)
        there = book.is_delivered
        try:
            found = read_position(*where, _BRIEF_S)
        except Transient:
            # else nothing is open there, which costs no question
            still_open.end_position(plan.topic, plan.key, there)
            found = read_position(*where, is_delivered=there)
        still_open.end_ops(_of_ops(written(), plan.topic), book.covered(found))
        unmarked.send_lost(self._producer)
        self.leaderless = still_open.leaderless
        coordinator.was_late = False  # from here on it is asked for commits
        return found

    def _covered(self, where: _Where) -> Name:
        """Return up to which op all was delivered before, as far as it is known."""
        try:
            return self._book.covered(read_position(*where, _BRIEFER_S))
        except WalstreamError:
            return self._book.covered(None)


def _of_ops(written: Mapping[str, int], positions: str) -> dict[str, int]:
    return {name: count for name, count in written.items() if name != positions}
