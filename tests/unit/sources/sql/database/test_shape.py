"""Shapes travel, and their names are quoted."""

import pickle

from sqlalchemy import select
from sqlalchemy.types import BigInteger, NullType

from walstream.sources.sql.database.shape import SqlColumn, SqlTableShape

ID = SqlColumn('I"d', "BIGINT", BigInteger())
OTHER = SqlColumn("order", "UNKNOWN", NullType())
SHAPE = SqlTableShape("S.t", "S", "t; DROP", ID, (OTHER, ID))


def test_shape_travels_and_is_compared_by_names_and_types() -> None:
    assert pickle.loads(pickle.dumps(SHAPE)) == SHAPE  # noqa: S301 - our own
    another = SqlColumn('I"d', "INTEGER", BigInteger())
    assert SqlTableShape("S.t", "S", "t; DROP", another, (OTHER, another)) != SHAPE


def test_key_is_found_among_the_columns() -> None:
    assert SHAPE.names == ("order", 'I"d')
    assert SHAPE.key_place == 1


def test_each_name_is_quoted_where_it_has_to_be() -> None:
    assert " ".join(str(select(SHAPE.clause())).split()) == (
        'SELECT "S"."t; DROP"."order", "S"."t; DROP"."I""d" FROM "S"."t; DROP"'
    )
