"""The close of a Kafka client, however long it takes."""

import threading

import pytest

from consumer.group.client_close import left


def test_a_close_that_never_returns_is_left_behind() -> None:
    held = threading.Event()

    def close() -> None:
        held.wait()

    assert not left(close, 0.05)
    held.set()


def test_what_a_close_raises_is_raised() -> None:
    def fails() -> None:
        raise RuntimeError("closed already")

    with pytest.raises(RuntimeError, match="closed already"):
        left(fails)
