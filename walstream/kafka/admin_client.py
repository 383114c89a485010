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
    """Return a client; `hear` is called with each error, by the client's `poll`.

    Raises what is wrong with the properties, which are named as `whose`.
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
    """Cut into lists of so many: what one request asks for."""
    return (items[start : start + most] for start in range(0, len(items), most))
