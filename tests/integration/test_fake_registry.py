"""The registry that the tests have answers Confluent's own client."""

from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from tests.support.servers.schema_registry import FakeRegistry

_ONE = '{"type":"record","name":"a","fields":[]}'


def _client(registry: FakeRegistry, **more: object) -> Any:
    """Return a client that asks once; each has to be closed."""
    return SchemaRegistryClient({"url": registry.url, "max.retries": 0, **more})


def _refused(registry: FakeRegistry, number: int = 1) -> tuple[int, int]:
    with _client(registry) as client, pytest.raises(SchemaRegistryError) as found:
        client.get_schema(number)
    return found.value.http_status_code, found.value.error_code


def test_a_schema_has_one_id_in_all_subjects(registry: FakeRegistry) -> None:
    schema = Schema(_ONE, "AVRO")
    with _client(registry) as client:
        assert client.register_schema("a-key", schema) == 1
        assert client.register_schema("a-value", Schema('"string"', "AVRO")) == 2
        assert client.register_schema("b-key", schema) == 1
        assert client.lookup_schema("b-key", schema).version == 1
        assert client.get_schema(2).schema_str == '"string"'
        assert client.get_subjects() == ["a-key", "a-value", "b-key"]
        assert client.test_compatibility("a-key", schema)
    assert _refused(registry, 3) == (404, 40403)
    assert registry.counts()["POST /subjects/a-key/versions"] == 1


def test_it_fails_as_it_is_told(registry: FakeRegistry) -> None:
    registry.register("s", _ONE)
    registry.fail(503, 1, code=50301)
    assert _refused(registry) == (503, 50301)
    registry.incompatible.add("s")
    other = Schema('"int"', "AVRO")
    with _client(registry) as client:
        with pytest.raises(SchemaRegistryError, match="incompatible"):
            client.register_schema("s", other)
        registry.read_only = True
        with pytest.raises(SchemaRegistryError, match="denied"):
            client.register_schema("t", other)
    registry.login = ("u", "p")
    assert _refused(registry) == (401, 401)
    with _client(registry, **{"basic.auth.user.info": "u:p"}) as client:
        assert client.get_schema(1).schema_str == _ONE


def test_it_refuses_connections_and_comes_back(registry: FakeRegistry) -> None:
    registry.register("s", _ONE)
    with _client(registry) as client:
        registry.html()
        with pytest.raises(ValueError, match="Expecting value"):
            client.get_schema(1)
        registry.stop()
        for _ in range(2):  # an open connection is cut, a new one refused
            with pytest.raises(Exception, match=r"refused|disconnected|reset"):
                client.get_schema(1)
        registry.start()
        assert client.get_schema(1).schema_str == _ONE
