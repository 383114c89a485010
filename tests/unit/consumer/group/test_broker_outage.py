"""Brokers that are away are said once, and once more when they are back."""

import logging
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from consumer.group.broker_outage import OutageLog

ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN)  # noqa: SLF001 - librdkafka's own
FAILS = "[thrd:h:9/bootstrap]: h:9/bootstrap: Connect failed: Connection refused"


class Watched:
    """An outage, its clock, and what was logged."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.now = 1000.0
        self.outage = OutageLog(
            logging.getLogger("consumer.librdkafka"), lambda: self.now
        )

    def fails(self, times: int) -> None:
        for _ in range(times):
            line = "%s [%s] %s", "FAIL", "rdkafka#consumer-1", FAILS
            self.outage.log(logging.ERROR, *line)

    @property
    def said(self) -> list[str]:
        found = [record.getMessage() for record in self._caplog.records]
        self._caplog.clear()
        return found


@pytest.fixture
def watched(caplog: pytest.LogCaptureFixture) -> Iterator[Watched]:
    with caplog.at_level(logging.DEBUG):
        yield Watched(caplog)


def test_the_first_failure_is_said_and_the_rest_counted_until_they_answer(
    watched: Watched,
) -> None:
    watched.fails(1)
    watched.outage.hearing(None)(ALL_DOWN)
    watched.fails(178)
    (said,) = watched.said
    assert said == (
        "no connection to Kafka: h:9/bootstrap: Connect failed: Connection refused;"
        " retrying"
    )
    watched.now += 12
    watched.outage.end()
    (said,) = watched.said
    assert "answers again after 12 s; 178 more" in said
    watched.outage.end()
    assert not watched.said


def test_it_is_said_again_once_a_minute(watched: Watched) -> None:
    for _ in range(120):
        watched.fails(10)
        watched.now += 1
    first, second = watched.said
    assert "before" not in first
    assert "599 such failures before" in second


def test_a_new_outage_is_said_at_once(watched: Watched) -> None:
    hear = watched.outage.hearing(None)
    watched.fails(1)
    hear(ALL_DOWN)
    watched.now += 10
    watched.outage.end()
    assert len(watched.said) == 2
    watched.now += 10
    watched.fails(3)
    hear(ALL_DOWN)
    hear(ALL_DOWN)
    (said,) = watched.said
    assert "no connection" in said


def test_one_broker_of_several_is_no_outage(watched: Watched) -> None:
    watched.fails(5)
    watched.now += 100
    assert not watched.outage.is_to_ask()
    watched.outage.end()
    assert len(watched.said) == 1


def test_it_is_asked_now_and_then_while_all_are_gone(watched: Watched) -> None:
    watched.outage.hearing(None)(ALL_DOWN)
    assert not watched.outage.is_to_ask()
    watched.now += 5
    assert watched.outage.is_to_ask()
    assert not watched.outage.is_to_ask()


def test_other_lines_and_errors_pass(watched: Watched) -> None:
    watched.outage.log(logging.WARNING, "%s [%s] %s", "CONFWARN", "c", "a property")
    assert watched.said == ["CONFWARN [c] a property"]
    heard: list[KafkaError] = []
    watched.outage.hearing(heard.append)(ALL_DOWN)
    assert heard == [ALL_DOWN]


@pytest.mark.parametrize(
    ("size", "stranger"), [(1213486160, True), (-1, True), (100000001, False)]
)
def test_another_program_at_the_port_is_called_so(
    watched: Watched, size: int, *, stranger: bool
) -> None:
    what = (
        f"[thrd:h:9/bootstrap]: h:9/bootstrap: Receive failed: Invalid response size"
        f" {size} (0..100000000): increase receive.message.max.bytes (after 1ms)"
    )
    watched.outage.log(logging.ERROR, "%s [%s] %s", "FAIL", "rdkafka#consumer-1", what)
    (said,) = watched.said
    assert ("another program" in said) == stranger
    assert ("increase" in said) != stranger
