"""The drain behind a stop: when it ends, though not all is delivered."""

from typing import Final, Protocol, runtime_checkable

from walstream.pipeline.fanout import Fanout
from walstream.pipeline.outage import KAFKA, Outage
from walstream.pipeline.shutdown import Stop
from walstream.telemetry import runtime

_PATIENCE_S: Final = 2.0


@runtime_checkable
class ExplainedSink(Protocol):
    """A sink that knows what it waits for."""

    @property
    def outage(self) -> Outage | None: ...


class Drain:
    """One stop's. Brokers are waited for up to its deadline: they have records."""

    def __init__(self, stop: Stop, fanout: Fanout) -> None:
        self._stop = stop
        self._fanout = fanout
        self._left = -1
        self._still_since = 0.0

    @property
    def over(self) -> bool:
        """Return whether it ends here; what is left is sent by the next start.

        At the deadline, and soon where records wait for what people have to repair, as
        a schema registry, and nothing else moves.
        """
        if self._stop.expired:
            return True
        now, left = runtime.monotonic(), self._fanout.undelivered
        if (
            left != self._left
            or not self._stop.requested
            or not any(map(_waits, self._fanout.sinks))
        ):
            self._left, self._still_since = left, now
        return now - self._still_since >= _PATIENCE_S


def _waits(sink: object) -> bool:
    """Return whether a sink waits for something else than Kafka."""
    outage = sink.outage if isinstance(sink, ExplainedSink) else None
    return outage is not None and outage.of != KAFKA
