"""Ids of polled tables: each table waits for its own, and no longer than it has to."""

from collections.abc import Iterator
from typing import Any

import pytest

from walstream.config.registry import Registry
from walstream.errors import WalstreamError
from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.formats.encodings.row.encoder import RegisteredRows
from walstream.formats.encodings.row.schema import RowSpec
from walstream.formats.encodings.subject import FramedPart, SubjectSchema
from walstream.kafka.registry.errors import RegistryAway, SchemaIncompatible
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.sources.sql import row_schema_ids
from walstream.sources.sql.row_schema_ids import RowSchemaIds
from walstream.testing.memory import MemoryStore

TOLD = Registry(url="http://r:8081")


class Client:
    """A registry: ids, or errors, by subject."""

    def __init__(self) -> None:
        self.answers: dict[str, int | WalstreamError] = {}
        self.heard_at = 0.0

    def id_of(self, schema: SubjectSchema) -> int:
        answer = self.answers.get(schema.subject, 7)
        if isinstance(answer, WalstreamError):
            raise answer
        return answer

    def latest(self, _subject: str) -> str | None:
        return None

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(row_schema_ids, "_PATIENCE_S", 0.1)
    return Client()


@pytest.fixture
def ids(client: Client) -> Iterator[RowSchemaIds]:
    made: Any = lambda _: client  # noqa: E731
    found = SchemaIds("rows", TOLD, MemoryStore(), client=made)
    opened = RowSchemaIds({"rows": found})
    yield opened
    opened.close()


def parts(topic: str) -> dict[str, tuple[FramedPart, ...]]:
    key = RowColumn("id", RowColumnType("int64"), required=True)
    rows = RegisteredRows("avro", RowSpec("app", ("", topic), (key,), 0), topic)
    return {"rows": rows.parts("topic", topic)}


def never() -> bool:
    return False


def test_ids_are_told_by_digest(ids: RowSchemaIds, client: Client) -> None:
    client.answers["t-key"] = 3
    told = parts("t")
    found = ids.of(told, never)
    assert found is not None
    assert [found["rows"][one.schema.digest].number for one in told["rows"]] == [3, 7]
    assert ids.outage("rows") is None
    assert ids.outage("another") is None
    assert ids.of({}, never) == {}


def test_one_that_is_away_holds_up_what_it_was_not_told(
    ids: RowSchemaIds, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ids.of(parts("t"), never) is not None
    client.answers["late-value"] = RegistryAway("refused", hint="later")
    with pytest.raises(RegistryAway, match="refused"):
        ids.of(parts("late"), never)
    outage = ids.outage("rows")
    assert outage is not None
    assert outage.of == "the schema registry"
    assert ids.of(parts("t"), never) is not None
    assert ids.outage("rows") is not None  # the other still waits
    del client.answers["late-value"]
    monkeypatch.setattr(row_schema_ids, "_PATIENCE_S", 10.0)
    assert ids.of(parts("late"), never) is not None
    assert ids.outage("rows") is None


def test_a_stop_comes_first(ids: RowSchemaIds, client: Client) -> None:
    client.answers["t-key"] = RegistryAway("refused")
    assert ids.of(parts("t"), lambda: True) is None


def test_what_is_not_compatible_is_its_tables_error(
    ids: RowSchemaIds, client: Client
) -> None:
    client.answers["t-value"] = SchemaIncompatible("no")
    with pytest.raises(SchemaIncompatible, match="no"):
        ids.of(parts("t"), never)
    assert ids.of(parts("u"), never) is not None
    client.answers["t-value"] = 9
    assert ids.of(parts("t"), never) is not None
