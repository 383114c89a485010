"""Who is to blame for an error of reading. The rest: tests/integration."""

import psycopg
import pytest

from walstream.op import Table
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    Doubtful,
    TableRewritten,
)
from walstream.sources.postgres.backfill.reader import _judged
from walstream.spark.outcome import Unreadable

CHUNK = Chunk(7, ChunkRelation("public", "t", 1, Table("public", "t", ("id",))), None)


def of(state: str | None) -> psycopg.Error:
    kind = psycopg.Error if state is None else psycopg.errors.lookup(state)
    return kind("a value of a row")


@pytest.mark.parametrize(
    "state", [None, "08006", "40001", "53300", "57P01", "57014", "55P03", "25P03"]
)
def test_a_connection_or_the_moment_is_to_blame(state: str | None) -> None:
    error = of(state)
    assert _judged(error, CHUNK) is error


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("22012", Unreadable),
        ("54000", Unreadable),
        ("XX001", Unreadable),
        ("42501", Unreadable),
        ("58030", Doubtful),
        ("XX000", Doubtful),
        ("42P01", TableRewritten),
    ],
)
def test_the_rows_are_to_blame(state: str, kind: type) -> None:
    found = _judged(of(state), CHUNK)
    assert type(found) is kind
    assert "a value of a row" not in str(found)
