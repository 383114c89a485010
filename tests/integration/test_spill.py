"""Transactions too large for the server's memory: counted, and said when they grow."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from secrets import token_hex
from typing import Any

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import as_json, verb
from tests.support.programs.walstream import Walstream
from walstream.postgres import slot as slots
from walstream.postgres import spill
from walstream.postgres.connection import session
from walstream.testing.servers import LocalPostgres
from walstream.testing.servers.port import free_port

MIB = 1 << 20
ROWS = 20_000  # more than 4 MiB as they are written to the slot's files
INSERT = "INSERT INTO t SELECT n, repeat('x', 100) FROM generate_series(1, %s) n"
ABOVE = "more than alarm_spill (1.0 MiB)"
BELOW = "large transactions on disk are below the alarm again"


@dataclass(frozen=True)
class Run:
    walstream: Walstream
    port: int

    def source(self) -> dict[str, Any]:
        (found,) = as_json(self.walstream.configuration, "status", "status")["sources"]
        return dict(found)

    def until_exit_code(self, code: int) -> dict[str, Any]:
        """Wait for what its status tells of all: a busy worker reports late."""
        found: dict[str, Any] = {}

        def told() -> bool:
            found.update(self.source())
            return bool(found["exit_code"] == code)

        wait_until(told, 30, f"its exit code is {code}")
        return found

    def printed(self) -> str:
        """Give what a person sees, without the lines that were broken."""
        return " ".join(verb(self.walstream.configuration, "status").stdout.split())

    def metric(self, name: str) -> float | None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == name:
                    return float(sample.value)
        return None


Start = Callable[..., Run]


@pytest.fixture(params=[15, 18], ids=["pg15", "pg18"])
def server(own_postgres: OwnPostgres, request: pytest.FixtureRequest) -> LocalPostgres:
    settings = {"wal_level": "logical", "logical_decoding_work_mem": "64kB"}
    return own_postgres(request.param, **settings)


@pytest.fixture
def database(server: LocalPostgres) -> Database:
    made = Database(server)
    made.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    return made


@pytest.fixture
def start(runs: Runs) -> Start:
    def make(dsn: str, **source: Any) -> Run:
        port = free_port()
        walstream = runs(
            dsn,
            source={"alarm_spill": "1MiB", **source},
            top={"http": {"listen": f"127.0.0.1:{port}"}},
        )
        walstream.start().streaming()
        return Run(walstream, port)

    return make


@contextmanager
def large(database: Database) -> Iterator[psycopg.Connection[Any]]:
    """Leave a transaction open whose rows no memory of the slot takes."""
    with psycopg.connect(database.dsn) as writer:
        writer.execute(INSERT, (ROWS,))
        # what the WAL writer has not flushed, no slot reads
        database.execute("CHECKPOINT")
        yield writer


@pytest.mark.same_on_15
def test_what_lies_on_disk_is_said_while_it_does_and_counted(
    database: Database, start: Start, reader: Reader
) -> None:
    run = start(database.dsn)
    slot = run.walstream.slot
    assert "spilled" not in run.printed()
    with large(database) as writer:
        run.walstream.until(ABOVE)
        assert run.walstream.said("FROM pg_stat_activity")
        found = run.until_exit_code(5)
        (problem,) = found["problems"]
        assert f"files of slot {slot!r}, {ABOVE}" in problem
        assert "logical_decoding_work_mem" in problem
        assert found["slot"]["spill_txns"] == 1
        assert min(found["slot"]["spilled"], found["slot"]["spill_bytes"]) > MIB
        printed = run.printed()
        assert "1 large transaction spilled to disk" in printed
        assert "of it there now" in printed
        wait_until(
            lambda: (run.metric("walstream_slot_spilled_bytes") or 0) > MIB, 20, "told"
        )
        assert run.metric("walstream_slot_spill_transactions_total") == 1
        assert (run.metric("walstream_slot_spill_bytes_total") or 0) > MIB
        assert run.metric("walstream_slot_alarm_spill_bytes") == MIB
        wait_until(lambda: run.metric("walstream_source_up") == 0, 20, "it is red")
        writer.commit()
    reader.count(ROWS)
    run.walstream.until(BELOW)
    found = run.until_exit_code(0)
    assert found["problems"] == []
    assert found["slot"]["spilled"] == 0
    assert "0 B of it there now" in run.printed()
    wait_until(lambda: run.metric("walstream_slot_spilled_bytes") == 0, 20, "told")
    assert (run.metric("walstream_slot_spill_bytes_total") or 0) > MIB
    wait_until(lambda: run.metric("walstream_source_up") == 1, 20, "it is up")


@pytest.fixture
def poor(database: Database) -> str:
    """Make a role as the documents have it, that may see no files."""
    name = f"poor_{token_hex(4)}"
    database.execute(
        f"CREATE ROLE {name} LOGIN REPLICATION;"
        f"CREATE PUBLICATION walstream FOR ALL TABLES;"
        f"GRANT SELECT ON t TO {name}"
    )
    return name


@pytest.mark.same_on_15
def test_a_role_that_may_not_see_the_files_streams_and_is_told_what_is_counted(
    server: LocalPostgres, database: Database, start: Start, poor: str, reader: Reader
) -> None:
    run = start(make_conninfo(database.dsn, user=poor), tables=[])
    with large(database) as writer:
        wait_until(lambda: run.source()["slot"]["spill_txns"] == 1, 30, "counted")
        found = run.source()
        assert (found["slot"]["spilled"], found["problems"]) == (None, [])
        assert found["exit_code"] == 0
        assert "this role may not see how much is there now" in run.printed()
        wait_until(
            lambda: run.metric("walstream_slot_spill_bytes_total"), 20, "it is told"
        )
        assert run.metric("walstream_slot_spilled_bytes") is None
        # nor was the server's log filled with refusals
        assert "permission denied" not in server.log.read_text("utf-8", "replace")
        writer.commit()
    reader.count(ROWS)
    database.execute("TRUNCATE t")
    # as docs/operations.md says
    database.execute(f"GRANT EXECUTE ON FUNCTION pg_ls_replslotdir(text) TO {poor}")
    with large(database) as writer:
        run.walstream.until(ABOVE)
        writer.rollback()
    run.walstream.until(BELOW)


def test_a_slot_that_is_gone_has_no_files(database: Database) -> None:
    with session(database.dsn) as connection:
        assert spill.on_disk(connection, "gone") is None
        assert slots.health(connection, "gone") is None
        connection.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        found = slots.health(connection, "s")
        assert found is not None
        assert (found.spill_txns, found.spill_bytes, found.spilled) == (0, 0, 0)


def test_a_session_that_ended_is_no_lack_of_a_right(database: Database) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        end = "SELECT pg_terminate_backend(%s, 5000)"
        assert database.fetch(end, connection.info.backend_pid) == [(True,)]
        with pytest.raises(psycopg.OperationalError):
            spill.on_disk(connection, "s")
