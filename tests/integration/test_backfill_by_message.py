"""Backfills that are asked for by logical messages, of listed tables alone."""

import json
from typing import Any

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.walstream import Walstream

TABLES = """
CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1), (2);
CREATE TABLE secret (id int PRIMARY KEY); INSERT INTO secret VALUES (7);
CREATE TABLE bare (id int)
"""
LISTED = {"backfill_by_message": ["public.t", "public.bare"]}
REFUSED = "request for a backfill by a logical message is refused"
ACCEPTED = "backfill requested by a logical message"


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    database.execute(TABLES)
    return runs(database.dsn, source={"backfill": "never", **LISTED})


def emit(database: Database, content: Any, *, transactional: bool = True) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    with psycopg.connect(database.dsn) as session:
        session.execute(
            "SELECT pg_logical_emit_message(%s, 'walstream.backfill', %s)",
            (transactional, text),
        )


def ids(records: list[Record], table: str) -> list[str]:
    return [r.new["id"] for r in records if r.op.table.name == table]


@pytest.mark.parametrize("transactional", [True, False], ids=["within", "alone"])
def test_a_listed_table_is_read(
    database: Database, walstream: Walstream, reader: Reader, transactional: bool
) -> None:
    with walstream:
        walstream.streaming()
        emit(database, {"tables": ["public.t"]}, transactional=transactional)
        reader.until(lambda records: ids(records, "t") == ["1", "2"])
        assert walstream.said(ACCEPTED)[0]["table"] == "public.t"


def test_a_request_that_was_rolled_back_is_none(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    with walstream:
        walstream.streaming()
        with psycopg.connect(database.dsn) as session:
            session.execute(
                "SELECT pg_logical_emit_message(true, 'walstream.backfill',"
                """ '{"tables": ["public.t"]}')"""
            )
            session.rollback()
        database.execute("INSERT INTO t VALUES (9)")
        reader.until(lambda records: ids(records, "t") == ["9"])
    assert not walstream.said(ACCEPTED)


def test_all_else_is_refused_counted_and_stops_nothing(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    contents: list[Any] = [
        "no json",
        {"tables": ["public.secret"]},
        {"tables": ["public.t"], "where": "true"},
        {"tables": ["public.bare"]},  # listed, but it has no key
    ]
    with walstream:
        walstream.streaming()
        for content in contents:
            emit(database, content)
        database.execute("INSERT INTO t VALUES (9)")
        reader.until(lambda records: ids(records, "t") == ["9"])
        wait_until(lambda: len(walstream.said(REFUSED)) == 4, 20, "all are refused")
    assert not walstream.said(ACCEPTED)
    assert not ids(reader.read(), "secret")
    assert "secret" not in "".join(one["error"] for one in walstream.said(REFUSED))


def test_nobody_is_heard_where_no_table_is_listed(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.source = {"backfill": "never"}
    with walstream:
        walstream.streaming()
        emit(database, {"tables": ["public.t"]})
        database.execute("INSERT INTO t VALUES (9)")
        reader.until(lambda records: ids(records, "t") == ["9"])
    assert not walstream.said(ACCEPTED)
    assert not walstream.said(REFUSED)
