"""Dataclasses come back from JSON as they were, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walstream.telemetry.json_codec import (
    LEFT_OUT,
    absent_as,
    document,
    dumps,
    loads,
    plain,
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
    marks: frozenset[str] = frozenset()
    numbered: Mapping[int, Inner] = field(default_factory=dict)
    pair: tuple[int, str | None] = (0, None)
    pairs: tuple[tuple[float, str], ...] = ()


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
    st.frozensets(st.text()),
    st.dictionaries(st.integers(), INNER),
    st.tuples(st.integers(), st.none() | st.text()),
    st.lists(st.tuples(st.floats(allow_nan=False), st.text())).map(tuple),
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
        {"name": "a", "marks": {}},
        {"name": "a", "marks": [1]},
        {"name": "a", "numbered": {"1": None}},
        {"name": "a", "pair": [1]},
        {"name": "a", "pair": [1, 2]},
        {"name": "a", "pair": [1, "b", "c"]},
        {"name": "a", "pairs": [[1.0]]},
    ],
)
def test_what_does_not_fit_is_refused(found: object) -> None:
    with pytest.raises(ValueError, match=r"expected|no '"):
        read(Outer, found)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", b"\xff", "[" * 9999])
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


def test_a_number_that_names_something_is_read_as_one_or_refused() -> None:
    assert document(Outer("a", numbered={7: Inner("b")}))["numbered"] == {
        "7": {"text": "b", "number": 0.0}
    }
    with pytest.raises(ValueError, match="int"):
        read(Outer, {"name": "a", "numbered": {"seven": {"text": "b"}}})


def test_a_set_is_written_in_order() -> None:
    assert document(Outer("a", marks=frozenset("cab")))["marks"] == ["a", "b", "c"]


@dataclass(frozen=True, slots=True)
class Partly:
    kept: int
    gone: int = field(default=0, metadata=LEFT_OUT)
    sure: bool = field(default=True, metadata=absent_as(value=False))


def test_a_field_that_is_left_out_is_neither_written_nor_read() -> None:
    assert document(Partly(1, 2)) == {"kept": 1, "sure": True}
    assert read(Partly, {"kept": 1, "gone": 2, "sure": True}) == Partly(1)


def test_an_older_version_may_have_meant_something_else_by_saying_nothing() -> None:
    assert read(Partly, {"kept": 1}) == Partly(1, sure=False)
    assert Partly(1).sure


def test_a_value_that_is_no_record_is_read_and_written_likewise() -> None:
    made = (Inner("a"), Inner("b"))
    assert read(tuple[Inner, ...], plain(made)) == made
