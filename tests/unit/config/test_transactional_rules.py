"""Sinks that write in Kafka's transactions are told nothing that contradicts it."""

from collections.abc import Mapping
from typing import Any

import pytest

from walstream.config.sink import KafkaSinkConfig
from walstream.config.source import KafkaSource, PostgresSource, Source, SqlSource
from walstream.config.transactional_rules import check_transactional

_SERVERS = {"bootstrap.servers": "localhost:9092"}
_POSTGRES = PostgresSource.model_validate(
    {"kind": "postgres", "dsn": "postgresql://localhost/shop", "sinks": ["k"]}
)
_POLLED = SqlSource.model_validate(
    {
        "kind": "sql",
        "url": "postgresql://localhost/shop",
        "sinks": ["k"],
        "tables": {"t": {"primary_key": "id"}},
    }
)
_RELAY = KafkaSource.model_validate(
    {"kind": "kafka", "topics": ["up"], "sinks": ["k"], "consumer": _SERVERS}
)


def problems(sink: Mapping[str, Any], source: Source = _POSTGRES) -> dict[str, str]:
    told = {"kind": "kafka", "producer": _SERVERS, "delivery": "transactional"}
    made = KafkaSinkConfig.model_validate({**told, **sink})
    found = check_transactional({"s": source}, {"k": made})
    return {".".join(map(str, one.path[2:])): one.complaint for one in found}


@pytest.mark.parametrize(
    ("sink", "key", "says"),
    [
        ({"at_most_once": True}, "delivery", "leave out one of them"),
        (
            {"producer": {**_SERVERS, "message.timeout.ms": "0"}},
            "producer.message.timeout.ms",
            "leave it out",
        ),
        ({"commit_interval": "16s"}, "commit_interval", "a quarter of that"),
        (
            {"producer": {**_SERVERS, "transaction.timeout.ms": "300"}},
            "commit_interval",
            "may last 300 ms",
        ),
    ],
)
def test_what_contradicts_is_refused(
    sink: Mapping[str, Any], key: str, says: str
) -> None:
    found = problems(sink)
    assert list(found) == [key]
    assert says in found[key]


def test_what_fits_is_taken() -> None:
    assert problems({}) == {}
    assert problems({"commit_interval": "15s"}) == {}
    assert problems({"delivery": "idempotent", "at_most_once": True}) == {}
    assert problems({"producer": {**_SERVERS, "transaction.timeout.ms": "x"}}) == {}


def test_polled_tables_are_refused() -> None:
    assert "is of kind sql" in problems({}, _POLLED)["delivery"]
    assert problems({}, _RELAY) == {}
