"""The client that asks brokers about topics, and creates them."""

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.kafka.errors import unfit
from walstream.kafka.oauth_token import prepared

T = TypeVar("T")


def admin_client(
    properties: ClientProperties,
    hear: Callable[[KafkaError], None],
    *,
    whose: str = "producer properties",
) -> AdminClient:
    """Return a client, whose `poll` calls `hear` with each error.

    Raises ConfigError for wrong properties, which the error calls `whose`.
    """
    given = prepared({**properties, "error_cb": hear})
    try:
        return AdminClient(
            given,  # type: ignore[arg-type]  # callbacks, which it does not declare
            logger=logging.getLogger("librdkafka"),
        )
    except KafkaException as error:
        raise unfit(error, whose, properties) from error


def in_parts(items: list[T], most: int) -> Iterator[list[T]]:
    """Return lists of at most `size` items: one for each request."""
    return (items[start : start + most] for start in range(0, len(items), most))
