"""The basic consumer: each op at least once.

An offset is stored after its op was handled, so that a crash repeats the last ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Message

from consumer.backoff import Backoff
from consumer.blame import handler_failed
from consumer.group import Member
from consumer.handler import (
    BasicApplication,
    BasicHandler,
    Retry,
    basic_handler,
)
from consumer.lane import Lane
from consumer.metrics import Measure, Metrics, unmeasured
from consumer.op import Op, Record
from consumer.poison import OnPoison, checked, meet
from consumer.reading import op_of, record_of
from walstream.errors import WalstreamError


class BasicConsumer(Member):
    """Hands each op of the topics to the application, at least once.

        with BasicConsumer(app, group="g", topics=["orders"],
                           kafka={"bootstrap.servers": "localhost:9092"}) as consumer:
            consumer.run()

    Partitions are handled concurrently, by a thread each; in one, in order. A TRUNCATE
    comes once for each partition of its topic, since nothing here knows of the others:
    a row of another partition may be handled before or after.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        app: BasicApplication | BasicHandler,
        *,
        group: str,
        topics: Sequence[str] | str,
        kafka: Mapping[str, Any],
        on_poison: OnPoison = "stop",
        metrics: Metrics = unmeasured,
        stop_timeout: float = 30.0,
    ) -> None:
        """`kafka` takes librdkafka's properties; `stop_timeout` is in seconds."""
        super().__init__(
            group=group, topics=topics, kafka=kafka, stop_timeout=stop_timeout
        )
        self._options = BasicOptions(basic_handler(app), checked(on_poison), metrics)

    def _work(self, lane: Lane) -> "BasicWork":
        return BasicWork(lane, self._options)


@dataclass(frozen=True, slots=True)
class BasicOptions:
    handler: Callable[[Op], object]
    on_poison: OnPoison
    metrics: Metrics


class BasicWork:
    """One partition of a basic consumer."""

    wanted = 1  # chunk by chunk

    def __init__(self, lane: Lane, options: BasicOptions) -> None:
        self._lane = lane
        self._options = options
        self._backoff = Backoff()

    def begin(self) -> None:
        """Nothing is kept here."""

    def rest(self) -> None:
        """Nothing waits to be done."""

    def end(self) -> None:
        """Nothing is held."""

    def handle(self, messages: list[Message]) -> None:
        lane, handler = self._lane, self._options.handler
        place = lane.place
        handled = skipped = 0
        try:
            for message in messages:
                record = record_of(message, place)
                op = self._op(record)
                if op is None:
                    skipped += 1
                else:
                    try:
                        handler(op)
                    except BaseException as error:  # noqa: BLE001 - anything of theirs
                        if not self._again(op, error):
                            return
                    handled += 1
                lane.handled = record.offset + 1
                if lane.stopping:
                    return
        finally:
            self._count(Measure.HANDLED, handled)
            self._count(Measure.SKIPPED, skipped)

    def _op(self, record: Record) -> Op | None:
        """Decode; None for what is passed over."""
        if record.value is None:
            return None
        try:
            return op_of(record)
        except WalstreamError as error:
            self._count(Measure.POISON, 1)
            meet(self._options.on_poison, record, error)
            return None

    def _again(self, op: Op, error: BaseException) -> bool:
        """Try until it is handled, and tell; False when told to stop before."""
        self._backoff.reset()
        while isinstance(error, Retry):
            self._count(Measure.RETRIED, 1)
            self._lane.sleep(self._backoff.next())
            if self._lane.stopping:
                return False
            try:
                self._options.handler(op)
            except BaseException as next_error:  # noqa: BLE001 - likewise
                error = next_error
            else:
                return True
        raise handler_failed(op, error)

    def _count(self, measure: Measure, value: int) -> None:
        if value:
            self._options.metrics(measure, value, *self._lane.place)
