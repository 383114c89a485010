"""A table with a column of each type that the Debezium formats have, and rows of it.

`python -m tests.support.oracles.every_type` prints them as JSON, and a record of each
kind that a real Debezium wrote: tests/data/debezium/Avro.java makes Avro of that.
"""

import json
from typing import Any, Final, NamedTuple

from tests.support.oracles.debezium import golden
from walstream.formats.debezium import DebeziumOptions, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.pg_type import ELEMENTS
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table


class Sample(NamedTuple):
    """A type, a default that its schema shows, and two of its texts."""

    oid: int
    name: str
    texts: tuple[str, str]
    default: str = ""
    modifier: int = -1
    labels: tuple[str, ...] = ()


_FIRST: Final = 17_000  # an oid of an extension's type
_WKB: Final = "0101000020E6100000000000000000F03F0000000000000040"
SAMPLES: Final = (
    Sample(16, "bool", ("t", "f"), "true"),
    Sample(17, "bytea", ("\\x00ff10", "\\x")),
    Sample(18, "char", ("x", "")),
    Sample(19, "name", ("nam", "é")),
    Sample(20, "int8", ("9223372036854775807", "-9223372036854775808"), "'5'::bigint"),
    Sample(21, "int2", ("-32768", "32767"), "3"),
    Sample(23, "int4", ("-2147483648", "64"), "7"),
    Sample(25, "text", ('a"\\\u0001\U0001f600', ""), "'d''ü'::text"),
    Sample(26, "oid", ("4294967295", "0")),
    Sample(114, "json", ('{"a": 1}', "[]"), "'{}'::json"),
    Sample(142, "xml", ("<a/>", "")),
    Sample(600, "point", ("(1,-2.5)", "(0,1e+300)")),
    Sample(650, "cidr", ("10.0.0.0/8", "::/0")),
    Sample(700, "float4", ("1.1", "-3.4e+38"), "1.1"),
    Sample(701, "float8", ("1.7976931348623157e+308", "1e-05"), "'-2.5'::numeric"),
    Sample(774, "macaddr8", ("08:00:2b:01:02:03:04:05", "00:00:00:00:00:00:00:00")),
    Sample(790, "money", ("$1,234.56", "-$0.01")),
    Sample(829, "macaddr", ("08:00:2b:01:02:03", "00:00:00:00:00:00")),
    Sample(869, "inet", ("10.0.0.1", "::1")),
    Sample(1042, "bpchar", ("ab ", "  "), "'x'::bpchar", 7),
    Sample(1043, "varchar", ("v", ""), "'w'::character varying"),
    Sample(1082, "date", ("2020-02-29", "0044-03-15 BC"), "'2020-01-01'::date"),
    Sample(1083, "time", ("03:04:05.678901", "24:00:00"), "'01:02:03'::time"),
    Sample(1083, "time", ("03:04:05.678", "00:00:00"), "'01:02:03'::time", 3),
    Sample(
        1114,
        "timestamp",
        ("2020-02-29 03:04:05.678901", "1999-12-31 23:59:59"),
        "'2020-01-01 00:00:00'::timestamp without time zone",
    ),
    Sample(1114, "timestamp", ("2020-02-29 03:04:05.678", "infinity"), "", 3),
    Sample(
        1184,
        "timestamptz",
        ("2020-02-29 03:04:05.678901+00", "-infinity"),
        "now()",
    ),
    Sample(
        1186,
        "interval",
        ("1 year 2 mons 3 days 04:05:06.789", "-00:00:01"),
        "'01:00:00'::interval",
    ),
    Sample(1266, "timetz", ("03:04:05+02", "23:59:59.9-01:30")),
    Sample(1560, "bit", ("1", "0"), "B'1'::\"bit\"", 1),
    Sample(1560, "bit", ("101", "000"), "", 3),
    Sample(1562, "varbit", ("1010101010", ""), "B'101'::\"bit\""),
    Sample(1700, "numeric", ("12345.6789", "-1000000000000000000000"), "1.5"),
    Sample(1700, "numeric", ("-123.45", "0.00"), "1.50", 327_686),
    Sample(1700, "numeric", ("12300", "-100"), "", 198_658),
    Sample(2950, "uuid", ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",) * 2),
    Sample(3614, "tsvector", ("'a':1 'b'", "")),
    Sample(3802, "jsonb", ('{"a": "é"}', "null"), "'{}'::jsonb"),
    Sample(3904, "int4range", ("[1,5)", "empty")),
    Sample(3926, "int8range", ("[1,5)", "(,)")),
    Sample(628, "line", ("{1,-1,0}", "{0,1,2e-07}")),
    Sample(3220, "pg_lsn", ("0/16B3748", "0/0")),
    Sample(_FIRST, "citext", ("A b", "")),
    Sample(_FIRST + 1, "ltree", ("a.b", "")),
    Sample(_FIRST + 2, "hstore", ('"a"=>"1 \\"x", "b"=>NULL', "")),
    Sample(_FIRST + 3, "geometry", (_WKB, _WKB.replace("20E6100000", "00"))),
    Sample(_FIRST + 4, "geography", (_WKB, _WKB)),
    Sample(_FIRST + 5, "vector", ("[1,2.5]", "[-1e-10]")),
    Sample(_FIRST + 6, "halfvec", ("[1,2.5]", "[0]")),
    Sample(_FIRST + 7, "sparsevec", ("{1:1.5,3:2}/5", "{}/3")),
    Sample(_FIRST + 8, "mood", ("sad", "o k"), "'sad'::mood", -1, ("sad", "o k")),
    Sample(1007, "_int4", ("{1,NULL,-3}", "{}")),
    Sample(1005, "_int2", ("{1,2}", "{NULL}")),
    Sample(1009, "_text", ('{"a,b",NULL,"\\"c\\\\"}', "{}")),
    Sample(1231, "_numeric", ("{1.50,-2}", "{NULL}")),
    Sample(1231, "_numeric", ("{1.50,-2.00}", "{}"), "", 327_686),
    Sample(1115, "_timestamp", ('{"2020-02-29 03:04:05.678901"}', "{infinity}")),
    Sample(1185, "_timestamptz", ('{"2020-02-29 03:04:05.678901+00"}', "{}")),
    Sample(1182, "_date", ("{2020-02-29,NULL}", "{}")),
    Sample(1183, "_time", ("{03:04:05.678901}", "{}")),
    Sample(1000, "_bool", ("{t,f}", "{NULL}")),
    Sample(1001, "_bytea", ('{"\\\\x00ff"}', "{}")),
    Sample(2951, "_uuid", ("{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "{}")),
    Sample(1022, "_float8", ("{1.5,1e+22}", "{}")),
    Sample(1021, "_float4", ("{1.5,NULL}", "{}")),
    Sample(1561, "_bit", ("{1,0}", "{}"), "", 1),
    Sample(3643, "_tsvector", ("{\"'a'\"}", "{}")),
    Sample(3905, "_int4range", ('{"[1,5)"}', "{}")),
    Sample(_FIRST + 9, "_mood", ('{sad,"o k"}', "{}"), "", -1, ("sad", "o k")),
    Sample(_FIRST + 10, "_vector", ('{"[1,2]"}', "{}")),
    Sample(_FIRST + 11, "_hstore", ('{"\\"a\\"=>NULL"}', "{}")),
    Sample(_FIRST + 12, "_sparsevec", ('{"{1:1.5}/5"}', "{}")),
    Sample(_FIRST + 13, "_geometry", (f"{{{_WKB}}}", "{}")),
    Sample(_FIRST + 14, "_pair", ('{"(1,x)"}', "{}")),
)
_CHOICES: Final[dict[str, list[Any]]] = {
    "decimal": ["precise", "string", "double"],
    "time": [
        *("adaptive", "adaptive_time_microseconds", "connect", "isostring"),
        *("microseconds", "nanoseconds"),
    ],
    "interval": ["numeric", "string"],
    "hstore": ["json", "map"],
    "binary": ["bytes", "base64", "base64-url-safe", "hex"],
    "unknown": [False, True],
}
MODES: Final[tuple[dict[str, Any], ...]] = tuple(
    {name: choices[number % len(choices)] for name, choices in _CHOICES.items()}
    for number in range(12)
)
"""Options, so that each mode is in one."""
ORACLE_MODES: Final = 6
"""So many of them are enough for that."""
OF_DEBEZIUM: Final = (
    "__debezium-heartbeat.dbz",
    *("dbz.message", "dbz.transaction", "dbz.public.full_", "dbz.public.nopk"),
)
"""Topics whose first record is given to the oracle, too."""
ELEMENT_OIDS: Final = {"_mood": _FIRST + 8, "_vector": _FIRST + 5}


def options(number: int, **others: Any) -> DebeziumOptions:
    """Return the options of a mode."""
    return DebeziumOptions(f"m{number}", "db", **MODES[number], **others)


def table(*, required: bool = False, defaults: bool = True) -> Table:
    """Return a table of all samples, whose columns are NOT NULL, or not."""
    facts = [ColumnFacts(not_null=True, type_oid=23, type_name="int4")]
    for one in SAMPLES:
        is_array = one.name[0] == "_"
        element = ELEMENTS.get(one.oid, ELEMENT_OIDS.get(one.name, one.oid + 100))
        facts.append(
            ColumnFacts(
                not_null=required,
                default=(one.default or None) if defaults else None,
                type_oid=one.oid,
                type_name=one.name,
                element_oid=element if is_array else 0,
                element_name=one.name[1:] if is_array else "",
                labels=one.labels,
            )
        )
    names = ("id", *(f"c{number}_{one.name}" for number, one in enumerate(SAMPLES)))
    oids = tuple(one.type_oid for one in facts)
    modifiers = (-1, *(one.modifier for one in SAMPLES))
    return Table(
        "public",
        "required" if required else "every" if defaults else "nulls",
        names,
        (0,),
        oids,
        oid=1,
        modifiers=modifiers,
        facts=tuple(facts),
    )


def tables() -> tuple[Table, ...]:
    """Return those of the oracle: nullable, NOT NULL, and without defaults."""
    return table(), table(required=True), table(defaults=False)


def ops(of: Table) -> list[ReplicationOp]:
    """Return an op with each text of the samples; or one of nulls, without defaults."""
    rows: list[list[str | None]] = [["2", *(None for _ in SAMPLES)]]
    if of.name != "nulls":
        rows = [[str(n), *(one.texts[n] for one in SAMPLES)] for n in (0, 1)]
    return [
        ReplicationOp(Kind.INSERT, of, 5, number, None, row, row_lsn=4, xid=7)
        for number, row in enumerate(rows)
    ]


def documents() -> dict[str, list[list[str | None]]]:
    """Return keys and values as JSON with schemas, by topic: what the oracle reads."""
    found: dict[str, list[list[str | None]]] = {}
    for number in range(ORACLE_MODES):
        for of in tables():
            encoder = EnvelopeEncoder(of, options(number, schemas=True), SinkTurn())
            found[f"m{number}.public.{of.name}"] = [
                [None, encoder.encode(op).decode()] for op in ops(of)
            ]
    for topic, records in golden().items():
        if topic in OF_DEBEZIUM:
            found[topic] = [[records[0].key, records[0].value]]
    return found


if __name__ == "__main__":
    print(json.dumps(documents()))  # noqa: T201 - tests/data/debezium/Avro.java reads it
