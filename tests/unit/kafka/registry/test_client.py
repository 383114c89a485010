"""Answers of a registry as errors: who waits, who stops."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry
from walstream.config.registry import Registry
from walstream.errors import ConfigError, WalstreamError
from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.client import RegistryClient
from walstream.kafka.registry.errors import (
    RegistryAway,
    RegistryRefused,
    SchemaIncompatible,
    SchemaRefused,
    SchemaUnregistered,
)

SCHEMA = SubjectSchema("a/b-value", '{"type":"record","name":"A","fields":[]}')
PASSWORD = "pass-word-of-mine"  # noqa: S105 - nobody's


@pytest.fixture
def server() -> Iterator[FaultyRegistry]:
    with faulty_registry() as started:
        yield started


@contextmanager
def client(server: FaultyRegistry, **told: Any) -> Iterator[RegistryClient]:
    made = RegistryClient(Registry(url=server.url, **told))
    try:
        yield made
    finally:
        made.close()


def test_a_schema_has_the_same_id_whoever_asks(server: FaultyRegistry) -> None:
    with client(server) as one, client(server, auto_register=False) as other:
        with pytest.raises(SchemaUnregistered, match="a/b-value"):
            other.id_of(SCHEMA)
        assert one.latest(SCHEMA.subject) is None
        assert one.id_of(SCHEMA) == other.id_of(SCHEMA) == 1
        assert one.latest(SCHEMA.subject) == SCHEMA.text
        assert one.has(SCHEMA.subject)
        assert one.fits(SCHEMA)


def test_compatibility_is_of_new_subjects_alone(server: FaultyRegistry) -> None:
    with client(server, compatibility="FULL") as one:
        one.id_of(SCHEMA)
        one.id_of(SubjectSchema(SCHEMA.subject, SCHEMA.text.replace("A", "B")))
    puts = [path for method, path, _ in server.asked if method == "PUT"]
    assert puts == ["/config/a%2Fb-value"]


def test_no_compatibility_is_set_behind_the_first_version(
    server: FaultyRegistry,
) -> None:
    """Apicurio knows no subject before that."""
    with client(server, compatibility="NONE") as one:
        assert one.id_of(SCHEMA) == 1
    asked = [(method, path.partition("?")[0]) for method, path, _ in server.asked]
    assert asked[-2:] == [
        ("POST", "/subjects/a%2Fb-value/versions"),
        ("PUT", "/config/a%2Fb-value"),
    ]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, 401, RegistryRefused),
        (403, 40301, RegistryRefused),
        (409, 409, SchemaIncompatible),
        (404, 404, RegistryAway),  # another path than a registry's
        (422, 42201, SchemaRefused),
        (422, 42205, RegistryRefused),
        (429, 42901, RegistryAway),
        (500, 50001, RegistryAway),
        (503, 50003, RegistryAway),
    ],
)
def test_a_refusal_is_told_by_its_kind(
    server: FaultyRegistry, status: int, code: int, kind: type[WalstreamError]
) -> None:
    server.fail(status, code, "why it is so")
    with client(server) as one, pytest.raises(kind, match="why it is so") as told:
        one.id_of(SCHEMA)
    assert server.url in str(told.value)


def test_one_that_takes_nothing_new_tells_what_it_has(server: FaultyRegistry) -> None:
    with client(server) as one:
        number = one.id_of(SCHEMA)
    with client(server) as one:
        server.fail(422, 42205, "Subject is in read-only mode")
        assert one.id_of(SCHEMA) == number


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>sign in</html>", "text/html"),
        (502, b"<html>bad gateway</html>", "text/html"),
        (404, b"<html>not here</html>", "text/html"),
        (200, b"", "application/json"),
        (200, b"[]", "application/json"),
        (200, b'{"id": "x"}', "application/json"),
    ],
)
def test_what_is_not_a_registry_is_asked_again(
    server: FaultyRegistry, answer: tuple[int, bytes, str]
) -> None:
    server.always = answer
    with client(server) as one:
        with pytest.raises(RegistryAway):
            one.id_of(SCHEMA)
        server.always = None
        assert one.id_of(SCHEMA) == 1


def test_who_is_away_is_asked_again(server: FaultyRegistry) -> None:
    url = server.url
    with faulty_registry() as other:
        gone = other.url
    both = Registry(url=f"{gone},{url}")
    made = RegistryClient(both)
    assert made.id_of(SCHEMA) == 1  # the next of several answers
    made.close()
    made = RegistryClient(Registry(url=gone))
    with pytest.raises(RegistryAway, match="refused"):
        made.id_of(SCHEMA)
    made.close()


def test_no_password_is_told(server: FaultyRegistry) -> None:
    host = server.url.removeprefix("http://")
    for told in (
        Registry(url=f"http://me:{PASSWORD}@{host}"),
        Registry(url=server.url, client={"basic.auth.user.info": f"me:{PASSWORD}"}),
    ):
        server.fail(401, 401, f"me:{PASSWORD} is not right")
        made = RegistryClient(told)
        with pytest.raises(RegistryRefused) as error:
            made.id_of(SCHEMA)
        made.close()
        assert PASSWORD not in f"{error.value}{error.value.hint}{told.identity}"
        *_, (_, _, headers) = server.asked
        assert headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize(
    "properties",
    [
        {"basic.auth.user.info": "alone"},
        {"no.such": "x"},
        {"timeout": "soon"},
        {"ssl.ca.location": "/no/such/file"},
    ],
)
def test_what_the_client_does_not_take_is_a_clear_error(
    properties: dict[str, str],
) -> None:
    with pytest.raises(ConfigError):
        RegistryClient(Registry(url="https://localhost", client=properties))


def test_a_subject_that_was_deleted_is_asked_for_anew(server: FaultyRegistry) -> None:
    """The library keeps what was the first version once, and a schema's id."""
    with client(server) as one:
        one.id_of(SCHEMA)
        assert one.version(SCHEMA.subject, 1) is not None
        server.subjects.clear()
        server.texts.clear()
        other = SubjectSchema(SCHEMA.subject, SCHEMA.text.replace("A", "B"))
        server.register(*(other.subject, other.text))
        found = one.version(SCHEMA.subject, 1)
        assert found is not None
        assert found.text == other.text
        assert one.id_of(SCHEMA) == 2


@pytest.mark.parametrize("status", [409, 422, 404, 502])
def test_a_page_of_a_proxy_refuses_no_schema(
    server: FaultyRegistry, status: int
) -> None:
    server.faults.append((status, b"<html>no</html>", "text/html"))
    with client(server) as one, pytest.raises(RegistryAway, match=f"HTTP {status}"):
        one.id_of(SCHEMA)


def test_it_knows_when_it_was_answered(server: FaultyRegistry) -> None:
    with client(server) as one:
        assert one.heard_at == 0.0
        one.id_of(SCHEMA)
        first = one.heard_at
        assert first > 0.0
        server.fail(403)  # an answer, too
        with pytest.raises(RegistryRefused):
            one.id_of(SCHEMA)
        second = one.heard_at
        assert second > first
        server.stop()
        with pytest.raises(RegistryAway):
            one.id_of(SCHEMA)
        assert one.heard_at == second
