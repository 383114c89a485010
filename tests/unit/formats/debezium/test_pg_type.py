"""Types of columns, from the stream and from the catalog."""

from walstream.formats.debezium.pg_type import ELEMENTS, PgType, type_of
from walstream.op import ColumnFacts, Table


def of(facts: ColumnFacts | None, oid: int = 0, modifier: int = -1) -> PgType:
    told = () if facts is None else (facts,)
    return type_of(
        Table("s", "t", ("c",), (), (oid,), modifiers=(modifier,), facts=told), 0
    )


def test_without_facts_the_stream_names_what_is_built_in() -> None:
    assert of(None, 1700, 327686) == PgType(1700, "", 327686)
    assert of(None, 1231, 327686) == PgType(
        1231, "", 327686, (), PgType(1700, "", 327686)
    )
    assert type_of(Table("s", "t", ("c",)), 0) == PgType(0)


def test_a_domain_is_its_base_with_the_domains_modifier() -> None:
    facts = ColumnFacts(
        type_oid=16821, type_name="money2", base_oid=1700, base_name="numeric",
        base_modifier=655366,
    )  # fmt: skip
    assert of(facts, 16821) == PgType(1700, "numeric", 655366)


def test_an_array_has_its_element_with_the_labels() -> None:
    facts = ColumnFacts(
        type_oid=16809, type_name="_mood", element_oid=16810, element_name="mood",
        labels=("sad", "ok"),
    )  # fmt: skip
    element = PgType(16810, "mood", -1, ("sad", "ok"))
    assert of(facts, 2277) == PgType(16809, "_mood", -1, (), element)


def test_elements_are_no_arrays() -> None:
    assert not ELEMENTS.keys() & set(ELEMENTS.values())
