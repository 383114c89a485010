"""Kafka brokers for the tests.

`embedded` starts one here, `docker` takes the public image, `external` reads
WALSTREAM_TEST_KAFKA (bootstrap servers).
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import pytest

from tests.services import chosen, container, external, needs_own_servers
from tests.waiting import wait_until
from walstream.testing.servers import LocalKafka
from walstream.testing.servers.kafka import answers_api_versions
from walstream.testing.servers.port import HOST, free_port

_IMAGE = "apache/kafka:4.1.0"
_CONTROLLER_PORT = 9093


class KafkaServer(Protocol):
    @property
    def bootstrap(self) -> str: ...


@dataclass(frozen=True)
class RemoteKafka:
    bootstrap: str


class OwnKafka(Protocol):
    def __call__(
        self,
        settings: dict[str, str] | None = None,
        host: str = HOST,
        heap: str = "512m",
    ) -> LocalKafka: ...


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaServer]:
    with ExitStack() as stack:
        yield _BROKERS[chosen()](stack)


@pytest.fixture
def own_kafka() -> Iterator[OwnKafka]:
    """Start brokers that the test may stop, kill or freeze."""
    needs_own_servers()
    with ExitStack() as stack:

        def start(
            settings: dict[str, str] | None = None,
            host: str = HOST,
            heap: str = "512m",
        ) -> LocalKafka:
            return stack.enter_context(
                LocalKafka(settings=settings, host=host, heap=heap)
            )

        yield start


@pytest.fixture
def topic_prefix() -> str:
    """Keep this test's topics apart from all others on the broker."""
    return f"test_{secrets.token_hex(6)}."


def _embedded(stack: ExitStack) -> KafkaServer:
    return stack.enter_context(LocalKafka())


def _docker(stack: ExitStack) -> KafkaServer:
    port = free_port()  # the same inside, since the broker advertises it
    container(
        stack,
        _IMAGE,
        {port: port},
        {
            "KAFKA_NODE_ID": "1",
            "KAFKA_PROCESS_ROLES": "broker,controller",
            "KAFKA_LISTENERS": f"PLAINTEXT://:{port},CONTROLLER://:{_CONTROLLER_PORT}",
            "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{port}",
            "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
            ),
            "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@localhost:{_CONTROLLER_PORT}",
            "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
            "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
            "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        },
    )
    wait_until(lambda: answers_api_versions(port), 60, f"{_IMAGE} answers")
    return RemoteKafka(f"localhost:{port}")


def _external(_: ExitStack) -> KafkaServer:
    return RemoteKafka(external("WALSTREAM_TEST_KAFKA"))


_BROKERS: dict[str, Callable[[ExitStack], KafkaServer]] = {
    "embedded": _embedded,
    "docker": _docker,
    "external": _external,
}
