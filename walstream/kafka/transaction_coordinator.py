"""The coordinator of a producer's transactions: whether it answers.

librdkafka asks again and again, and tells nobody: the broker of one coordinator may be
away while all others take records.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from confluent_kafka import KafkaException, Producer

from walstream.errors import Transient, WalstreamError
from walstream.kafka.errors import ProducerLost, failure
from walstream.pipeline.outage import Outage
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, SINK

_TRY_S: Final = 1.0
_LATE_S: Final = 5.0
_HINT: Final = (
    "it is the broker that leads the id's partition of __transaction_state: check that"
    " it runs, and that this partition has a leader"
)
_log = structlog.get_logger()


class TransactionCoordinator:
    """Asked by one thread; `cease` and `outage` are for others."""

    def __init__(self, sink: str) -> None:
        self._sink = sink
        self._closing = runtime.event()
        self.outage: Outage | None = None
        """Why it does not answer; None: it does, or was not asked for long enough."""

    def is_stopped(self) -> bool:
        """Return whether it is asked no more."""
        return self._closing.is_set()

    def cease(self) -> None:
        """Let what waits for an answer end soon."""
        self._closing.set()

    def answered(self, doing: str, call: Callable[[float], object]) -> None:
        """Call what waits for it, again and again, until it has an answer.

        Raises what it fails with for good, and Transient once it is to cease.
        """
        late = runtime.monotonic() + _LATE_S
        while not self.is_stopped():
            try:
                call(_TRY_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise failure(error.args[0], doing) from error
                if self.outage is None and runtime.monotonic() > late:
                    self._tell(f"{doing}: {error.args[0].str()}")
            else:
                self._end()
                return
        raise Transient(f"{doing}: the sink was closed")

    @contextmanager
    def transaction(self, doing: str, producer: Producer) -> Iterator[None]:
        """Open a transaction, which the block ends; abort it where that fails.

        The client begins no other one before. Its errors come as WalstreamErrors.
        """
        with _failures(doing):
            producer.begin_transaction()
        try:
            with _failures(doing):
                yield
        except WalstreamError as error:
            passes = error.retryable and not isinstance(error, ProducerLost)
            if passes and not self.is_stopped():
                self.answered(doing, producer.abort_transaction)
            raise

    def _tell(self, why: str) -> None:
        self.outage = Outage(why, _HINT)
        told = {SINK: self._sink, ERROR: why, HINT: _HINT}
        _log.warning("Kafka's coordinator of transactions does not answer", **told)

    def _end(self) -> None:
        if self.outage is not None:
            self.outage = None
            _log.info("Kafka's coordinator answers", **{SINK: self._sink})


@contextmanager
def _failures(doing: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise failure(error.args[0], doing) from error
    except BufferError as error:
        raise Transient(f"{doing}: a record finds no room in the queue") from error
