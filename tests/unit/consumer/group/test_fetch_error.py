"""Errors that come in place of messages."""

import logging
from typing import cast

import pytest
from confluent_kafka import KafkaError, Message

from consumer.group.fetch_error import StartTrouble, meet_fetch_error
from tests.support.runtime import altered
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


def test_a_beginning_that_is_not_known_for_long_is_told_each_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trouble, now = StartTrouble(), 0.0
    with altered(monotonic=lambda: now), caplog.at_level(logging.WARNING):
        told = []
        for at in (0.0, 5.0, 11.0, 30.0, 72.0):
            now = at
            trouble.meet(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
            told.append(len(caplog.records))
        assert told == [0, 0, 1, 1, 2]
        assert "no partition of its topic is read" in caplog.text
        trouble.end()
        trouble.meet(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        assert len(caplog.records) == 2
        with pytest.raises(PermissionLacking):
            trouble.meet(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
