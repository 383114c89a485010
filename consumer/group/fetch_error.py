"""Errors that librdkafka hands over in place of a message: logged or raised."""

import logging
from typing import Final

from confluent_kafka import KafkaError, Message

from walstream.errors import PermissionLacking, Transient, WalstreamError

_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's local codes are spelt so
}
_log = logging.getLogger(__name__)


def is_end(message: Message) -> bool:
    """Return whether it only says that nothing more is there."""
    error = message.error()
    return error is not None and error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - likewise


def meet_fetch_error(message: Message) -> None:
    """Log what librdkafka goes on after; raise what it cannot cure."""
    error = message.error()
    if error is None:
        return
    text = f"reading {message.topic()!r}: {error.str()} ({error.name()})"
    _refuse_denied(error, text)
    if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - likewise
        raise Transient(text, hint='"auto.offset.reset" says to stop here')
    if error.fatal():
        raise WalstreamError(text)
    _log.warning(text)


def meet_start_error(error: KafkaError) -> None:
    """Note why it is not known where to begin: it is asked again, unless it may not."""
    text = f"asking where the group begins: {error.str()} ({error.name()})"
    _refuse_denied(error, text)
    _log.debug(text)


def _refuse_denied(error: KafkaError, text: str) -> None:
    if error.code() in _DENIED:
        raise PermissionLacking(text, hint="grant READ on the topic and the group")
