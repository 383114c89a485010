"""A table's name is as much as the format tells."""

from walstream.cli.tail.content import Content, Format


def test_full_name_has_the_schema_where_the_format_tells_it() -> None:
    assert Content(Format.OP, schema="s", table="t").full_table == "s.t"
    assert Content(Format.EVENT, table="t").full_table == "t"
    assert Content(Format.TEXT).full_table is None
