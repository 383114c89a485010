"""Producer properties: what keeps the promises, and what has to fit."""

from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import whole_number
from walstream.errors import ConfigError
from walstream.kafka.producer_config import (
    client_properties,
    fits_queue,
    hurries,
    parts_within,
    producer_properties,
    queue_of,
    queue_within,
    split_queue,
)

MIB = 1 << 20


def test_promises_are_kept_by_default() -> None:
    made = producer_properties({}, MIB, MIB)
    assert made["acks"] == "all"
    assert made["enable.idempotence"] is True
    assert made["enable.gapless.guarantee"] is True
    assert made["message.timeout.ms"] == 0


def test_operators_properties_pass_through() -> None:
    made = producer_properties({"linger.ms": 50, "sasl.username": "u"}, MIB, MIB)
    assert (made["linger.ms"], made["sasl.username"]) == (50, "u")


@pytest.mark.parametrize(
    ("given", "smallest", "expected"),
    [({}, 2 * MIB, 1_000_000), ({}, 5000, 5000), ({"batch.size": "700"}, 5000, 700)],
)
def test_batch_is_never_larger_than_the_smallest_topic_takes(
    given: dict[str, str], smallest: int, expected: int
) -> None:
    assert producer_properties(given, smallest, MIB)["batch.size"] == expected


def test_queue_holds_the_largest_record() -> None:
    made = producer_properties({"queue.buffering.max.kbytes": "1"}, MIB, 100 * MIB)
    assert whole_number(made, "queue.buffering.max.kbytes") * 1024 > 100 * MIB
    made = producer_properties({}, MIB, 2**40)
    assert whole_number(made, "queue.buffering.max.kbytes") <= 2_097_151


def test_queue_made_for_one_limit_holds_all_below_it() -> None:
    assert fits_queue({}, 50 * MIB, built_for_limit=50 * MIB)
    assert fits_queue({}, MIB, built_for_limit=1000)
    assert not fits_queue({}, 50 * MIB, built_for_limit=MIB)
    small = {"queue.buffering.max.kbytes": "1024"}
    assert not fits_queue(small, 2 * MIB, built_for_limit=MIB)


@pytest.mark.parametrize("off", [False, "false"])
def test_without_idempotence_gaps_are_not_ruled_out_twice(off: object) -> None:
    made = producer_properties({"enable.idempotence": off}, MIB, MIB)
    assert "enable.gapless.guarantee" not in made


@pytest.mark.parametrize("given", [{}, {"enable.idempotence": "false"}])
def test_librdkafka_takes_the_properties(given: dict[str, str]) -> None:
    Producer(producer_properties(given, 1000, 10 * MIB))


def test_admin_client_gets_all_but_what_is_a_producers_or_a_consumers_own() -> None:
    given = {
        "bootstrap.servers": "h:9092",
        "sasl.password": "p",
        "ssl.ca.location": "/x",
        "security.protocol": "SASL_SSL",
        "client.id": "mine",
        "https.ca.location": "/y",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "metadata.recovery.strategy": "none",
        "connections.max.idle.ms": 1000,
        "plugin.library.paths": "",
        "client.rack": "a",
    }
    own = {"acks": "all", "linger.ms": 5, "group.id": "g", "fetch.max.bytes": 1}
    made = client_properties({**given, **own})
    assert made.items() >= given.items()
    assert not own.keys() & made.keys()


