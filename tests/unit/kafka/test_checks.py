"""What a cluster answers becomes findings: stops first, topics together."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from tests.unit.kafka.test_topic_config import DEFAULTS
from walstream.errors import PermissionLacking, Transient, WalstreamError
from walstream.finding import Finding, Severity
from walstream.kafka.checks import WantedSink, inspect
from walstream.kafka.cluster import Brokers, Cluster, FoundTopic
from walstream.kafka.stored_topic import StoredTopic
from walstream.kafka.topic_creation import Creation

TOPIC = FoundTopic("t", "id", 2, 3, {"WRITE"}, {**DEFAULTS, "min.insync.replicas": "2"})
ONE_BROKER = Brokers(1, 1, 1)
CREATION = Creation(allowed=True)


class Told(Cluster):
    """A cluster that answers what it was told to."""

    def __init__(
        self,
        *topics: FoundTopic,
        brokers: Brokers | WalstreamError = ONE_BROKER,
        denied: Mapping[str, WalstreamError] | None = None,
        refused: Mapping[str, WalstreamError] | None = None,
    ) -> None:
        super().__init__({"bootstrap.servers": "h:1"})
        self._told = brokers
        self._topics = {topic.name: topic for topic in topics}
        self._denied = denied or {}
        self._refused = refused or {}

    def brokers(self) -> Brokers:
        if isinstance(self._told, WalstreamError):
            raise self._told
        return self._told

    def topics(self, names: Iterable[str]) -> dict[str, FoundTopic | WalstreamError]:
        del names
        return {**self._topics, **self._denied}

    def refusals(
        self, names: Iterable[str], creation: Creation
    ) -> dict[str, WalstreamError]:
        del names, creation
        return dict(self._refused)


def found(
    cluster: Told,
    topics: Iterable[str] = ("t",),
    creation: Creation = CREATION,
    partitions: int = 2,
    properties: Mapping[str, str] | None = None,
) -> list[Finding]:
    wanted = WantedSink(
        "kafka",
        {"bootstrap.servers": "127.0.0.1:1", **(properties or {})},
        creation,
        list(topics),
        {"t": StoredTopic(partitions, "id")},
    )
    return inspect(wanted, cluster)


def test_a_good_topic_is_not_mentioned() -> None:
    assert found(Told(TOPIC)) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Transient("no answer"), "brokers-unreachable"),
        (PermissionLacking("no login"), "kafka-login"),
    ],
)
def test_brokers_that_do_not_serve_are_the_one_finding(
    error: WalstreamError, code: str
) -> None:
    (one,) = found(Told(brokers=error))
    assert (one.code, one.exit_code) == (code, error.exit_code)
    assert one.subject == "brokers h:1"


def test_a_property_that_librdkafka_refuses_ends_run_with_2() -> None:
    (one,) = found(Told(TOPIC), properties={"batch.num.messages": "many"})
    assert (one.code, one.exit_code) == ("producer-properties", 2)
    assert "batch.num.messages" in one.what


def test_missing_topics_stop_where_they_may_not_be_created() -> None:
    (one,) = found(Told(), ["a", "b"], Creation(allowed=False))
    assert (one.code, one.subject, one.exit_code) == ("topic-missing", "topics a, b", 2)
    assert one.repair.command.count("kafka-topics.sh") == 2


def test_missing_topics_that_will_be_created_are_one_note() -> None:
    (one,) = found(Told(), [f"t{n}" for n in range(9)])
    assert one.severity is Severity.NOTE
    assert one.subject == "topics t0, t1, t2 and 6 more"
    assert "1 partition (the broker's default) and 1 replica (the" in one.what
    (one,) = found(Told(), ["a"], Creation(allowed=True, partitions=3, replication=1))
    assert (one.subject, one.what) == (
        "topic a",
        "will be created by run, with 3 partitions and 1 replica",
    )
    (one,) = found(Told(brokers=Brokers(1)), ["a"])
    assert "the broker's default of partitions" in one.what


def test_one_replica_of_several_brokers_is_a_warning() -> None:
    kinds = [
        (one.code, one.severity)
        for one in found(
            Told(replace(TOPIC, replicas=1), brokers=Brokers(2, 1, 1)), ["a", "t"]
        )
    ]
    assert kinds.count(("topic-replication", Severity.WARNING)) == 2


def test_what_the_brokers_would_refuse_to_create_stops() -> None:
    refused = {
        "a": PermissionLacking("creating topic 'a': denied"),
        "b": Transient("creating topic 'b': 3 replicas, 1 broker"),
    }
    first, second = found(Told(refused=refused), ["a", "b"])
    assert (first.what, first.exit_code) == ("cannot be created: denied", 4)
    assert (second.subject, second.exit_code) == ("topic b", 5)


def test_topics_that_may_not_be_seen_or_written_stop_with_4() -> None:
    denied = {"x": PermissionLacking("topic 'x': denied")}
    unseen, unwritable = found(
        Told(replace(TOPIC, allowed={"DESCRIBE"}), denied=denied), ["t", "x"]
    )
    assert (unseen.subject, unseen.exit_code) == ("topic x", 4)
    assert (unwritable.subject, unwritable.exit_code) == ("topic t", 4)
    assert found(Told(replace(TOPIC, allowed=None))) == []


def test_other_partitions_stop_and_are_accepted_by_name() -> None:
    (one,) = found(Told(TOPIC), partitions=1)
    assert (one.code, one.exit_code) == ("topic-partitions", 3)
    assert one.repair.command == "walstream run --accept-partitions"


def test_a_topic_of_transactions_with_several_partitions_stops_as_run_would() -> None:
    creation = Creation(allowed=True, partitions=2, single=frozenset({"t"}))
    (one,) = found(Told(TOPIC), creation=creation)
    assert (one.code, one.exit_code) == ("topic-single", 2)
    assert one.repair.command == (
        "kafka-topics.sh --bootstrap-server h:1 --delete --topic t"
    )
    assert found(Told(replace(TOPIC, partitions=1)), (), creation, 1) == []


def test_a_topic_of_another_identity_is_a_warning() -> None:
    (one,) = found(Told(replace(TOPIC, identity="new")))
    assert (one.code, one.severity) == ("topic-created-again", Severity.WARNING)


def test_stops_come_first() -> None:
    topic = replace(TOPIC, identity="new", allowed={"READ"})
    assert [one.severity for one in found(Told(topic), partitions=1)] == [
        Severity.STOP,
        Severity.STOP,
        Severity.WARNING,
    ]


def of_rows(cluster: Told) -> list[Finding]:
    """Inspect a sink that takes polled rows."""
    producer = {"bootstrap.servers": "127.0.0.1:1"}
    return inspect(WantedSink("rows", producer, CREATION, ["t"], polled=True), cluster)


def test_what_harms_ops_alone_is_not_said_of_rows() -> None:
    compacted = replace(
        TOPIC,
        config={
            **(TOPIC.config or {}),
            "cleanup.policy": "compact",
            "message.timestamp.type": "LogAppendTime",
        },
    )
    assert len(found(Told(compacted))) == 2
    assert of_rows(Told(compacted)) == []


def test_rows_stay_in_their_tables_while_kafka_is_away() -> None:
    (away,) = of_rows(Told(brokers=Transient("no answer")))
    assert "new rows wait in their tables" in away.why
    lonely = replace(TOPIC, replicas=1, config={**DEFAULTS})
    for one in of_rows(Told(lonely, brokers=Brokers(3, 1, 1))):
        assert "PostgreSQL" not in one.why
