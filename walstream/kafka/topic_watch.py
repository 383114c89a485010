"""Watch over a sink's topics: whether they are still the same, once a minute.

A topic that is gone, and that nothing was sent to since the last look, is that of a
table that is gone too, as a rule: it is forgotten. Any other that is gone is lost.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, Protocol

from walstream.errors import Restart, WalstreamError
from walstream.kafka.errors import topic_lost
from walstream.kafka.probe import Answering, Asking
from walstream.kafka.topic import Topic
from walstream.kafka.topics import Topics
from walstream.telemetry import runtime

_EVERY_S: Final = 60.0
_DOUBT_S: Final = 6 * 3600.0  # of a day by default (producer.id.expiration.ms)


class WatchedSink(Answering, Protocol):
    """Sink that sends to the topics."""

    def fail(self, error: WalstreamError) -> None: ...


class TopicWatch:
    """Looks without waiting; called by the loop alone."""

    def __init__(
        self, topics: Topics, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._asking = Asking(topics)
        self._next = clock() + _EVERY_S
        self._doubt = clock() + _DOUBT_S
        self._refresh: Future[set[str]] | None = None
        self._idle: dict[str, Topic] = {}  # by name
        self._forgotten: set[str] = set()

    def look(self, kafka: WatchedSink) -> set[str] | None:
        """Name the topics to forget, when a look has ended; else None."""
        self._asking.look(kafka)
        refresh = self._refresh
        if refresh is None:
            if self._clock() >= self._next:
                self._next = self._clock() + _EVERY_S
                known = self._topics.known.values()
                self._doubt_some(known)
                self._idle = {one.name: one for one in known if not one.was_stamped()}
                self._refresh = self._topics.refresh(frozenset(self._idle))
            return None
        if not refresh.done():
            return None
        self._refresh = None
        error = refresh.exception()
        if error is not None:
            if isinstance(error, WalstreamError) and not error.retryable:
                kafka.fail(error)
            return set()
        gone = refresh.result()
        for name in gone:
            if self._idle[name].was_stamped():  # while it was looked for
                kafka.fail(topic_lost(name, "was deleted"))
        self._forgotten |= gone
        return gone

    def _doubt_some(self, known: Iterable[Topic]) -> None:
        """Let partitions be proven again before brokers forget the producer there."""
        if self._clock() >= self._doubt:
            self._doubt = self._clock() + _DOUBT_S
            for one in known:
                one.doubt()

    def meet(self, name: str) -> None:
        """Begin again where a topic is another one: the producer knows the old one."""
        if name in self._forgotten:
            raise Restart(f"topic {name!r} exists again")
