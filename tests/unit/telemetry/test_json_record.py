"""Dataclasses come back from JSON as they were, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.telemetry.json_record import (
    document,
    dumps,
    loads,
    read,
    read_all,
    read_optional,
    shallow,
)


@dataclass(frozen=True, slots=True)
class Inner:
    text: str
    number: float = 0.0


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    inner: Inner | None = None
    inners: Mapping[str, Inner] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    texts: list[str] = field(default_factory=list)
    flag: bool = False
    nested: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


INNER = st.builds(Inner, st.text(), st.floats(allow_nan=False))
OUTER = st.builds(
    Outer,
    st.text(),
    st.none() | INNER,
    st.dictionaries(st.text(), INNER),
    st.lists(st.integers()).map(tuple),
    st.lists(st.text()),
    st.booleans(),
    st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers())),
)


@given(OUTER)
def test_what_is_written_is_read(made: Outer) -> None:
    assert read(Outer, loads(dumps(made))) == made
    assert read(Outer, document(made)) == made
    assert loads(dumps(made)) == document(made)


def test_of_another_version_what_is_known_is_read() -> None:
    found = read(Outer, {"name": "a", "inner": {"text": "b", "new": []}, "more": {}})
    assert found == Outer("a", Inner("b"))


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        {},  # no name
        {"name": None},
        {"name": 5},
        {"name": "a", "inner": "b"},
        {"name": "a", "inner": {}},
        {"name": "a", "inners": []},
        {"name": "a", "inners": {"b": None}},
        {"name": "a", "numbers": {}},
        {"name": "a", "numbers": ["1"]},
        {"name": "a", "flag": "yes"},
        {"name": "a", "nested": {"b": {"c": "d"}}},
    ],
)
def test_what_does_not_fit_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match=r"expected|no '"):
        read(Outer, found)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff"])
def test_a_text_that_is_no_object_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the standard library's words
        loads(text)


def test_a_null_is_none_where_that_may_be() -> None:
    assert read_optional(Inner, None) is None
    assert read_optional(Inner, {"text": "a"}) == Inner("a")
    assert read_all(Inner, {"x": {"text": "a"}}) == {"x": Inner("a")}
    with pytest.raises(ValueError, match="expected"):
        read_all(Inner, None)


def test_fields_are_given_as_they_are_and_any_mapping_is_written() -> None:
    inner = Inner("a")
    assert shallow(Outer("x", inner))["inner"] is inner
    assert dumps({"a": MappingProxyType({"b": inner})}) == (
        '{"a": {"b": {"text": "a", "number": 0.0}}}'
    )
