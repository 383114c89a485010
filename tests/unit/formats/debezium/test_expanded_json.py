"""What a JSON text becomes as values of Connect; EventRouter's own: test_outbox.py."""

import json
from typing import Any

import pytest

from walstream.formats.debezium.expanded_json import Unexpandable, expand


def expanded(text: str, *, nulls: bool = False) -> Any:
    return json.loads(expand("payload", text, nulls=nulls)[1])


@pytest.mark.parametrize(
    ("text", "without", "kept"),
    [
        ('{"a": null, "b": 1}', {"b": 1}, {"a": None, "b": 1}),
        ('{"a": []}', {}, {}),
        ('{"a": {"b": null}}', {"a": {}}, {"a": {"b": None}}),
        ('{"a": [null, "x"]}', {"a": [None, "x"]}, {"a": [None, "x"]}),
    ],
)
def test_nulls_are_left_out_or_kept(text: str, without: Any, kept: Any) -> None:
    assert expanded(text) == without
    assert expanded(text, nulls=True) == kept


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "5", '"x"', " {}", "[1]", "[]", "{", '{"a": NaN}', '{"a": 01}',
        '{"a": [1, "x"]}', '{"a": [1, 2.5]}', '{"a": [1, 5000000000]}', '{"": 1}',
        '{"a": [null]}', '{"a": [[]]}', '{"a": 9223372036854775808}',
        '{"a": [[1], ["x"]]}', '{"a": [true, 1]}', '{"a": [{"b": 1}, {"b": "x"}]}',
        '{"a": [{"b": 1}, {"c": 1}, null]}', '{"a": "\n"}', "[" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_has_no_schema_stays_a_text(text: str) -> None:
    with pytest.raises(Unexpandable):
        expand("payload", text, nulls=False)


def test_objects_of_an_array_have_the_fields_of_all() -> None:
    inner = [{"b": 1}, {"c": [{"d": 1}]}, {"c": [{"e": 2}]}]
    text = json.dumps({"o": [{"a": one} for one in inner]})
    first, second, third = expanded(text)["o"]
    assert first == {"a": {"b": 1, "c": None}}
    assert second == {"a": {"b": None, "c": [{"d": 1, "e": None}]}}
    assert third == {"a": {"b": None, "c": [{"d": None, "e": 2}]}}
    assert expanded('{"o": [{"a": 1}, null]}') == {"o": [{"a": 1}, None]}


def test_schemas_are_named_by_their_place() -> None:
    schema, _ = expand("payload", '{"a": {"b": [{"c": 1.5}]}, "n": 7}', nulls=False)
    (_, a), (_, n) = schema.fields
    ((_, b),) = a.fields
    assert b.items is not None
    assert (schema.name, a.name, b.items.name) == (
        "payload", "payload.a", "payload.a.b",
    )  # fmt: skip
    assert n.type == "int32"
    assert schema.optional


@pytest.mark.parametrize(
    ("number", "kind", "written"),
    [
        ("2147483647", "int32", "2147483647"), ("-2147483648", "int32", "-2147483648"),
        ("2147483648", "int64", "2147483648"), ("-0", "int32", "0"),
        ("-9223372036854775808", "int64", "-9223372036854775808"),
        ("1e3", "double", "1000.0"), ("1e22", "double", "1.0E22"),
        ("-0.0", "double", "-0.0"), ("1e400", "double", '"Infinity"'),
    ],
)  # fmt: skip
def test_numbers_are_those_of_java(number: str, kind: str, written: str) -> None:
    schema, text = expand("payload", f'{{"n":{number}}}', nulls=False)
    assert schema.fields[0][1].type == kind
    assert text == f'{{"n":{written}}}'
