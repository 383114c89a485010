"""Findings of `check` about a sink's Kafka transactions."""

import logging
from collections.abc import Iterator
from typing import Final

from confluent_kafka import KafkaException, Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import PermissionLacking, Transient, WalstreamError
from walstream.finding import Finding
from walstream.kafka.errors import failure
from walstream.kafka.oauth_token import prepared
from walstream.kafka.producer_config import producer_properties, transaction_timeout_ms
from walstream.kafka.topic_finding import Tools
from walstream.kafka.topic_limits import DEFAULT_LIMIT

_WAIT_S: Final = 10.0


def findings(
    sink: str, producer: ClientProperties, prefix: str, tools: Tools
) -> Iterator[Finding]:
    """Yield what would stop them; `prefix` is that of the ids that `run` takes.

    They are begun under an id of its own: nothing that runs is fenced.
    """
    error = _refusal(producer, f"{prefix}check")
    if error is None or isinstance(error, Transient):
        return  # of brokers that do not answer is told elsewhere
    if isinstance(error, PermissionLacking):
        error.repair = tools.grant_transactions(prefix)
    yield Finding.of(error, "transactions", f"sink {sink}")


def _refusal(producer: ClientProperties, name: str) -> WalstreamError | None:
    """Return why transactions cannot be begun under an id; None: they can."""
    timeout_ms = transaction_timeout_ms(producer)
    properties = {
        **prepared(producer_properties(producer, DEFAULT_LIMIT, DEFAULT_LIMIT)),
        "transactional.id": name,
        "transaction.timeout.ms": timeout_ms,
        "message.timeout.ms": timeout_ms,
        "error_cb": lambda _error: None,
    }
    try:
        made = Producer(properties, logger=logging.getLogger("librdkafka"))
        made.init_transactions(_WAIT_S)
    except KafkaException as error:
        return failure(error.args[0], f"beginning transactions as {name!r}")
    return None
