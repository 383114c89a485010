"""Our reading of PostgreSQL's texts agrees with psycopg's own adapters."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql

from consumer.convert import converter
from tests.support.fixtures.postgres import PostgresServer

_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
_INDIA = timezone(timedelta(hours=5, minutes=30))
_NUMBER = st.decimals(
    allow_nan=False, allow_infinity=False, places=9
) | st.sampled_from(
    [Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1e-16000")]
)
# what PostgreSQL's interval holds; beyond that psycopg cannot send it
_SPAN = st.timedeltas(timedelta(days=-99999), timedelta(days=99999))
_ZONED = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001

CASES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "bool": (bool, st.booleans()),
    "int8": (int, st.integers(-(2**63), 2**63 - 1)),
    "float8": (float, st.floats(allow_nan=False)),
    "numeric": (Decimal, _NUMBER),
    "text": (str, _TEXT),
    "date": (date, st.dates()),
    "timestamp": (datetime, st.datetimes()),
    "timestamptz": (datetime, _ZONED),
    "time": (time, st.times()),
    "timetz": (time, st.times(timezones=st.sampled_from([UTC, _INDIA]))),
    "interval": (timedelta, _SPAN),
    "uuid": (UUID, st.uuids()),
    "bytea": (bytes, st.binary()),
    "text[]": (list[str | None], st.lists(_TEXT | st.none())),
    "int8[]": (list[int], st.lists(st.integers(-(2**63), 2**63 - 1))),
    "bytea[]": (list[bytes], st.lists(st.binary())),
    "timestamp[]": (list[datetime], st.lists(st.datetimes())),
    "jsonb": (dict, st.dictionaries(_TEXT, st.integers() | _TEXT | st.none())),
}


@pytest.fixture(scope="module")
def session(
    newest_postgres: PostgresServer,
) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    options = "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC"
    with psycopg.connect(
        newest_postgres.dsn(), options=options, autocommit=True
    ) as connection:
        yield connection


@pytest.mark.parametrize("name", CASES)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_texts_convert_as_psycopg_reads_them(
    name: str, session: psycopg.Connection[tuple[Any, ...]], data: st.DataObject
) -> None:
    kind, values = CASES[name]
    chosen = data.draw(st.lists(values, min_size=1, max_size=20))
    if name == "jsonb":
        chosen = [json.dumps(value) for value in chosen]
    row = sql.SQL("SELECT ") + sql.SQL(", ").join(
        sql.SQL("{}::{}").format(sql.Placeholder(), sql.SQL(name)) for _ in chosen
    )
    cursor = session.execute(row, chosen)
    result = cursor.pgresult
    assert result is not None
    texts = [result.get_value(0, column) for column in range(len(chosen))]
    expected = cursor.fetchone()
    convert = converter(kind)
    assert tuple(convert((text or b"").decode()) for text in texts) == expected or (
        "NaN" in str(expected)
    )
