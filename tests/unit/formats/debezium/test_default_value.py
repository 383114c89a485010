"""Defaults as pg_get_expr prints them: of PostgreSQL 18."""

import pytest

from walstream.formats.debezium.default_value import default_json
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.op import ColumnFacts

_NUMERIC_5_2 = 327686


def shown(expression: str, name: str, oid: int, modifier: int = -1) -> str:
    types = ConnectTypes(DebeziumOptions("app"))
    element = PgType(ELEMENTS[oid]) if oid in ELEMENTS else None
    into = types.of(PgType(oid, name, modifier, (), element), lambda _: None)
    assert into is not None
    facts = ColumnFacts(default=expression, type_oid=oid, type_name=name)
    return default_json(facts, into)


@pytest.mark.parametrize(
    ("expression", "name", "oid", "json"),
    [
        ("7", "int4", 23, "7"),
        ("'-1'::integer", "int4", 23, "-1"),
        ("(- 1)", "int4", 23, ""),
        ("nextval('t_id_seq'::regclass)", "int4", 23, "0"),
        ("(1 + 2)", "int4", 23, ""),
        ("'9223372036854775807'::bigint", "int8", 20, "9223372036854775807"),
        ("NULL::integer", "int4", 23, ""),
        ("true", "bool", 16, "true"),
        ("false", "bool", 16, "false"),
        ("NULL::boolean", "bool", 16, ""),
        ("'dflt'::text", "text", 25, '"dflt"'),
        ("'it''s'::text", "text", 25, '"it\'s"'),
        ("'a'::text || 'b'::text", "text", 25, ""),
        ("('a'::text || 'b'::text)", "text", 25, ""),
        ("upper('x'::text)", "text", 25, '""'),
        ("CURRENT_USER", "text", 25, ""),
        ("7", "text", 25, '"7"'),
        ("true", "varchar", 1043, '"true"'),
        ("''::text", "text", 25, '""'),
        ("E'a\\\\b'::text", "text", 25, '"a\\\\b"'),
        ("'x'::character varying", "varchar", 1043, '"x"'),
        ("'ab'::bpchar", "bpchar", 1042, '"ab"'),
        ("'x'::citext", "citext", 16500, ""),
        ("1.5", "float8", 701, "1.5"),
        ("'-Infinity'::double precision", "float8", 701, '"-Infinity"'),
        ("random()", "float8", 701, "0.0"),
        ("now()", "timestamptz", 1184, '"1970-01-01T00:00:00.000000Z"'),
        ("CURRENT_TIMESTAMP", "timestamptz", 1184, '"1970-01-01T00:00:00.000000Z"'),
        ("CURRENT_DATE", "date", 1082, "0"),
        ("'2020-02-29'::date", "date", 1082, "18321"),
        ("('now'::text)::date", "date", 1082, ""),
        ("'12:00:00'::time without time zone", "time", 1083, "43200000000"),
        ("'1 day'::interval", "interval", 1186, "86400000000"),
        ("'{}'::jsonb", "jsonb", 3802, '"{}"'),
        (
            "gen_random_uuid()",
            "uuid",
            2950,
            '"00000000-0000-0000-0000-000000000000"',
        ),
        ("'\\x00'::bytea", "bytea", 17, ""),
        ("'$1.00'::money", "money", 790, ""),
        ("1.5", "numeric", 1700, ""),  # a struct has no default
        ("'{1}'::integer[]", "_int4", 1007, ""),
    ],
)
def test_a_default_is_shown_as_by_debezium(
    expression: str, name: str, oid: int, json: str
) -> None:
    assert shown(expression, name, oid) == json


def test_a_default_follows_the_columns_modifier() -> None:
    assert shown("1.5", "numeric", 1700, _NUMERIC_5_2) == '"AJY="'
    assert shown("'NaN'::numeric", "numeric", 1700, _NUMERIC_5_2) == ""
    moment = "'2020-01-01 00:00:00'::timestamp without time zone"
    assert shown(moment, "timestamp", 1114, 3) == "1577836800000"
    assert shown("B'1'::\"bit\"", "bit", 1560, 1) == "true"
    assert shown("B'101'::\"bit\"", "bit", 1560, 3) == '"BQ=="'


def test_an_enum_shows_a_label_that_it_has() -> None:
    labels = ("sad", "o,k")
    types = ConnectTypes(DebeziumOptions("app"))
    into = types.of(PgType(16500, "mood", labels=labels), lambda _: None)
    assert into is not None
    found = [
        default_json(ColumnFacts(default=told, type_name="mood", labels=labels), into)
        for told in ("'o,k'::mood", "'gone'::mood", "f('sad'::mood)")
    ]
    assert found == ['"o,k"', "", ""]


def test_a_domain_shows_none() -> None:
    assert shown("7", "posint", 23) == ""
