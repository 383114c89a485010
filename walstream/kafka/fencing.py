"""Fencing: ends transactions of producers elsewhere, which may still be alive.

The last producer with a transactional.id is its only one: what an older one has open is
aborted, and it can commit nothing more.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from confluent_kafka import KafkaException, Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient
from walstream.kafka.errors import failure
from walstream.kafka.oauth_token import prepared
from walstream.kafka.producer_config import producer_properties, transaction_timeout_ms
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.telemetry import runtime

_LONGEST_S: Final = 15 * 60  # the broker's transaction.max.timeout.ms
_AT_A_TIME: Final = 32  # each waits for the broker nearly all of its time
_TIMEOUT_S: Final = 30.0

TRANSACTION: Final[ClientProperties] = {
    "transaction.timeout.ms": _LONGEST_S * 1000,
    # of a record in a transaction: no longer than that lasts
    "message.timeout.ms": _LONGEST_S * 1000,
}
"""What a producer needs beside its transactional.id."""


def successor(given: ClientProperties, name: str) -> Producer:
    """Make a producer that takes over a transactional.id by `init_transactions`.

    With an operator's producer properties; it is to send nothing.
    """
    properties = producer_properties(given, DEFAULT_LIMIT, DEFAULT_LIMIT)
    # brokers may allow less than the longest, and this one has nothing to send
    timeout_ms = transaction_timeout_ms(given)
    return Producer(
        {
            **prepared(properties),
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": timeout_ms,
            "error_cb": lambda _error: None,
        },
        logger=logging.getLogger("librdkafka"),
    )


def fence(
    given: ClientProperties, ids: Iterable[str], stopped: Callable[[], bool]
) -> None:
    """Take over these transactional.ids; raise if one cannot be taken.

    With an operator's producer properties. Nothing of an older producer of theirs is
    written behind what is written after this.
    """

    def take(name: str) -> None:
        try:
            successor(given, name).init_transactions(_TIMEOUT_S)
        except KafkaException as error:
            raise failure(error.args[0], f"fencing transaction {name!r}") from None

    with runtime.thread_pool(_AT_A_TIME, thread_name_prefix="fencing") as threads:
        for some in _batches(ids):
            if stopped():
                raise Transient("stopped while earlier tasks were being fenced")
            for _ in threads.map(take, some):
                pass


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield some at a time: a stop is heard between."""
    left = iter(ids)
    while some := list(islice(left, 4 * _AT_A_TIME)):
        yield some
