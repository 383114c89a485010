"""What is known of topics, and when one is lost; tests/integration asks brokers."""

import socket
import time
from concurrent.futures import Future
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.unit.kafka.test_metadata import answer
from walstream.config.tls import Confined
from walstream.errors import TopicLost, TopicMissing, Transient, WalstreamError
from walstream.kafka.advertised_listeners import BrokersElsewhere
from walstream.kafka.metadata import read_frame
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topics import Topics
from walstream.testing.servers.port import free_port


class Admin:
    """Stands for brokers that have every topic but some."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.gone = {"gone"}
        self.late: set[str] = set()  # known from the second look on
        self.identity = "id"
        self.partitions = 2
        self.limit = "1000"

    def poll(self, timeout: float) -> None: ...

    def describe_topics(self, topics: Any, **_: float) -> dict[str, "Future[Any]"]:
        self.asked.append(len(topics.topic_names))
        return {name: self._answer(name) for name in topics.topic_names}

    def _answer(self, name: str) -> "Future[Any]":
        answer: Future[Any] = Future()
        if name in self.gone | self.late:
            self.late.discard(name)
            error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            answer.set_exception(KafkaException(error))
        else:
            answer.set_result(
                SimpleNamespace(
                    topic_id=f"{self.identity}-{name}",
                    partitions=[*range(self.partitions)],
                )
            )
        return answer

    def describe_cluster(self, **_: float) -> "Future[Any]":
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(nodes=[]))
        return answer

    def describe_configs(self, resources: Any, **_: float) -> dict[Any, "Future[Any]"]:
        self.asked.append(len(resources))
        values = {
            "max.message.bytes": self.limit,
            "cleanup.policy": "delete",
            "retention.ms": "5",
        }
        config = {key: SimpleNamespace(value=value) for key, value in values.items()}
        asked = {}
        for resource in resources:
            asked[resource] = answer = Future[Any]()
            answer.set_result(config)
        return asked


@pytest.fixture
def admin(monkeypatch: pytest.MonkeyPatch) -> Admin:
    made = Admin()
    monkeypatch.setattr(Topics, "_connected", lambda _: made)
    monkeypatch.setattr("walstream.kafka.topics._AGAIN_S", 0.01)
    return made


def known(*names: str) -> Topics:
    topics = Topics({}, Creation(allowed=False), lambda _: None)
    wait_until(lambda: topics.have(names), 10, "they are known")
    return topics


def test_many_topics_are_described_some_at_a_time(admin: Admin) -> None:
    topics = Topics({}, Creation(allowed=False), lambda _: None)
    names = [f"t{number}" for number in range(120)]
    found = topics.describe([*names, "gone"])
    assert sorted(found) == sorted(names)
    assert found["t7"].identity == "id-t7"
    assert {(one.partitions, one.limit) for one in found.values()} == {(2, 1000)}
    assert max(admin.asked) == 50  # 40 KB each is what an answer takes
    assert sum(admin.asked) == 121 + 120


def test_one_negative_answer_is_asked_again_before_a_topic_is_lost(
    admin: Admin,
) -> None:
    topics = known("a", "b")
    admin.late = {"a"}
    assert topics.refresh().result(10) == set()
    assert set(topics.known) == {"a", "b"}
    admin.gone = {"a"}
    with pytest.raises(TopicLost, match="'a' was deleted"):
        topics.refresh().result(10)


def test_a_new_topic_that_one_broker_does_not_know_yet_is_asked_for_again(
    admin: Admin,
) -> None:
    admin.late = {"a"}
    assert set(known("a").known) == {"a"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["gone"], "topic 'gone' does not exist, and create_topics is false"),
        (["gone", "a", "n1", "n2", "n3"], "'gone', 'n1', 'n2' and 1 more do not"),
    ],
)
def test_a_topic_that_was_never_there_is_to_be_created_and_no_loss(
    admin: Admin, names: list[str], said: str
) -> None:
    admin.gone = {"gone", "n1", "n2", "n3"}
    topics = Topics({}, Creation(allowed=False), lambda _: None)
    with pytest.raises(TopicMissing) as missing:
        wait_until(lambda: topics.have(names), 10, "they are asked for")
    assert said in str(missing.value)
    assert "create" in missing.value.hint


def test_a_topic_that_an_earlier_start_met_is_lost(admin: Admin) -> None:
    admin.gone = {"gone", "other"}
    topics = Topics(
        {}, Creation(allowed=False), lambda _: None, met=lambda name: name == "gone"
    )
    with pytest.raises(TopicLost, match="'gone' was deleted") as lost:
        wait_until(lambda: topics.have(["gone", "other"]), 10, "they are asked for")
    assert lost.value.exit_code == 3


def test_brokers_that_are_away_are_named_at_once_with_the_reason() -> None:
    port = free_port()
    client = {"bootstrap.servers": f"127.0.0.1:{port}"}
    topics = Topics(client, Creation(allowed=False), lambda _: None)
    began = time.monotonic()
    with capture_logs() as logs:
        wait_until(lambda: topics.have(["t"]) or topics.away, 9, "it is said")
        assert not topics.have(["t"])
    assert time.monotonic() - began < 9  # the request takes 10 s to time out
    (said,) = [one for one in logs if one["event"] == "waiting for Kafka"]
    assert said["brokers"] == f"127.0.0.1:{port}"
    assert (
        said["error"] == f"Connect to ipv4#127.0.0.1:{port} failed: Connection refused"
    )
    assert said["hint"].startswith("start the broker")
    topics.close()


def test_a_topic_that_nothing_was_sent_to_is_forgotten(admin: Admin) -> None:
    topics = known("a", "b")
    before = topics.known
    admin.gone = {"a"}
    assert topics.refresh({"a"}).result(10) == {"a"}
    assert set(topics.known) == {"b"}
    assert set(before) == {"a", "b"}  # whoever reads it goes on
    admin.identity = "other"
    assert topics.refresh({"b"}).result(10) == {"b"}
    assert not topics.known


class Growing:
    """A topic whose limit is read just as another topic is found."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    @property
    def limit(self) -> int:
        self._topics._find(frozenset(["another"]))  # noqa: SLF001 - its own thread does
        return 1000


