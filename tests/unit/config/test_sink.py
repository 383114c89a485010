"""Sinks: what each kind demands."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from walstream.config import DiscardSink, KafkaSinkConfig, LogSink, Sink

SINK: TypeAdapter[Any] = TypeAdapter(Sink)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ({"kind": "kafka", "producer": {}}, KafkaSinkConfig),
        ({"kind": "log"}, LogSink),
        ({"kind": "discard"}, DiscardSink),
    ],
)
def test_the_kind_chooses_the_model(written: dict[str, Any], kind: type) -> None:
    assert type(SINK.validate_python(written)) is kind


@pytest.mark.parametrize(
    "written",
    [
        {},
        {"kind": "file"},
        {"kind": "kafka"},
        {"kind": "log", "producer": {}},
        {"kind": "kafka", "producer": {}, "topic_replication": 40000},
        {"kind": "kafka", "producer": {}, "topics": {"a": {}}},
        {"kind": "log", "format": "avro"},
    ],
)
def test_what_makes_no_sense_is_refused(written: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SINK.validate_python(written)


def test_properties_stand_in_no_repr() -> None:
    written = {"kind": "kafka", "producer": {"sasl.password": "cAnArY"}}
    assert "cAnArY" not in repr(SINK.validate_python(written))
