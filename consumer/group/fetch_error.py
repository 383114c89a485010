"""Errors that librdkafka hands over in place of a message: logged or raised."""

import logging
from typing import Final

from confluent_kafka import KafkaError, Message

from walstream.errors import PermissionLacking, Transient, WalstreamError
from walstream.telemetry import runtime
from walstream.telemetry.throttle import Throttle

_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's local codes are spelt so
}
_LASTS_S: Final = 10.0  # a leader is elected within seconds
_SAY_AGAIN_S: Final = 60.0
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


class StartTrouble:
    """Reasons why it is not known where to begin, logged where they last."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._throttle = Throttle(_SAY_AGAIN_S)

    def meet(self, error: KafkaError) -> None:
        """Note one: it is asked again, unless it may not."""
        text = f"asking where the group begins: {error.str()} ({error.name()})"
        _refuse_denied(error, text)
        now = runtime.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since < _LASTS_S or not self._throttle.is_due(text):
            _log.debug(text)
        else:
            _log.warning("%s; no partition of its topic is read until then", text)

    def end(self) -> None:
        self._since = None
        self._throttle.reset()


def _refuse_denied(error: KafkaError, text: str) -> None:
    if error.code() in _DENIED:
        raise PermissionLacking(text, hint="grant READ on the topic and the group")
