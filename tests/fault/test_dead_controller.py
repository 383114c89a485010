"""A broker that died is named as controller until its session is over."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)

from consumer.group.assigned_partition import Place
from consumer.state.topic_guard import TopicGuard
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.servers.second_broker import SecondBroker
from walstream.errors import Transient
from walstream.kafka.cluster import Cluster
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topic_metadata import Describer
from walstream.kafka.topics import Topics
from walstream.telemetry import runtime

pytestmark = pytest.mark.fault

_TOPIC = "t"
_SESSION_S = 15  # of the dead one: so long it is named
_TRIES = 30  # each client is told of it as likely as of the other
_BRIEF_S = 0.8  # an answer takes no longer


@pytest.fixture
def servers(own_kafka: OwnKafka) -> Iterator[str]:
    """Return where the one broker is that lives, which has the topic."""
    first = own_kafka({"broker.session.timeout.ms": f"{_SESSION_S * 1000}"})
    with SecondBroker(first) as second:
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        topic = NewTopic(_TOPIC, 1, replica_assignment=[[1]])
        for done in admin.create_topics([topic]).values():
            done.result(30)
        second.kill()
        yield first.bootstrap


def topics(servers: str) -> Callable[[], bool]:
    made = Topics(
        {"bootstrap.servers": servers}, Creation(allowed=False), lambda _: None
    )
    return lambda: made.have([_TOPIC])


def describer(servers: str) -> Callable[[], bool]:
    made = Describer({"bootstrap.servers": servers})
    return lambda: _TOPIC in made.look([_TOPIC])


def cluster(servers: str) -> Callable[[], bool]:
    made = Cluster({"bootstrap.servers": servers})
    return lambda: _TOPIC in made.topics([_TOPIC])


def guard(servers: str) -> Callable[[], bool]:
    made = TopicGuard({"bootstrap.servers": servers}, "g")
    place = Place(_TOPIC, 0)
    made.expect(place)
    since = runtime.monotonic()
    return lambda: made.check_id(place, None, None, since) is not None


@pytest.mark.takes(30)
@pytest.mark.parametrize("ask", [topics, describer, cluster, guard])
def test_one_that_died_is_not_waited_for(
    ask: Callable[[str], Callable[[], bool]], servers: str
) -> None:
    """Else librdkafka asks nobody else, for minutes, and takes a processor for it."""
    waits = 0

    for _ in range(_TRIES):
        asked, began = ask(servers), runtime.monotonic()

        def answered(asked: Callable[[], bool] = asked) -> bool:
            with suppress(Transient):
                return asked()
            return False

        wait_until(answered, 30, "another broker is asked")
        waits += runtime.monotonic() - began > _BRIEF_S
        if waits:
            break
    assert waits  # else none was told of the dead one
