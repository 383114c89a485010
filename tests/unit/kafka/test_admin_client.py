"""The client that asks brokers: its properties, and what it hears."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.deadline import wait_until
from walstream.errors import ConfigError
from walstream.kafka.admin_client import (
    admin_client,
    await_controller,
    in_parts,
    look_for_controller,
)
from walstream.testing.servers.port import free_port


def test_what_is_wrong_with_properties_is_said_of_whose_they_are() -> None:
    with pytest.raises(ConfigError, match=r"^consumer properties: .*nonsense"):
        admin_client({"nonsense": "1"}, lambda _: None, whose="consumer properties")


def test_errors_are_heard() -> None:
    heard: list[KafkaError] = []
    servers = f"127.0.0.1:{free_port()}"
    admin = admin_client({"bootstrap.servers": servers}, heard.append)

    def hears() -> bool:
        admin.poll(0)
        return bool(heard)

    wait_until(hears, 10, "that no broker can be reached is heard")
    assert heard[0].code() in {
        KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - likewise
    }


def test_parts_hold_all_in_order_and_none_more_than_so_many() -> None:
    assert list(in_parts([1, 2, 3, 4, 5], 2)) == [[1, 2], [3, 4], [5]]
    assert not list(in_parts([], 2))


class Brokers(AdminClient):
    """Answers what was asked of a dead controller once its metadata is read again."""

    def __init__(self, answer: Future[str], refusals: int) -> None:
        self._answer = answer
        self.refusals = refusals

    def list_topics(self, **_: object) -> None:  # type: ignore[override]  # theirs: more
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - a code
        self._answer.set_result("it")


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Future[str]:
    monkeypatch.setattr("walstream.kafka.admin_client._CONTROLLER_S", 0.01)
    return Future()


def test_who_the_controller_is_is_asked_until_it_answers(answer: Future[str]) -> None:
    admin = Brokers(answer, refusals=2)
    assert await_controller(admin, answer, 30) == "it"
    assert not admin.refusals
    assert await_controller(admin, answer, 0) == "it"  # it is not asked again


def test_no_longer_than_was_said(answer: Future[str]) -> None:
    admin = Brokers(answer, refusals=1_000_000)
    with pytest.raises(TimeoutError):
        await_controller(admin, answer, 0.05)
    assert admin.refusals < 1_000_000


@pytest.mark.parametrize("refusals", [0, 1])
def test_whether_any_broker_answered_is_said(
    answer: Future[str], refusals: int
) -> None:
    assert look_for_controller(Brokers(answer, refusals)) == (not refusals)
