"""Producers that outlive the range they were made for, in the process that sends it.

A broker keeps the state of every idempotent producer for a day, in each partition that
it wrote to; and a new one costs a handshake and an id. So a sender whose records were
all delivered is kept for the next range of its kind, for some minutes.
"""

import os
import threading
from collections.abc import Callable
from typing import Final

from walstream.kafka.bulk_producer import BulkProducer, Outgoing
from walstream.telemetry import runtime

_KEPT_S: Final = 300.0

Kind = tuple[object, ...]


class BulkProducerPool:
    """Idle producers; any thread may take one."""

    def __init__(self, now: Callable[[], float] = runtime.monotonic) -> None:
        self._now = now
        self._guard = threading.Lock()
        self._idle: dict[Kind, list[tuple[float, BulkProducer]]] = {}
        self._pid = os.getpid()

    def take(
        self, outgoing: Outgoing, topic: str, check: Callable[[], None]
    ) -> BulkProducer:
        """Return an idle producer, or a new one; `check` may end its waits."""
        self.sweep()
        with self._guard:
            kept = self._idle.get(kind_of(outgoing), [])
            sender = kept.pop()[1] if kept else None
        if sender is not None:
            sender.begin(check)
            return sender
        made = BulkProducer(outgoing, check)
        made.acquaint(topic)
        return made

    def give_back(self, outgoing: Outgoing, sender: BulkProducer) -> None:
        """Keep a producer whose records are all delivered."""
        with self._guard:
            kept = self._idle.setdefault(kind_of(outgoing), [])
            kept.append((self._now(), sender))

    def sweep(self) -> None:
        """Drop producers that were idle for minutes."""
        if self._pid != os.getpid():  # a producer's threads do not outlive a fork
            self._idle, self._guard, self._pid = {}, threading.Lock(), os.getpid()
        oldest = self._now() - _KEPT_S
        with self._guard:
            for kind, kept in list(self._idle.items()):
                self._idle[kind] = [one for one in kept if one[0] >= oldest]
                if not self._idle[kind]:
                    del self._idle[kind]

    def __len__(self) -> int:
        return sum(map(len, self._idle.values()))


def kind_of(outgoing: Outgoing) -> Kind:
    """Return the kind of a producer: two of one kind are interchangeable."""
    properties = tuple(
        sorted((key, str(one)) for key, one in outgoing.producer.items())
    )
    return outgoing.sink, outgoing.headers, properties, _folder()


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a text is compared
    except FileNotFoundError:
        return ""


OF_THIS_PROCESS: Final = BulkProducerPool()
"""Where a task is all that a process does: Spark's workers are used again."""
