"""Numbers of fields by the versions of a schema."""

from collections.abc import Sequence

import pytest

from walstream.errors import HistoryError
from walstream.formats.encodings.protobuf import covers, number, parsed_proto
from walstream.formats.encodings.protobuf.numbering import number_text
from walstream.formats.encodings.protobuf.schema_reader import BadProto

HEAD = 'syntax = "proto3"; package a; message V {'


def fields(*names: str) -> str:
    """Return a text of these fields, without numbers."""
    return f"{HEAD} {''.join(f'optional {name}; ' for name in names)}}}"


def numbers(text: str) -> dict[str, int]:
    return {name: one.number for name, one in parsed_proto(text).first.live.items()}


def over(*shapes: Sequence[str], keep: bool = False) -> list[str]:
    """Return the texts of versions that follow each other."""
    history: list[str] = []
    for shape in shapes:
        history.append(number_text(fields(*shape), history, keep=keep))
    return history


def test_new_names_get_the_next_numbers() -> None:
    _, latest = over(["int32 a", "string b"], ["string z", "int32 a", "string b"])
    assert numbers(latest) == {"z": 3, "a": 1, "b": 2}


def test_those_of_names_that_are_gone_are_reserved() -> None:
    *_, latest = over(["int32 a", "int32 b", "int32 c"], ["int32 c", "int32 d"])
    assert "reserved 1 to 2;" in latest
    assert 'reserved "a", "b";' in latest
    assert numbers(latest) == {"c": 3, "d": 4}


def test_one_that_comes_back_has_its_number_and_another_type_another() -> None:
    *_, latest = over(["int32 a", "int32 b"], ["int32 a"], ["int32 a", "int32 b"])
    assert numbers(latest) == {"a": 1, "b": 2}
    *_, latest = over(["int32 a", "int32 b"], ["int32 a"], ["int32 a", "string b"])
    assert numbers(latest) == {"a": 1, "b": 3}
    assert "reserved 2;" in latest
    assert '"b"' not in latest


def test_a_type_that_changes_keeps_its_number() -> None:
    """So that a registry sees it."""
    *_, latest = over(["int32 a"], ["string a"])
    assert numbers(latest) == {"a": 1}


def test_fields_may_stay_as_deprecated() -> None:
    first, second, third = over(
        ["int32 a", "int32 b"],
        ["int32 a", "int32 c"],
        ["int32 a", "int32 b"],
        keep=True,
    )
    assert "optional int32 b = 2 [deprecated = true];" in second
    assert numbers(second) == {"a": 1, "c": 3}
    assert third == first  # which the registry has already
    made = number_text(fields("int32 b"), [first, second], keep=True)
    assert numbers(made) == {"b": 2}
    assert "c = 3 [deprecated = true];" in made


def test_a_version_that_has_all_is_taken_as_it_is() -> None:
    text = f"{HEAD} optional int32 a = 7; }}"
    assert number_text(fields("int32 a"), [text], keep=False) == text
    shape = parsed_proto(fields("int32 a"), bare=True)
    assert covers(parsed_proto(text), shape)
    assert not covers(parsed_proto(text.replace("package a", "package b")), shape)
    assert not covers(parsed_proto(text.replace("V", "W")), shape)
    assert not covers(parsed_proto(text.replace("int32 a", "int64 a")), shape)


def test_numbers_that_others_reserved_are_kept_out() -> None:
    text = f"{HEAD} int32 b = 18999; reserved 20000, 20002 to 20005; }}"
    made = number_text(fields("int32 a", "int32 c"), [text], keep=False)
    assert numbers(made) == {"a": 20006, "c": 20007}
    assert "reserved 18999 to 18999" not in made
    assert "reserved 18999, 20000, 20002 to 20005;" in made


def test_no_field_has_a_number_of_protobufs_own() -> None:
    text = f"{HEAD} int32 b = 18999; }}"
    made = number_text(fields("int32 a", "int32 b"), [text], keep=False)
    assert numbers(made) == {"a": 20000, "b": 18999}


def test_messages_that_are_not_used_any_longer_stay() -> None:
    text = f"{HEAD} Point p = 1; message Point {{ double x = 1; }} }}"
    made = number_text(fields("int32 a"), [text], keep=False)
    assert parsed_proto(made).first.message("Point") is not None
    file = parsed_proto(fields("int32 Point"), bare=True)
    assert number(file, [parsed_proto(text)]).first.messages == ()


def test_a_number_that_two_names_had_is_the_later_ones() -> None:
    one, other = (f"{HEAD} int32 {name} = 1; }}" for name in "ab")
    made = number_text(fields("int32 a", "int32 b"), [one, other], keep=False)
    assert numbers(made) == {"a": 2, "b": 1}


def test_only_the_latest_version_has_to_be_read() -> None:
    good = f"{HEAD} int32 a = 4; reserved 5; }}"
    assert numbers(number_text(fields("int32 b"), ["?", good], keep=False)) == {"b": 6}
    with pytest.raises(BadProto):
        number_text(fields("int32 b"), [good, "?"], keep=False)


def test_numbers_come_to_an_end() -> None:
    text = f"{HEAD} int32 b = 536870911; }}"
    with pytest.raises(HistoryError, match="more columns"):
        number_text(fields("int32 a"), [text], keep=False)
