"""Who is right about a size: brokers are asked; tests/integration asks real ones."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.support.runtime import altered
from tests.unit.kafka.test_topic_limits import Admin
from walstream.errors import RecordRefused, Restart, Transient
from walstream.kafka import size_dispute
from walstream.kafka.errors import SizeRefused, undelivered
from walstream.kafka.size_dispute import SizeDispute, settled


def refusal() -> SizeRefused:
    found = undelivered(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "t", 0)
    assert isinstance(found, SizeRefused)
    return found


class Topics:
    """Topics of which a test answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Future[bool] = Future()

    def narrowed(self, name: str) -> "Future[bool]":
        self.asked.append(name)
        return self.answer


def test_it_waits_for_the_answer_and_asks_once() -> None:
    topics = Topics()
    dispute, refused = SizeDispute(topics), refusal()
    for _ in range(3):
        dispute.look(refused)
    assert topics.asked == ["t"]
    topics.answer.set_result(True)
    with pytest.raises(Restart, match="'t' takes smaller records than before"):
        dispute.look(refused)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (False, SizeRefused),
        (Transient("Kafka does not answer"), Transient),
        (KeyError("t"), SizeRefused),  # of a topic that is forgotten
    ],
)
def test_where_a_topic_takes_as_much_as_before_the_refusal_counts(
    answer: bool | Exception, kind: type[Exception]
) -> None:
    topics = Topics()
    if isinstance(answer, Exception):
        topics.answer.set_exception(answer)
    else:
        topics.answer.set_result(answer)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - its type is compared
        SizeDispute(topics).look(refusal())
    assert type(raised.value) is kind


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Admin:
    """Have topics of 1,000 bytes."""
    made = Admin(1000, "3000000")
    monkeypatch.setattr(size_dispute, "admin_client", lambda *_: made)
    monkeypatch.setattr(size_dispute, "_AGAIN_S", 0.0)
    return made


@pytest.mark.usefixtures("brokers")
def test_a_task_begins_again_where_its_topic_takes_less_than_it_knew() -> None:
    refused, client = refusal(), {"bootstrap.servers": "b:1"}
    found = settled(refused, [(client, {"other": 9}), (client, {"t": 1001})])
    assert type(found) is Restart
    for known in ({"t": 1000}, {"other": 1001}):
        assert settled(refused, [(client, known)]) is refused


@pytest.mark.usefixtures("brokers")
def test_a_producers_own_limit_is_no_news() -> None:
    refused, client = refusal(), {"message.max.bytes": "700"}
    assert settled(refused, [(client, {"t": 700})]) is refused


def test_a_broker_that_knows_of_nothing_new_is_asked_again(
    brokers: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers._largest = 2000  # noqa: SLF001 - what one of them says
    monkeypatch.setattr(size_dispute, "_AGAIN_S", 3.0)

    def sleep(pause_s: float) -> None:
        if pause_s:
            brokers._largest = 1000  # noqa: SLF001 - it has heard of it

    with altered(sleep=sleep):
        assert type(settled(refusal(), [({}, {"t": 2000})])) is Restart


def test_what_passes_while_brokers_are_asked_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(*_: Any) -> Any:
        raise Transient("Kafka does not answer")

    monkeypatch.setattr(size_dispute, "admin_client", away)
    assert type(settled(refusal(), [({}, {"t": 7})])) is Transient


def test_no_broker_is_asked_of_another_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_dispute, "admin_client", None)
    for error in (RecordRefused("the record"), Transient("away")):
        assert settled(error, [({}, {"t": 7})]) is error


def test_a_task_whose_login_is_refused_believes_the_first_answer(
    brokers: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(*_: Any, **__: Any) -> Any:
        answer: Future[Any] = Future()
        code = KafkaError.SASL_AUTHENTICATION_FAILED
        answer.set_exception(KafkaException(KafkaError(code)))
        return dict.fromkeys(_[0], answer)

    monkeypatch.setattr(brokers, "describe_configs", denied)
    refused = refusal()
    assert settled(refused, [({}, {"t": 7})]) is refused
