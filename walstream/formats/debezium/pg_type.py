"""The type of a column, its domain resolved: from the stream and from the catalog."""

from dataclasses import dataclass
from typing import Final

from walstream.op import ColumnFacts, Table

NOTHING: Final = ColumnFacts()


@dataclass(frozen=True, slots=True)
class PgType:
    """A type of PostgreSQL; a domain is the type below it."""

    oid: int
    name: str = ""  # "": not known
    modifier: int = -1
    labels: tuple[str, ...] = ()  # of an enum
    element: "PgType | None" = None  # of an array


def facts_of(table: Table, index: int) -> ColumnFacts:
    """Return the catalog's facts of a column; those of nothing, if none were asked."""
    return table.facts[index] if index < len(table.facts) else NOTHING


def type_of(table: Table, index: int) -> PgType:
    """Return the type of a column.

    Without facts the stream's own oid and modifier say what a built-in type is.
    """
    facts = facts_of(table, index)
    streamed = table.type_oids[index] if index < len(table.type_oids) else 0
    oid = facts.type_oid or streamed
    modifier = table.modifiers[index] if index < len(table.modifiers) else -1
    name = facts.type_name
    if facts.base_oid:
        oid, name, modifier = facts.base_oid, facts.base_name, facts.base_modifier
    element_oid = facts.element_oid or ELEMENTS.get(oid, 0)
    if not element_oid:
        return PgType(oid, name, modifier, facts.labels)
    element = PgType(element_oid, facts.element_name, modifier, facts.labels)
    return PgType(oid, name, modifier, (), element)


ELEMENTS: Final = {
    1000: 16,  # bool
    1001: 17,  # bytea
    1002: 18,  # "char"
    1003: 19,  # name
    1016: 20,  # int8
    1005: 21,  # int2
    1007: 23,  # int4
    1009: 25,  # text
    1028: 26,  # oid
    199: 114,  # json
    143: 142,  # xml
    1017: 600,  # point
    651: 650,  # cidr
    1021: 700,  # float4
    1022: 701,  # float8
    791: 790,  # money
    1040: 829,  # macaddr
    775: 774,  # macaddr8
    1041: 869,  # inet
    1014: 1042,  # bpchar
    1015: 1043,  # varchar
    1182: 1082,  # date
    1183: 1083,  # time
    1115: 1114,  # timestamp
    1185: 1184,  # timestamptz
    1187: 1186,  # interval
    1270: 1266,  # timetz
    1561: 1560,  # bit
    1563: 1562,  # varbit
    1231: 1700,  # numeric
    2201: 1790,  # refcursor
    2951: 2950,  # uuid
    3643: 3614,  # tsvector
    3645: 3615,  # tsquery
    3807: 3802,  # jsonb
    3905: 3904,  # int4range
    3907: 3906,  # numrange
    3909: 3908,  # tsrange
    3911: 3910,  # tstzrange
    3913: 3912,  # daterange
    3927: 3926,  # int8range
}
"""Elements of built-in arrays, by the array's oid."""
