"""Errors that come in place of messages."""

import logging
from typing import cast

import pytest
from confluent_kafka import KafkaError, Message

from consumer.group.fetch_error import meet_fetch_error
from walstream.errors import PermissionLacking, Transient


class FailedMessage:
    def __init__(self, code: int) -> None:
        self._error = KafkaError(code)

    def error(self) -> KafkaError:
        return self._error

    def topic(self) -> str:
        return "orders"


def meet(code: int) -> None:
    meet_fetch_error(cast("Message", FailedMessage(code)))


def test_what_only_an_operator_cures_is_raised() -> None:
    with pytest.raises(PermissionLacking, match="orders"):
        meet(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(Transient, match="orders"):
        meet(KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - spelt so


def test_what_passes_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        meet(KafkaError.UNKNOWN_TOPIC_OR_PART)
    assert "reading 'orders'" in caplog.text
