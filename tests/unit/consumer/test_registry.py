"""Schemas by their ids: which answers are waited for, and which stop a consumer."""

import logging
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import certifi
import pytest

from consumer.errors import ConsumerStopped, SchemasAway, SchemasRefused
from consumer.registry import NO_NULL, SchemaRegistry, registry_of
from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry
from walstream.errors import ConfigError, PermissionLacking, Transient, WalstreamError

TEXT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'


@dataclass
class Clock:
    now: float = 1000.0

    def forward(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("consumer.registry.runtime.monotonic", lambda: made.now)
    return made


@pytest.fixture
def server() -> Iterator[FaultyRegistry]:
    with faulty_registry() as made:
        made.register("s", TEXT)
        yield made


@pytest.fixture
def registry(server: FaultyRegistry, clock: Clock) -> Iterator[SchemaRegistry]:
    del clock
    made = SchemaRegistry({"url": server.url, "timeout": 5})
    yield made
    made.close()


def away(registry: SchemaRegistry, number: int = 1) -> SchemasAway:
    with pytest.raises(SchemasAway) as found:
        registry.schema(number)
    assert isinstance(found.value, Transient)
    return found.value


def test_a_schema_is_asked_for_once(
    registry: SchemaRegistry, server: FaultyRegistry
) -> None:
    known = registry.schema(1)
    assert known.reader.names == ("a",)
    assert registry.schema(1) is known
    server.stop()
    assert registry.schema(1) is known
    assert len(server.asked) == 1


def test_threads_ask_for_it_once(
    registry: SchemaRegistry, server: FaultyRegistry
) -> None:
    server.slow = threading.Event()
    threads = [threading.Thread(target=registry.schema, args=[1]) for _ in range(4)]
    for thread in threads:
        thread.start()
    server.slow.set()
    for thread in threads:
        thread.join()
    assert len(server.asked) == 1


def test_it_may_be_closed_and_asked_again(
    registry: SchemaRegistry, server: FaultyRegistry
) -> None:
    registry.close()
    registry.close()
    assert registry.schema(1)
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 301, 404])
def test_a_registry_in_trouble_is_waited_for(
    registry: SchemaRegistry,
    server: FaultyRegistry,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    status: int,
) -> None:
    server.fail(status)
    error = away(registry)
    assert f"HTTP {status}" in str(error)
    assert 0 < error.wait_s <= 0.5
    # others wait, too, without a question
    assert away(registry, 2).wait_s == pytest.approx(error.wait_s)
    assert len(server.asked) == 1
    assert [one.levelno for one in caplog.records] == [logging.WARNING]
    clock.forward(error.wait_s + 0.01)
    assert registry.schema(1)


def test_waits_grow_to_half_a_minute(
    registry: SchemaRegistry, server: FaultyRegistry, clock: Clock
) -> None:
    server.stop()
    waits = []
    for _ in range(10):
        waits.append(away(registry).wait_s)
        clock.forward(waits[-1] + 0.01)
    assert waits[-1] > 20
    assert max(waits) <= 30


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>It works</html>", "text/html"),
        (404, b"<html>Not found</html>", "text/html"),
        (200, b"{}", "application/json"),
        (200, b"[]", "application/json"),
        (200, b"", "application/json"),
        (200, b'{"schema": 3}', "application/json"),
        (503, b"[1]", "application/json"),
    ],
)
def test_another_server_is_no_registry(
    registry: SchemaRegistry,
    server: FaultyRegistry,
    clock: Clock,
    answer: tuple[int, bytes, str],
) -> None:
    server.faults.append(answer)
    error = away(registry)
    assert "gives no schema" in str(error)
    assert "<html>" not in str(error)
    clock.forward(1)
    assert registry.schema(1)


def test_an_unknown_id_is_one_once_there_was_time_to_learn_of_it(
    registry: SchemaRegistry, server: FaultyRegistry, clock: Clock
) -> None:
    assert "does not know schema 2 yet" in str(away(registry, 2))
    assert registry.schema(1)  # others are not kept waiting
    clock.forward(4)
    away(registry, 2)
    clock.forward(2)
    with pytest.raises(WalstreamError, match="does not know its schema 2") as found:
        registry.schema(2)
    assert not isinstance(found.value, SchemasAway | SchemasRefused)
    server.register("s", '"string"')
    assert registry.schema(2).reader.schema["type"] == "string"


@pytest.mark.parametrize("status", [401, 403])
def test_who_may_not_ask_is_told_what_to_set(
    registry: SchemaRegistry, server: FaultyRegistry, status: int
) -> None:
    server.fail(status, 40301, "denied")
    with pytest.raises(SchemasRefused, match=r"basic\.auth\.user\.info") as found:
        registry.schema(1)
    assert f"HTTP {status} denied" in str(found.value)
    assert isinstance(found.value, PermissionLacking)
    assert isinstance(found.value, ConsumerStopped)
    assert found.value.exit_code == 4


