"""Sources: what each kind demands."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from walstream.config import KafkaSource, PostgresSource, Source, SqlSource

SOURCE: TypeAdapter[Any] = TypeAdapter(Source)
POSTGRES = {"kind": "postgres", "dsn": "host=/run", "sinks": ["k"]}
SQL = {
    "kind": "sql",
    "url": "sqlite:///x",
    "sinks": ["k"],
    "tables": {"t": {"primary_key": "id"}},
}
KAFKA = {"kind": "kafka", "topics": ["t"], "sinks": ["k"], "consumer": {}}


@pytest.mark.parametrize(
    ("written", "kind"),
    [(POSTGRES, PostgresSource), (SQL, SqlSource), (KAFKA, KafkaSource)],
)
def test_the_kind_chooses_the_model(written: dict[str, Any], kind: type) -> None:
    assert type(SOURCE.validate_python(written)) is kind


@pytest.mark.parametrize("written", [POSTGRES, SQL, KAFKA])
def test_what_has_no_default_is_demanded(written: dict[str, Any]) -> None:
    for key in written:
        with pytest.raises(ValidationError):
            SOURCE.validate_python({k: v for k, v in written.items() if k != key})


@pytest.mark.parametrize(
    ("written", "key", "bad"),
    [
        (SQL, "tables", {}),
        (SQL, "url", "x"),
        (SQL, "tables", {"t": {"primary_key": ""}}),
        (SQL, "tables", {"t": {"primary_key": "id", "limit": -1}}),
        (SQL, "tables", {"": {"primary_key": "id"}}),
        (SQL, "tables", {"t": {"primary_key": "id", "fields": ["a", "a"]}}),
        (SQL, "tables", {"t": {"primary_key": "id", "start": "after:"}}),
        (SQL, "tables", {"t": {"primary_key": "id", "parallelism": 0}}),
        (SQL, "tables", {"t": {"primary_key": "id", "parallelism": 65}}),
        (SQL, "tables", {"t": {"primary_key": "id", "max_gaps": 0}}),
        (SQL, "tables", {"t": {"primary_key": "id", "max_gaps": 1_000_001}}),
        (SQL, "tables", {"t": {"primary_key": "id", "gap_timeout": 5}}),
        (KAFKA, "topics", []),
        (KAFKA, "group", ""),
        (POSTGRES, "url", "x"),
    ],
)
def test_what_makes_no_sense_is_refused(
    written: dict[str, Any], key: str, bad: object
) -> None:
    with pytest.raises(ValidationError):
        SOURCE.validate_python({**written, key: bad})


def test_connection_strings_stand_in_no_repr() -> None:
    dsn = {**POSTGRES, "dsn": "host=x password=cAnArY"}
    url = {**SQL, "url": "mysql://u:cAnArY@h/db"}
    for written in (dsn, url):
        assert "cAnArY" not in repr(SOURCE.validate_python(written))


@pytest.mark.parametrize(
    ("start", "key"),
    [("beginning", None), ("end", None), ("after:7", 7), ("after:-7", -7)],
)
def test_the_key_to_start_after_is_a_number(start: str, key: int | None) -> None:
    table = {"primary_key": "id", "start": start, "gap_timeout": "0"}
    polled = SOURCE.validate_python({**SQL, "tables": {"t": table}}).tables["t"]
    assert (polled.start_after, polled.gap_timeout) == (key, 0)
