"""What a Kafka error means: try again, or an operator is needed."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from walstream.errors import (
    ConfigError,
    LoginRefused,
    PermissionLacking,
    RecordRefused,
    TopicLost,
    Transient,
    WalstreamError,
)
from walstream.kafka.errors import SizeRefused, failure, undelivered, unfit


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MSG_SIZE_TOO_LARGE", RecordRefused),
        ("RECORD_LIST_TOO_LARGE", RecordRefused),
        ("INVALID_RECORD", RecordRefused),
        ("INVALID_TIMESTAMP", RecordRefused),
        ("POLICY_VIOLATION", RecordRefused),
        ("UNKNOWN_TOPIC_OR_PART", TopicLost),
        ("UNKNOWN_TOPIC_ID", TopicLost),
        ("INCONSISTENT_TOPIC_ID", TopicLost),
        ("TOPIC_EXCEPTION", TopicLost),
        ("_UNKNOWN_TOPIC", TopicLost),
        ("_UNKNOWN_PARTITION", TopicLost),
        ("TOPIC_AUTHORIZATION_FAILED", PermissionLacking),
        ("CLUSTER_AUTHORIZATION_FAILED", PermissionLacking),
        ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", PermissionLacking),
        ("SASL_AUTHENTICATION_FAILED", LoginRefused),
        ("_AUTHENTICATION", LoginRefused),
        ("_MSG_TIMED_OUT", Transient),
        ("_ALL_BROKERS_DOWN", Transient),
        ("_TRANSPORT", Transient),
        ("_PURGE_QUEUE", Transient),
        ("_FATAL", Transient),
        ("NOT_ENOUGH_REPLICAS", Transient),
        ("NOT_LEADER_FOR_PARTITION", Transient),
        ("OUT_OF_ORDER_SEQUENCE_NUMBER", Transient),
        ("UNKNOWN", Transient),
    ],
)
def test_code_decides_whether_trying_again_makes_sense(
    name: str, kind: type[WalstreamError]
) -> None:
    found = failure(KafkaError(getattr(KafkaError, name)), "delivering to 't'")
    assert type(found) is kind
    assert str(found).startswith("delivering to 't': ")
    assert f"({name})" in str(found)
    assert found.hint


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MSG_SIZE_TOO_LARGE", SizeRefused),
        ("RECORD_LIST_TOO_LARGE", SizeRefused),
        ("INVALID_RECORD", RecordRefused),
        ("_PURGE_QUEUE", Transient),
    ],
)
def test_a_size_that_is_refused_upon_delivery_is_known_as_one(
    name: str, kind: type[WalstreamError]
) -> None:
    found = undelivered(KafkaError(getattr(KafkaError, name)), "t", 7)
    assert type(found) is kind
    assert str(found).startswith("delivering to 't' partition 7: ")
    if isinstance(found, SizeRefused):
        assert found.topic == "t"
        assert "max.message.bytes" in found.hint


def test_what_has_no_offset_may_not_be_there() -> None:
    found = undelivered(None, "t", 7)
    assert type(found) is Transient
    assert str(found).startswith("delivering to 't' partition 7: ")


@pytest.mark.parametrize(
    ("properties", "hint"),
    [
        ({"ssl.key.pem": "x"}, "ssl.key.password"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "correct ssl.ca.location"),
        ({"linger.ms": "soon"}, "CONFIGURATION.md"),
    ],
)
def test_properties_that_make_no_client_name_what_to_correct(
    properties: dict[str, Any], hint: str
) -> None:
    given = {"security.protocol": "ssl", "log_level": 0, **properties}
    with pytest.raises(KafkaException) as refused:
        Producer(given)
    found = unfit(refused.value, "sinks.k.producer", given)
    assert type(found) is ConfigError
    assert str(found).startswith("sinks.k.producer: ")
    assert hint in found.hint
