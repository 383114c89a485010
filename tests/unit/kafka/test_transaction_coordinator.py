"""A coordinator that does not answer is told of, and asked again."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from tests.support.runtime import altered
from walstream.errors import Transient
from walstream.kafka.transaction_coordinator import TransactionCoordinator

_AWAY = "Kafka's coordinator of transactions does not answer"


class Calls:
    """Calls of librdkafka, each of which takes its time and then fails."""

    def __init__(self, fails: int, *, retriable: bool = True) -> None:
        self.now = 0.0
        self.left = fails
        code = KafkaError._TIMED_OUT  # noqa: SLF001 - theirs
        self._error = KafkaError(code, "no answer", False, retriable)

    def __call__(self, wait_s: float) -> None:
        self.now += wait_s
        self.left -= 1
        if self.left >= 0:
            raise KafkaException(self._error)


@pytest.fixture
def calls() -> Iterator[Callable[..., Calls]]:
    """Make calls, by whose time the clock goes."""
    made: list[Calls] = []

    def make(fails: int, *, retriable: bool = True) -> Calls:
        made.append(Calls(fails, retriable=retriable))
        return made[-1]

    with altered(monotonic=lambda: sum(one.now for one in made)):
        yield make


def test_one_that_is_late_is_told_of_once(calls: Callable[..., Calls]) -> None:
    coordinator = TransactionCoordinator("kafka")
    seen: list[bool] = []
    call = calls(30)

    def asked(wait_s: float) -> None:
        seen.append(coordinator.outage is not None)
        call(wait_s)

    with capture_logs() as said:
        coordinator.answered("committing", asked)
    assert [one["event"] for one in said] == [_AWAY, "Kafka's coordinator answers"]
    assert said[0]["error"] == "committing: no answer"
    assert seen == [False] * 6 + [True] * 25
    assert coordinator.outage is None


def test_one_that_answers_soon_is_not_spoken_of(calls: Callable[..., Calls]) -> None:
    with capture_logs() as said:
        TransactionCoordinator("kafka").answered("committing", calls(4))
    assert not said


def test_what_fails_for_good_is_raised(calls: Callable[..., Calls]) -> None:
    with pytest.raises(Transient, match="committing: no answer"):
        TransactionCoordinator("kafka").answered(
            "committing", calls(1, retriable=False)
        )


def test_a_stop_ends_the_wait(calls: Callable[..., Calls]) -> None:
    coordinator = TransactionCoordinator("kafka")
    call = calls(100)

    def asked(wait_s: float) -> None:
        if call.now >= 10:
            coordinator.cease()
        call(wait_s)

    with pytest.raises(Transient, match="closed"):
        coordinator.answered("committing", asked)
    assert call.now < 13
