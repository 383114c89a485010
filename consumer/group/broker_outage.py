"""Log of librdkafka while brokers are away: the first error, and the number of them.

It reports each connection that fails, some twenty times a second.
"""

import logging
import math
import re
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError

from walstream.telemetry import runtime

_FAILURES: Final = frozenset({"FAIL", "ERROR"})  # of a connection
# the first letters of what another program said, taken for a size
_SIZE: Final = re.compile(
    r"Invalid response size (-\d+|[3-9]\d{8}|\d{10,}) .*: increase \S+\.max\.bytes"
)
_STRANGER: Final = (
    "the answer is not Kafka's: another program listens there, or security.protocol"
    " is not that of the listener"
)
_AGAIN_S: Final = 60.0
_FRESH_S: Final = 5.0  # so old, a failure that was said is of this outage
_ASK_EVERY_S: Final = 5.0
_ALL_DOWN: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's own


class OutageLog:
    """Stands for a logger, and hears errors; both in the thread that polls."""

    def __init__(
        self, log: logging.Logger, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._log = log
        self._clock = clock
        self._last = ""  # what failed
        self._said_at = -math.inf
        self._left_out = 0
        self._since = math.inf  # when all were gone; inf: they are not
        self._ask_at = 0.0

    def log(self, level: int, text: str, facility: str, client: str, what: str) -> None:
        """Take a line of librdkafka's log."""
        if facility not in _FAILURES:
            self._log.log(level, text, facility, client, what)
            return
        said = what.partition("]: ")[2] or what  # in front stands a thread
        self._last = _SIZE.sub(_STRANGER, said)
        self._left_out += 1
        if self._clock() - self._said_at >= _AGAIN_S:
            self._say()

    def _say(self) -> None:
        self._left_out -= 1
        more = f"; {self._left_out} such failures before" if self._left_out else ""
        self._log.warning("no connection to Kafka: %s%s; retrying", self._last, more)
        self._said_at = self._clock()
        self._left_out = 0

    def hearing(self, other: object) -> Callable[[KafkaError], None]:
        """Return what hears errors, and passes them on to another listener."""

        def hear(error: KafkaError) -> None:
            if error.code() == _ALL_DOWN:
                self._begin()
            if callable(other):
                other(error)

        return hear

    def _begin(self) -> None:
        now = self._clock()
        if self._since != math.inf:
            return
        self._since, self._ask_at = now, now + _ASK_EVERY_S
        if self._left_out and now - self._said_at > _FRESH_S:
            self._say()

    def is_to_ask(self) -> bool:
        """Return whether it is time to see if they are back, which nobody reports."""
        if self._since == math.inf or self._clock() < self._ask_at:
            return False
        self._ask_at = self._clock() + _ASK_EVERY_S
        return True

    def end(self) -> None:
        """Note that they answer."""
        if self._since == math.inf:
            return
        self._log.warning(
            "Kafka answers again after %.0f s; %d more connection failures were not"
            " logged",
            self._clock() - self._since,
            self._left_out,
        )
        self._since, self._left_out = math.inf, 0
