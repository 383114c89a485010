"""The client that asks brokers: its properties, and what it hears."""

import pytest
from confluent_kafka import KafkaError

from tests.support.deadline import wait_until
from walstream.errors import ConfigError
from walstream.kafka.admin_client import admin_client, in_parts
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
