"""Keys that go with Debezium's formats, and those that only they know."""

from typing import Any

import pytest

from walstream.config.debezium_rules import check_sink
from walstream.config.sink import KafkaSinkConfig, LogSink


def problems(**sink: Any) -> list[str]:
    told = {"kind": "kafka", "producer": {"bootstrap.servers": "localhost:9092"}}
    made = KafkaSinkConfig.model_validate({**told, **sink})
    return [".".join(map(str, one.path)) for one in check_sink("k", made)]


def test_a_plain_sink_is_fine() -> None:
    assert problems(format="debezium", debezium={"schemas": True}) == []
    assert problems(format="debezium_row", debezium={"deletes": "rewrite"}) == []
    assert problems(format="op") == []


@pytest.mark.parametrize(
    ("sink", "path"),
    [
        ({"format": "op", "debezium": {"name": "app"}}, "sinks.k.debezium"),
        ({"format": "debezium", "key": "concat"}, "sinks.k.key"),
        ({"format": "debezium", "strict": True}, "sinks.k.strict"),
        (
            {"format": "debezium", "split_key_updates": False},
            "sinks.k.split_key_updates",
        ),
        ({"format": "debezium", "debezium": {"deletes": "drop"}}, "sinks.k.debezium"),
        (
            {"format": "debezium", "debezium": {"add_fields": ["op"]}},
            "sinks.k.debezium",
        ),
    ],
)
def test_what_has_no_effect_is_refused(sink: dict[str, Any], path: str) -> None:
    assert problems(**sink) == [path]


def test_a_sink_that_only_prints_is_refused() -> None:
    made = LogSink.model_validate({"kind": "log", "format": "debezium"})
    assert [one.path for one in check_sink("k", made)] == [("sinks", "k", "format")]
