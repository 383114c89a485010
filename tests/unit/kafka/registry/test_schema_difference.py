"""Fields that differ between two versions of a schema."""

import json

import pytest

from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.schema_difference import differing


def told_of(before: str, now: str, kind: str = "AVRO") -> str:
    return differing(before, SubjectSchema("s", now, kind))


def row(*fields: object) -> dict[str, object]:
    return {"type": "record", "name": "Value", "fields": list(fields)}


def field(name: str, kind: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, **more}


def enveloped(value: object) -> str:
    before = field("before", ["null", value], default=None)
    after = field("after", ["null", "Value"], default=None)
    return json.dumps({"type": "record", "name": "E", "fields": [before, after]})


DECIMAL = {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 6}
MOOD = {
    "type": "string",
    "connect.name": "io.debezium.data.Enum",
    "connect.parameters": {"allowed": "sad,ok"},
}
ARRAY = {"type": "array", "items": "int"}


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (["int"], ["int"], ""),
        ([], [("a", "int")], "new field a int, which has no default"),
        ([], [("a", ["null", "int"], None)], "new field a null or int"),
        ([("a", "int")], [], "field a int is gone, which had no default"),
        ([("a", "int")], [("a", "long")], "field a was int and is long"),
        ([("a", DECIMAL)], [("a", ARRAY)], "field a was decimal(6,2) and is array of"),
        ([("a", MOOD)], [("a", "int")], "was io.debezium.data.Enum(sad,ok) and is"),
        ([("a", "int")], [("a", "int", 1)], "field a has a default now"),
    ],
)
def test_a_difference_is_told_by_its_field(
    before: list[object], now: list[object], told: str
) -> None:
    def made(fields: list[object]) -> dict[str, object]:
        parts = [one if isinstance(one, tuple) else ("x", one) for one in fields]
        return row(
            *(
                field(name, kind, **({"default": more[0]} if more else {}))
                for name, kind, *more in parts
            )
        )

    one, other = made(before), made(now)
    for wrap in (json.dumps, enveloped):
        found = told_of(wrap(one), wrap(other))
        assert found.startswith(told) or told in found
        assert bool(found) == bool(told)


def test_many_are_counted() -> None:
    fields = [field(f"c{number}", "int") for number in range(13)]
    assert told_of(json.dumps(row()), json.dumps(row(*fields))).endswith("and 3 more")


@pytest.mark.parametrize("text", ["", "{", "[]", '"int"', '{"type":"record"}'])
def test_what_is_not_a_record_has_none(text: str) -> None:
    assert told_of(text, text) == ""


def test_a_language_that_nobody_knows_has_none() -> None:
    one, other = json.dumps(row()), json.dumps(row(field("a", "int")))
    assert told_of(one, other)
    assert told_of(one, other, "XML") == ""
