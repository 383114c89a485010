"""Backfills that are asked for by HTTP, of a running instance."""

import json
from http.client import HTTPConnection
from typing import Any

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream
from walstream.testing.servers.port import free_port

TOKEN = "a-token-of-this-test"  # noqa: S105
TABLES = """
CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b');
CREATE TABLE bare (id int); CREATE VIEW seen AS SELECT * FROM t
"""


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    database.execute(TABLES)
    listen = f"127.0.0.1:{free_port()}"
    return runs(
        database.dsn,
        source={"backfill": "never"},
        top={"http": {"listen": listen, "token": TOKEN}},
    )


def post(
    walstream: Walstream, token: str = TOKEN, **body: Any
) -> tuple[int, dict[str, Any]]:
    connection = HTTPConnection(walstream.top["http"]["listen"], timeout=30)
    try:
        headers = {"Authorization": f"Bearer {token}"}
        connection.request("POST", "/backfill", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        return answer.status, json.loads(text) if text.startswith("{") else {}
    finally:
        connection.close()


def test_tables_and_parts_are_read_as_they_were_asked_for(
    walstream: Walstream, reader: Reader
) -> None:
    with walstream:
        walstream.streaming()
        assert post(walstream, tables=["t"], where="id > 1") == (
            202,
            {"source": "app", "tables": ["public.t"], "count": 1, "left_out": {}},
        )
        assert [record.new["id"] for record in reader.count(1)] == ["2"]
        code, found = post(walstream, tables=["public.*"], replace=True)
        assert code == 202
        assert found["left_out"] == {"public.bare": "it has no row key"}
        records = reader.count(4)[1:]
        assert [record.kind.value for record in records] == [
            "Truncate",
            "Insert",
            "Insert",
        ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"tables": ["nothing"]}, "there is no table 'public.nothing'"),
        ({"tables": ["bare"]}, "has no row key"),
        ({"tables": ["seen"]}, "has no running stream to add its rows to"),
        ({"tables": ["t"], "where": "id >"}, "does not fit table 'public.t'"),
        ({"tables": ["t"], "where": "id > 1", "replace": True}, "--replace empties"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(
    walstream: Walstream, body: dict[str, Any], said: str
) -> None:
    with walstream:
        walstream.streaming()
        code, found = post(walstream, **body)
    assert code == 400
    assert said in found["error"]
    assert "refuses for source 'app'" in found["error"]


def test_the_token_runs_no_function_as_the_role_of_walstream(
    database: Database, walstream: Walstream
) -> None:
    """Not each one is kept from its effect by a transaction that may only read."""
    slot = f"other_{database.name}"
    make = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
    database.execute(make, slot)
    drop = f"pg_drop_replication_slot('{slot}') IS NULL"
    with walstream:
        walstream.streaming()
        code, found = post(walstream, tables=["t"], where=f"id = 1 AND {drop}")
    assert code == 400
    assert "calls pg_drop_replication_slot" in found["error"]
    there = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
    assert database.fetch(there, slot)
    with psycopg.connect(database.dsn) as session:
        session.read_only = True
        session.execute(f"SELECT {drop}".encode())
    assert not database.fetch(there, slot)


def test_nothing_is_read_for_who_has_no_token(
    walstream: Walstream, reader: Reader
) -> None:
    with walstream:
        walstream.streaming()
        assert post(walstream, token="wrong", tables=["t"])[0] == 401  # noqa: S106
    assert not reader.read()