@pytest.mark.usefixtures("admin")
def test_limits_can_be_asked_for_while_topics_are_found() -> None:
    topics = known("a")
    vars(topics)["_known"] = {"a": Growing(topics), "b": Growing(topics)}
    assert topics.limits == (1000, 1000)
    assert set(topics.known) == {"a", "b", "another"}


def test_no_producer_is_made_before_the_brokers_are_where_they_may_be(
    admin: Admin,
) -> None:
    admin.gone = set()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        client = {"bootstrap.servers": f"127.0.0.1:{listener.getsockname()[1]}"}
        confined = Confined("sinks.k", "key", "plaintext")
        topics = Topics(
            client, Creation(allowed=False), lambda _: None, confined=confined
        )
        assert not topics.have([])
        one, _ = listener.accept()
        with one:
            read_frame(one)
            one.sendall(answer("127.0.0.1"))
        wait_until(lambda: topics.have([]), 10, "they are located")
        wait_until(lambda: topics.have(["t"]), 10, "its topic is known")
    topics.close()


def test_brokers_elsewhere_are_no_outage(admin: Admin) -> None:
    del admin
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        client = {"bootstrap.servers": f"127.0.0.1:{listener.getsockname()[1]}"}
        confined = Confined("sinks.k", "key", "plaintext")
        topics = Topics(
            client, Creation(allowed=False), lambda _: None, confined=confined
        )
        assert not topics.have(["t"])
        one, _ = listener.accept()
        with one:
            read_frame(one)
            one.sendall(answer("b.example"))
        with pytest.raises(BrokersElsewhere):
            wait_until(lambda: topics.have(["t"]), 10, "they are located")
        assert not topics.away
    topics.close()


def test_partitions_that_are_added_move_no_key(admin: Admin) -> None:
    """The count is that of the start: an operator agrees to another."""
    topics = known("a")
    admin.partitions = 3
    assert topics.refresh().result(10) == set()
    assert topics.known["a"].partitions == 2


class Tails:
    """Notes what is asked of it, and whether the topics were known by then."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.topics: Topics | None = None
        self.failure: WalstreamError | None = None

    def look(self, topics: Any) -> None:
        assert self.topics is not None
        self.asked.append(sorted(one.name for one in topics))
        assert not set(self.asked[-1]) & set(self.topics.known)
        if self.failure is not None:
            raise self.failure

    def end(self, *topics: str) -> None:
        self.asked.append(("end", *topics))

    def disown(self) -> None:
        self.asked.append("disown")


def looking(tails: Tails) -> Topics:
    topics = Topics({}, Creation(allowed=False), lambda _: None, tails=tails)  # type: ignore[arg-type]
    tails.topics = topics
    return topics


@pytest.mark.usefixtures("admin")
def test_what_a_topic_has_is_looked_for_before_it_is_known() -> None:
    tails = Tails()
    topics = looking(tails)
    wait_until(lambda: topics.have(["a", "b"]), 10, "they are known")
    assert topics.have(["a"])
    wait_until(lambda: topics.have(["a", "c"]), 10, "the other one is known")
    assert tails.asked == [["a", "b"], ["c"]]
    topics.disown()
    assert tails.asked[2:] == ["disown"]
    known("a").disown()  # nothing is left out there


@pytest.mark.usefixtures("admin")
def test_a_topic_whose_end_is_not_told_yet_is_not_known() -> None:
    tails = Tails()
    tails.failure = Transient("it does not answer")
    topics = looking(tails)
    assert not topics.have(["a"])
    wait_until(lambda: tails.asked or topics.have(["a"]), 10, "it is looked for")
    assert not topics.known
    tails.failure = None
    wait_until(lambda: topics.have(["a"]), 10, "it is known")
    assert tails.asked == [["a"]] * len(tails.asked)


def test_another_limit_ends_the_era_of_its_topic_alone(admin: Admin) -> None:
    """What is too large for one limit went elsewhere, and not for another."""
    tails = Tails()
    topics = looking(tails)
    wait_until(lambda: topics.have(["a", "b"]), 10, "they are known")
    topics.refresh().result(10)
    assert tails.asked == [["a", "b"]]
    admin.limit = "2000"
    topics.refresh({"b"}).result(10)
    assert topics.known["b"].limit == 2000
    assert ("end", "b") in tails.asked


def test_a_limit_that_was_lowered_is_seen_also_where_one_broker_is_late(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = known("a")
    assert not topics.narrowed("a").result(10)
    said = iter(["1000", "900"])
    describe = Admin.describe_configs

    def late(self: Admin, resources: Any, **more: float) -> dict[Any, "Future[Any]"]:
        self.limit = next(said)
        return describe(self, resources, **more)

    monkeypatch.setattr(Admin, "describe_configs", late)
    assert topics.narrowed("a").result(10)
    monkeypatch.setattr(Admin, "describe_configs", describe)
    admin.limit = "900"
    topics.refresh().result(10)
    assert topics.narrowed("a").result(10), "it was seen before the refusal came"
    assert not known("a").narrowed("a").result(10), "of another start"
