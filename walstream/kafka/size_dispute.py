"""Dispute over a size: brokers refuse what a topic took when it was looked at last.

Records were measured by that limit, and their batches were made for it. Where the topic
takes less by now, all begins again: the next start finds the new limit, and measures
each record by it. Where it takes as much as before, only an operator can help.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final, Protocol

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, WalstreamError
from walstream.kafka.admin_client import admin_client
from walstream.kafka.errors import SizeRefused
from walstream.kafka.producer_config import client_properties
from walstream.kafka.topic import Topic
from walstream.kafka.topic_limits import DEFAULT_LIMIT, TopicLimits
from walstream.telemetry import runtime

_AGAIN_S: Final = 3.0  # until a broker has heard what others know already


class WrittenTopics(Protocol):
    """Topics that a producer writes to."""

    def narrowed(self, name: str, /) -> "Future[bool]":
        """Ask whether a topic takes less than when records were sent to it."""


class SizeDispute:
    """Settles one for a producer that lasts; nothing in it blocks."""

    def __init__(self, topics: WrittenTopics) -> None:
        self._topics = topics
        self._asked: Future[bool] | None = None

    def look(self, refused: SizeRefused) -> None:
        """Ask brokers; once they answered, raise Restart, or the refusal itself.

        Where they do not answer, it raises what passes.
        """
        if self._asked is None:
            self._asked = self._topics.narrowed(refused.topic)
        if not self._asked.done():
            return
        error = self._asked.exception()
        if isinstance(error, WalstreamError) and error.retryable:
            raise error
        if error is None and self._asked.result():
            raise _restart(refused)
        raise refused


def settled(
    error: WalstreamError,
    written: Iterable[tuple[ClientProperties, Mapping[str, int]]],
) -> WalstreamError:
    """Return what a task that met this error ends with: its own, or a Restart.

    `written` has the producers' properties, and the limits of their topics as the
    task knew them. Blocks for some seconds while brokers are asked.
    """
    if not isinstance(error, SizeRefused):
        return error
    try:
        for properties, limits in written:
            limit = limits.get(error.topic)
            if limit is not None and _has_narrowed(properties, error.topic, limit):
                return _restart(error)
    except WalstreamError as unanswered:
        if unanswered.retryable:
            return unanswered
    return error


def _has_narrowed(properties: ClientProperties, name: str, limit: int) -> bool:
    client = client_properties(properties)
    admin, limits = admin_client(client, lambda _: None), TopicLimits(client)
    for pause_s in (0.0, _AGAIN_S):
        runtime.sleep(pause_s)
        found = {name: Topic(name, "", 1, DEFAULT_LIMIT)}
        limits.read(admin, found)
        if name in found and found[name].limit < limit:
            return True
    return False


def _restart(refused: SizeRefused) -> Restart:
    return Restart(f"topic {refused.topic!r} takes smaller records than before")