def test_logins_are_in_no_text(
    server: FaultyRegistry, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    del clock
    caplog.set_level(logging.DEBUG)  # Confluent's client is one of httpx
    server.login = ("ann", "s3cr3t")
    ways = [
        {"url": server.url, "basic.auth.user.info": "ann:s3cr3t"},
        {"url": server.url.replace("//", "//ann:s3cr3t@")},
        {"url": server.url.replace("//", "//ann:s3cr%33t@") + "/," + server.url},
    ]
    for way in ways:
        good = SchemaRegistry(way)
        assert good.schema(1)
        server.faults.append((401, b'{"error_code": 1, "message": "ann:s3cr3t"}', ""))
        with pytest.raises(SchemasRefused) as found:
            good.schema(2)
        server.faults.append((500, b'{"error_code": 1, "message": "no s3cr3t"}', ""))
        told = f"{found.value} {away(good, 3)} {caplog.text}"
        assert "s3cr3t" not in told
        assert "ann" not in told
        assert good.where.split(",")[0] == server.url
        good.close()


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"url": ""},
        {"url": 3},
        {"url": "registry:8081"},
        {"url": "ftp://ann:s3cr3t@host"},
        {"url": "http://"},
        {"url": "http://host:8081", "s3cr3t": "x"},
        {"url": "http://host", "basic.auth.user.info": "s3cr3t"},
        {"url": "http://host", "ssl.ca.location": "/no/such/file"},
        {"url": "http://a:s3cr3t@host", "basic.auth.user.info": "ann:s3cr3t"},
    ],
)
def test_properties_that_are_wrong_are_refused_at_once(
    properties: dict[str, object],
) -> None:
    with pytest.raises(ConfigError, match="registry=") as found:
        SchemaRegistry(properties)
    if "s3cr3t" not in properties:
        assert "s3cr3t" not in str(found.value)


def test_a_certificate_that_goes_away_meanwhile_is_waited_for(
    server: FaultyRegistry, clock: Clock, tmp_path: Path
) -> None:
    file = tmp_path / "ca.pem"
    shutil.copy(certifi.where(), file)
    made = SchemaRegistry({"url": server.url, "ssl.ca.location": str(file)})
    server.fail(500)
    away(made)
    file.rename(tmp_path / "other")
    for _ in range(2):
        clock.forward(30)
        away(made)
    (tmp_path / "other").rename(file)
    clock.forward(30)
    assert made.schema(1)
    made.close()


def test_numbers_may_be_texts(server: FaultyRegistry) -> None:
    made = SchemaRegistry({"url": server.url, "timeout": "2.5", "max.retries": "1"})
    assert made.schema(1)
    made.close()


def test_without_the_library_the_error_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert registry_of(None) is None  # needs none
    monkeypatch.setitem(sys.modules, "confluent_kafka.schema_registry", None)
    monkeypatch.delattr("confluent_kafka.schema_registry", raising=False)
    with pytest.raises(ConfigError, match=r"walstream\[registry\]"):
        registry_of({"url": "http://host:8081"})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b'{"schema": "syntax = 1", "schemaType": "PROTOBUF"}', "of protobuf"),
        (b'{"schema": "<x/>", "schemaType": "XML"}', "in XML"),
        (b'{"schema": "\\"nothing\\""}', "not a schema of Avro"),
    ],
)
def test_a_schema_that_cannot_be_read_makes_its_records_unreadable(
    registry: SchemaRegistry, server: FaultyRegistry, answer: bytes, why: str
) -> None:
    server.faults.append((200, answer, "application/json"))
    for _ in range(2):
        with pytest.raises(WalstreamError, match=why) as found:
            registry.schema(1)
        assert not isinstance(found.value, SchemasAway | SchemasRefused)
    assert len(server.asked) == 1


_ENVELOPE = """syntax = "proto3"; package a; message Envelope {
  Value after = 1; %s int64 ts_ms = 2;
  message Value { int32 id = 1; repeated string many = 2; optional string v = 3; }
}"""


@pytest.mark.parametrize(("label", "lost"), [("", True), ("optional", False)])
def test_a_converter_without_nulls_is_known_by_debeziums_own_field(
    registry: SchemaRegistry, server: FaultyRegistry, label: str, lost: bool
) -> None:
    number = server.register("p", _ENVELOPE % label, "PROTOBUF")
    columns = registry.schema(number).columns
    assert [NO_NULL in one for one in columns.values()] == [lost] * 3
    assert [bool(one["optional"]) for one in columns.values()] == [False, False, True]
