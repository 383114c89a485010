"""A new producer asks the brokers something, and nobody waits for the answer."""

import threading

from confluent_kafka import KafkaException

from tests.support.runtime import altered
from walstream.kafka.warmup import acquaint


class Asked:
    """Stands for a producer whose brokers answer when they are let."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may_answer = threading.Event()
        self.topics: list[str] = []
        self._error = error

    def list_topics(self, topic: str, timeout: float, /) -> object:
        assert self.may_answer.wait(timeout * 60)
        self.topics.append(topic)
        if self._error is not None:
            raise self._error
        return None


def _ended() -> None:
    for thread in threading.enumerate():
        if thread.name == "acquaint":
            thread.join(60)
            assert not thread.is_alive()


def test_it_is_asked_for_the_topic_while_others_go_on() -> None:
    producer = Asked()
    acquaint(producer, "orders")
    assert producer.topics == []
    producer.may_answer.set()
    _ended()
    assert producer.topics == ["orders", "orders"]


def test_where_no_thread_starts_the_producer_waits_as_any_does() -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    producer = Asked()
    with altered(start_thread=refuse):
        acquaint(producer, "orders")
    assert producer.topics == []


def test_brokers_that_are_away_are_no_error() -> None:
    heard: list[object] = []
    before, threading.excepthook = threading.excepthook, heard.append
    try:
        producer = Asked(KafkaException("no answer"))
        producer.may_answer.set()
        acquaint(producer, "orders")
        _ended()
        assert producer.topics == ["orders"]
    finally:
        threading.excepthook = before
    assert heard == []
