"""librdkafka's properties."""

import re

import pytest

from consumer.group.settings import (
    FirstOffset,
    admin_settings,
    begin_of,
    consumer_settings,
    fetch_settings,
    max_poll_interval_s,
    session_timeout_s,
    subscriptions,
)
from walstream.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", False),
        ("enable.auto.offset.store", "true"),
        ("isolation.level", "read_uncommitted"),
        ("group.id", "another"),
    ],
)
def test_what_breaks_the_promise_is_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=name):
        consumer_settings("g", {name: value})


def test_defaults_stand_behind_what_is_given() -> None:
    settings = consumer_settings(
        "g", {"auto.offset.reset": "latest", "enable.auto.offset.store": "false"}
    )
    assert settings["group.id"] == "g"
    assert settings["enable.auto.offset.store"] is False
    assert settings["isolation.level"] == "read_committed"
    assert begin_of(settings) is FirstOffset.LATEST
    assert begin_of(consumer_settings("g", {})) is FirstOffset.EARLIEST
    assert session_timeout_s(settings) == 45
    assert max_poll_interval_s({"max.poll.interval.ms": "9000"}) == 9


@pytest.mark.parametrize(
    ("given", "begin", "reset"),
    [
        ("Smallest", FirstOffset.EARLIEST, "Smallest"),
        ("end", FirstOffset.LATEST, "earliest"),  # what was deleted hides nothing else
        ("error", FirstOffset.NOWHERE, "error"),
        ("nonsense", FirstOffset.NOWHERE, "nonsense"),  # the client refuses it
    ],
)
def test_the_client_goes_on_with_the_oldest_record_wherever_it_begins(
    given: str, begin: FirstOffset, reset: str
) -> None:
    settings = consumer_settings("g", {"auto.offset.reset": given})
    assert begin_of(settings) is begin
    assert fetch_settings(settings) == {**settings, "auto.offset.reset": reset}


def test_the_brokers_own_protocol_takes_no_strategy() -> None:
    settings = consumer_settings("g", {"group.protocol": "consumer"})
    assert "partition.assignment.strategy" not in settings


def test_the_broker_is_not_asked_for_topics_that_are_passed_over() -> None:
    """It would count them into a member's share, which then is an unequal one."""
    given = {"group.protocol": "consumer"}
    settings = consumer_settings("g", given, ["*"])
    assert not re.search(subscriptions(["*"], settings)[0], "__consumer_offsets")
    wished = consumer_settings("g", given | {"topic.blacklist": "^x"}, ["*"])
    assert subscriptions(["*"], wished) == ["^.*$"]
    assert subscriptions(["*"], consumer_settings("g", {}, ["*"])) == ["^.*$"]


def test_the_admin_client_gets_what_it_knows() -> None:
    settings = consumer_settings("g", {"bootstrap.servers": "x", "sasl.username": "u"})
    assert admin_settings(settings) == {
        "bootstrap.servers": "x",
        "sasl.username": "u",
        "log.connection.close": False,
        "log_level": 2,  # the consumer says that Kafka is away, once
    }


def test_patterns_of_topics_are_looked_for_often_unless_it_is_given() -> None:
    interval = "topic.metadata.refresh.interval.ms"
    assert interval not in consumer_settings("g", {})
    assert consumer_settings("g", {}, ["a.*"])[interval] == 10_000
    assert consumer_settings("g", {interval: 5}, ["a.*"])[interval] == 5
    assert "topic.blacklist" not in admin_settings(consumer_settings("g", {}, ["*"]))
