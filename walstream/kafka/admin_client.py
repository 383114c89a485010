"""The client that asks brokers about topics, and creates them."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.kafka.errors import unfit
from walstream.kafka.oauth_token import prepared
from walstream.telemetry import runtime

T = TypeVar("T")
_CONTROLLER_S: Final = 1.0  # an answer takes no longer, or nobody was asked
_METADATA_S: Final = 2.0


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


def await_controller(admin: AdminClient, answer: "Future[T]", timeout_s: float) -> T:
    """Return the answer of the controller; raise TimeoutError.

    Brokers name any as controller that they take for living: one that died some seconds
    ago, too. So while no answer comes, it is asked again who it is.
    """
    deadline = runtime.monotonic() + timeout_s
    while not answer.done():
        left = deadline - runtime.monotonic()
        try:
            return answer.result(min(_CONTROLLER_S, max(left, 0.0)))
        except TimeoutError:
            if left <= 0:
                raise
        look_for_controller(admin)
    return answer.result()


def look_for_controller(admin: AdminClient) -> bool:
    """Read again which broker it is; return whether any broker answered.

    Requests that wait for one go there: else librdkafka waits for the broker of its
    first look, and takes a processor for that.
    """
    try:
        admin.list_topics(timeout=_METADATA_S)
    except KafkaException:
        return False
    return True