ANY_CLIENTS: dict[str, Any] = {
    "message.max.bytes": 1_000_000,
    "message.copy.max.bytes": 1000,
    "max.in.flight": 5,
    "metadata.recovery.strategy": "none",
    "metadata.recovery.rebootstrap.trigger.ms": 1000,
    "topic.metadata.refresh.interval.ms": 1000,
    "metadata.max.age.ms": 1000,
    "socket.keepalive.enable": "true",
    "socket.connection.setup.timeout.ms": 1000,
    "broker.address.family": "v4",
    "connections.max.idle.ms": 1000,
    "reconnect.backoff.ms": 10,
    "retry.backoff.ms": 10,
    "statistics.interval.ms": 0,
    "api.version.request": "true",
    "allow.auto.create.topics": "false",
    "client.dns.lookup": "use_all_dns_ips",
    "enable.metrics.push": "false",
    "security.protocol": "ssl",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "u",
    "sasl.password": "p",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "enable.ssl.certificate.verification": "true",
    "ssl.endpoint.identification.algorithm": "https",
    "ssl.cipher.suites": "ALL",
    "https.ca.location": "probe",
    "log.connection.close": "false",
}


@pytest.mark.parametrize("key", ANY_CLIENTS)
def test_an_admin_client_takes_what_any_client_has(key: str) -> None:
    made: Any = client_properties({key: ANY_CLIENTS[key], "log_level": 0})
    assert made[key] == ANY_CLIENTS[key]
    AdminClient(made)


def test_librdkafka_takes_the_admin_properties() -> None:
    given = {"bootstrap.servers": "localhost:1", "log_level": 0}
    made: Any = client_properties(given)
    AdminClient(made)


def test_queues_share_the_memory() -> None:
    one, two = queue_within(32 * MIB, 1), queue_within(32 * MIB, 2)
    for key, most in one.items():
        assert two[key] in (most // 2, most // 2 + 1)
    bytes_ = one["queue.buffering.max.kbytes"] * 1024
    assert bytes_ < 32 * MIB < bytes_ + one["queue.buffering.max.messages"] * 660
    Producer({"bootstrap.servers": "127.0.0.1:1", **queue_within(1, 3)})


def test_producers_of_one_sink_divide_its_queue() -> None:
    given = {"queue.buffering.max.messages": "1000", "linger.ms": 1}
    made = split_queue(given, 10)
    assert made["queue.buffering.max.messages"] == 100
    assert made["linger.ms"] == 1
    alone = producer_properties(split_queue({}, 1), MIB, MIB)
    assert "linger.ms" not in split_queue({"message.timeout.ms": 300}, 16)
    lingers = [
        whole_number(one, "linger.ms")
        for one in (alone, split_queue({}, 2), split_queue({}, 10))
    ]
    assert lingers == sorted(set(lingers))
    brief = producer_properties({"message.timeout.ms": 20}, MIB, MIB)
    assert whole_number(brief, "linger.ms") < 20
    whole = whole_number(split_queue({}, 1), "queue.buffering.max.kbytes")
    assert made["queue.buffering.max.kbytes"] == whole // 10


def test_without_a_limit_of_records_memory_is_the_limit() -> None:
    """0 is none for librdkafka; a queue's share of it was one record."""
    count = "queue.buffering.max.messages"
    within = queue_within(32 * MIB, 1)
    joined = queue_of({count: "0", "linger.ms": "7"}, within)
    assert joined == {**within, "linger.ms": "7"}
    assert queue_of({count: "70"}, within)[count] == "70"
    for parts in (1, 10):
        assert split_queue({count: "0"}, parts)[count] == 50_000 // parts
        assert split_queue(joined, parts)[count] == within[count] // parts
    assert producer_properties({count: "0"}, MIB, MIB)[count] == 50_000
    with pytest.raises(ConfigError, match="is not a whole number"):
        queue_of({count: "none"}, within)


def test_no_more_producers_than_have_room_for_the_largest_record() -> None:
    given = {"queue.buffering.max.kbytes": 20_000}
    assert parts_within(given, 16, MIB) == 16
    assert parts_within(given, 16, 10 * MIB) == 1
    assert parts_within(given, 2, MIB) == 2
    assert parts_within(given, 16, 900 * MIB) == 1


def test_only_a_linger_of_an_operators_own_holds_back_a_quiet_stream() -> None:
    assert hurries({"acks": "all"})
    assert not hurries({"linger.ms": 10})
    assert not hurries({"queue.buffering.max.ms": "10"})
