"""Single keys: what each accepts, and what it says of the rest."""

from typing import Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from walstream.config import field
from walstream.config.field import EnvironmentText, read_override


def refused(kind: Any, value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (field.SlotName, ["a", "a_1", "x" * 63], ["", "A", "a-b", "x" * 64, "a\n"]),
        (field.PublicationName, ["A b", "x" * 56], ["", "x" * 57, "é" * 29]),
        (field.TablePattern, ["a.b", "*", "a?b"], ["", "orders"]),
        (field.TopicName, ["a", "A.b_c-1", "x" * 249], ["", ".", "..", "a b", "é"]),
        (field.OptionalTopicName, ["", "a"], ["a/b", "x" * 250]),
        (field.TopicTemplate, ["", "{schema}.{table}", "x{source}"], ["{tabel}", "{"]),
        (
            field.TopicTemplate,
            ["a"],
            ["}", "{}", "{{table}}", "a b", "..", "{table!r}"],
        ),
        (field.ListenAddress, ["", "h:1", "[::1]:80", "0:0"], ["h", ":1", "::1:80"]),
        (field.ListenAddress, ["h:65535"], ["h:65536", "http://h:1", "h:x", "h:1\n"]),
        (field.Names, [["a"]], [[], [""], ["a", "a"], "a", None]),
        (field.OptionalNames, [None, ["a", "b"]], [[], ["a", "a"]]),
        (field.DistinctNames, [[], ["a", "b"]], [[""], ["a", "a"], None]),
        (
            field.StartKey,
            ["beginning", "end", "after:0", "after:-5", "after:18446744073709551615"],
            ["", "after", "after:", "after:x", "after:1.5", "end ", "after:1\n", 5],
        ),
        (field.EngineUrl, ["sqlite://", "mysql://h/d"], ["", "x", "a-b://h", 5]),
        (field.StopOrTopic, ["stop", "a.b"], ["", "skip me"]),
        (field.PoisonPolicy, ["stop", "skip", "a"], ["", "a b"]),
        (field.PositiveDuration, ["1ms"], ["0", 0, 5, "", "5"]),
        (field.PositiveByteSize, ["1B"], ["0", "", 1]),
        (field.Dsn, ["host=x"], ["", "x"]),
    ],
)
def test_what_a_key_accepts_and_refuses(
    kind: Any, good: list[object], bad: list[object]
) -> None:
    for value in good:
        TypeAdapter(kind).validate_python(value)
    for value in bad:
        refused(kind, value)


def test_no_heartbeat_is_an_empty_text() -> None:
    adapter = TypeAdapter(field.OptionalDuration)
    assert [adapter.validate_python(v) for v in ("", "0", "10s")] == [0, 0, 10]
    assert [adapter.dump_python(v) for v in (0.0, 10.0)] == ["", "10s"]


def test_properties_become_the_texts_that_librdkafka_takes() -> None:
    written = {"a": "x", "b": True, "c": 5, "d": 0.5}
    read = TypeAdapter(field.Properties).validate_python(written)
    assert read == {"a": "x", "b": "true", "c": "5", "d": "0.5"}


def test_an_unquoted_dot_in_a_property_is_explained() -> None:
    assert "quotes" in refused(field.Properties, {"bootstrap": {"servers": "x"}})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("5", 5),
        ('["a", "b"]', ["a", "b"]),
        ('{ a = "b" }', {"a": "b"}),
        ("20s", "20s"),
        ("2020-01-01", "2020-01-01"),
        ("1\nother = 2", "1\nother = 2"),
        ("", ""),
    ],
)
def test_an_override_is_read_as_toml_where_it_is(text: str, value: object) -> None:
    assert read_override(text) == value


class Example(field.Section):
    text: str = ""
    switch: bool = False
    number: int = 0
    names: field.Names = Field(default=["a"])
    wait: field.Duration = 0.0


def test_an_override_gets_the_type_of_its_key() -> None:
    example = Example.model_validate(
        {
            "text": EnvironmentText("0123"),
            "switch": EnvironmentText("true"),
            "number": EnvironmentText("5"),
            "names": EnvironmentText('["x"]'),
            "wait": EnvironmentText("20s"),
        }
    )
    assert example.model_dump(mode="json") == {
        "text": "0123",
        "switch": True,
        "number": 5,
        "names": ["x"],
        "wait": "20s",
    }
    assert type(example.text) is str


def test_the_file_itself_is_not_guessed_at() -> None:
    for key, value in (("switch", "true"), ("number", "5"), ("text", 5)):
        with pytest.raises(ValidationError):
            Example.model_validate({key: value})
