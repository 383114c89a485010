"""librdkafka's properties."""

import re

import pytest

from consumer.group.settings import (
    admin_settings,
    consumer_settings,
    from_earliest,
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
    assert not from_earliest(settings)
    assert from_earliest(consumer_settings("g", {}))
    assert session_timeout_s(settings) == 45
    assert max_poll_interval_s({"max.poll.interval.ms": "9000"}) == 9


@pytest.mark.parametrize("begin", ["latest", "error"])
def test_who_begins_at_the_end_is_told_where_that_is(begin: str) -> None:
    told = "enable.partition.eof"
    assert consumer_settings("g", {})[told] is False
    assert consumer_settings("g", {"auto.offset.reset": begin})[told] is True


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
