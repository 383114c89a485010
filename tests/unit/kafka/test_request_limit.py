"""The smallest broker's request decides; what may not be read is assumed."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

from confluent_kafka import KafkaError, KafkaException

from walstream.kafka.request_limit import ASSUMED, RequestLimit, of_broker


class Brokers:
    """Stands for brokers, one for each limit; None: it may not be read."""

    def __init__(self, *limits: str | None) -> None:
        self._limits = limits
        self.asked: list[str] = []
        self.away = False

    def describe_cluster(self, **_: float) -> "Future[Any]":
        answer: Future[Any] = Future()
        if self.away:
            answer.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))  # noqa: SLF001
        else:
            nodes = [SimpleNamespace(id=number) for number in range(len(self._limits))]
            answer.set_result(SimpleNamespace(nodes=nodes))
        return answer

    def describe_configs(self, resources: Any, **_: float) -> dict[Any, Any]:
        (broker,) = resources  # one request is for one broker
        self.asked.append(broker.name)
        answer: Future[Any] = Future()
        limit = self._limits[int(broker.name)]
        if limit is None:
            code = KafkaError.CLUSTER_AUTHORIZATION_FAILED
            answer.set_exception(KafkaException(KafkaError(code)))
        else:
            entry = SimpleNamespace(value=limit)
            answer.set_result({"socket.request.max.bytes": entry})
        return {broker: answer}


def looked(brokers: Brokers, client_id: str = "") -> RequestLimit:
    limit = RequestLimit(client_id)
    limit.look(cast("Any", brokers))
    return limit


def test_the_smallest_of_the_brokers_decides() -> None:
    brokers = Brokers("300000", None, "200000")
    limit = looked(brokers, "me")
    assert limit.record == 200000 - 1024 - 2
    assert brokers.asked == ["0", "1", "2"]
    assert "restart" in limit.advice


def test_kafkas_default_is_assumed_where_it_may_not_be_read() -> None:
    for brokers in (Brokers(None), Brokers("")):
        limit = looked(brokers)
        assert limit.record == ASSUMED - 1024
        assert "DESCRIBE_CONFIGS" in limit.advice


def test_brokers_that_are_away_are_no_error() -> None:
    brokers = Brokers("200000")
    brokers.away = True
    assert looked(brokers).record == ASSUMED - 1024


def test_a_minute_passes_between_two_looks() -> None:
    brokers = Brokers("200000")
    limit = looked(brokers)
    limit.look(cast("Any", brokers))
    assert brokers.asked == ["0"]


def test_an_entry_or_its_text_is_read() -> None:
    assert of_broker({"socket.request.max.bytes": "5"}) == 5
    assert of_broker({}) is None
