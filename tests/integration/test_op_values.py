"""Typed values of `op` come back with the texts that PostgreSQL writes."""

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from tests.support.loads.registered_op import OPTIONS, back
from walstream.formats.encodings.avro.op import AvroOp
from walstream.op import Kind, ReplicationOp, Table

pytestmark = pytest.mark.same_on_15

VALUES = {
    "float8": (701, -1, "random() * 10 ^ (random() * 600 - 300)"),
    "whole8": (701, -1, "trunc(random() * 10 ^ (random() * 25))"),
    "float4": (700, -1, "(random() * 10 ^ (random() * 70 - 35))::float4"),
    "whole4": (700, -1, "trunc(random() * 10 ^ (random() * 12))::float4"),
    "power": (701, -1, "2.0::float8 ^ (random() * 2000 - 1000)::int"),
    "date": (1082, -1, "'0001-01-01 BC'::date + (random() * 1e6)::int"),
    "time": (1083, -1, "(random() * 86399 || ' s')::interval::time"),
    "short": (1083, 3, "(random() * 86399 || ' s')::interval::time(3)"),
    "stamp": (1114, -1, "'1990-01-01'::timestamp + random() * '9999 y'::interval"),
    "milli": (1114, 3, "(now() - random() * '3000 y'::interval)::timestamp(3)"),
    "zoned": (1184, -1, "now() - random() * '3000 y'::interval"),
    "number": (1700, 786_439, "round((random() * 1e6)::numeric, 3)"),
}
SETTINGS = "SET timezone = 'UTC'; SET extra_float_digits = 3; SET datestyle = 'ISO'"


def test_random_values_come_back(database: Database) -> None:
    oids = tuple(oid for oid, _, _ in VALUES.values())
    modifiers = tuple(one for _, one, _ in VALUES.values())
    table = Table("public", "t", tuple(VALUES), (), oids, modifiers=modifiers)
    encoder = AvroOp(table, OPTIONS)
    texts = ", ".join(f"({one})::text" for _, _, one in VALUES.values())
    with psycopg.connect(database.dsn) as connection:
        connection.execute(SETTINGS)
        rows = connection.execute(f"SELECT {texts} FROM generate_series(1, 5000)")  # noqa: S608
        for row in rows:
            one = ReplicationOp(Kind.INSERT, table, 1, 0, None, list(row))
            assert back(encoder, one).new == list(row)
