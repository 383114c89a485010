"""`walstream positions show`: the four sides, and what `run` would do."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from pydantic import TypeAdapter

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import Terminal, as_json, is_plain, published, verb
from tests.support.programs.walstream import SINK, SOURCE, Walstream, toml
from walstream.config import load
from walstream.kafka import last_op
from walstream.lsn import parse, show
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres.connection import connect, session
from walstream.state.store import LmdbStore
from walstream.status.positions import Standing, Standings, StartOutcome, look

pytestmark = pytest.mark.same_on_15

SCHEMA = TypeAdapter(Standings)
_LOGICAL = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
_FLUSH = "SELECT pg_current_wal_flush_lsn()::text"
_WRITE = "SELECT pg_logical_emit_message(true, 'test', 'x')"


@pytest.fixture
def newest(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as fresh:
        yield fresh


@pytest.fixture
def still(database: Database, tmp_path: Path) -> Walstream:
    """Configure one that is never started, on a broker that is not there."""
    return configured(database, tmp_path)


def configured(database: Database, folder: Path) -> Walstream:
    made = Walstream(database.dsn, "127.0.0.1:1", folder, "t.")
    made.configuration.write_text(toml(made.document()))
    return made


def flushed(database: Database) -> int:
    ((text,),) = database.fetch(_FLUSH)
    return parse(text)


def begun(walstream: Walstream, database: Database) -> Position:
    """Make slot and position as they are while nothing was written since."""
    database.fetch(_LOGICAL, walstream.slot)
    with session(database.dsn) as connection:
        server = servers.look(connection)
    position = Position(
        resume=flushed(database),
        system_identifier=server.system_identifier,
        timeline=server.timeline,
        database=server.database,
        slot=walstream.slot,
    )
    store(walstream, position)
    return position


def store(walstream: Walstream, position: Position) -> None:
    with LmdbStore(walstream.state) as positions:
        positions.store(position)


def standing(walstream: Walstream) -> Standing:
    found = look(load(walstream.configuration, {}), SOURCE)
    jsonschema.validate(SCHEMA.dump_python(found, mode="json"), published("positions"))
    (one,) = found.sources
    return one


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert published("positions") == SCHEMA.json_schema(mode="serialization")


def test_before_while_and_after_a_run_and_to_its_repair(
    newest: Database, runs: Runs, reader: Reader
) -> None:
    newest.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    walstream = runs(newest.dsn, source={"retain": "64MiB"})
    file = walstream.configuration
    file.write_text(toml(walstream.document()))
    new = verb(file, "positions", "show")
    assert new.returncode == 0, new.stderr
    assert "run would create publication and slot" in new.stdout

    with walstream:
        newest.execute("INSERT INTO t DEFAULT VALUES")
        (record,) = reader.count(1)
        walstream.streaming_said()
        (found,) = as_json(file, "positions", "positions", "show")["sources"]
        assert found["verdict"]["outcome"] == "streaming"
        assert found["state"]["process"] == str(walstream.worker_pid())
        assert found["slot"]["reader"]["application"] == "walstream"
        end = found["topics"]["last"]
        assert (end["lsn"], end["seq_id"]) == (show(record.op.lsn), 0)
        assert walstream.terminate() == 0

    stopped = verb(file, "positions", "show", SOURCE).stdout
    assert is_plain(stopped.replace("\u2713", "v"))
    assert f"{show(record.op.lsn)}, 0" in stopped
    (at,) = re.findall(r"run would stream from (\S+)", stopped)
    assert re.search(rf"a rewind can reach \S+ to {at}: [1-9]", stopped), stopped

    newest.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    stop = verb(file, "positions", "show")
    assert stop.returncode == 0
    assert "run would stop with exit code 3" in stop.stdout
    (repair,) = re.findall(r"\$ walstream (.*)", stop.stdout)
    code, text = Terminal(None, *shlex.split(repair)).types("y", at="Continue?").ends()
    assert code == 0, text
    with walstream:
        newest.execute("INSERT INTO t DEFAULT VALUES")
        reader.count(2)


def test_each_side_shows_what_it_knows(still: Walstream, database: Database) -> None:
    assert standing(still).verdict.outcome is StartOutcome.CREATE
    position = begun(still, database)
    with LmdbStore(still.state) as positions:
        positions.write({"keys/public.t": [], "epoch": {"number": 3}})
        positions.store(replace(position, resume=position.resume + 1))
        positions.rewind(position.resume)
    found = standing(still)
    assert (found.verdict.outcome, found.verdict.lsn) == (
        StartOutcome.STREAM,
        position.resume,
    )
    assert found.state is not None
    assert (found.state.key_tables, found.state.epoch) == (1, 3)
    assert found.state.previous_resume == position.resume + 1
    assert found.slot is not None
    assert (found.slot.name, found.slot.sources) == (still.slot, [SOURCE])
    assert found.server is not None
    assert found.server.version.startswith(f"{database.server.version}.")
    assert 0 < found.server.kept_from <= position.resume
    assert found.window is not None
    assert found.window.oldest == found.slot.confirmed_lsn


def test_a_slot_that_others_read_is_waited_for(
    still: Walstream, database: Database
) -> None:
    begun(still, database)
    database.execute("CREATE PUBLICATION p")
    other = connect(database.dsn, replication=True)
    other.pgconn.exec_(
        f'START_REPLICATION SLOT "{still.slot}" LOGICAL 0/0'
        " (proto_version '1', publication_names 'p')".encode()
    )
    found = standing(still)
    other.close()
    assert found.verdict.outcome is StartOutcome.WAIT
    assert found.verdict.problem is not None
    assert "in use by pid" in found.verdict.problem.what


def test_a_damaged_state_leaves_the_other_sides(
    still: Walstream, database: Database
) -> None:
    begun(still, database)
    (still.state / "data.mdb").write_bytes(b"\xff" * 20_000)
    repair = "walstream positions reset app --adopt-slot"
    found = standing(still)
    assert found.state is None
    assert found.verdict.outcome is StartOutcome.STOP
    assert found.verdict.problem is not None
    assert found.verdict.problem.repair.command == repair
    assert found.slot is not None
    assert found.server is not None


def test_servers_that_are_away_leave_the_other_sides(
    newest: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_op, "_ANSWER_S", 0.5)
    still = configured(newest, tmp_path)
    position = begun(still, newest)
    with LmdbStore(still.state) as positions:
        positions.write({f"topics/{SINK}/t.public.t": {"partitions": 1}})
    found = standing(still)
    assert found.verdict.outcome is StartOutcome.STREAM
    (problem,) = found.topics.problems
    assert problem.subject == f"sink {SINK}"

    still.dsn = "host=127.0.0.1 port=1 dbname=x"
    still.configuration.write_text(toml(still.document()))
    found = standing(still)
    assert found.verdict.outcome is StartOutcome.WAIT
    assert (found.slot, found.server) == (None, None)
    assert found.state is not None
    assert found.state.resume == position.resume


def test_a_history_that_branched_off_below_the_position_stops_it(
    own_postgres: OwnPostgres, tmp_path: Path
) -> None:
    server = own_postgres(18)
    database = Database(server)
    still = configured(database, tmp_path)
    position = begun(still, database)
    server.stop()
    # an archive recovery that finds no archive ends on a timeline of its own
    (server.data / "recovery.signal").touch()
    with (server.data / "postgresql.conf").open("a") as file:
        file.write("restore_command = 'false'\n")
    server.start()
    wait_until(
        lambda: database.fetch("SELECT pg_is_in_recovery()") == [(False,)],
        20,
        "the recovery ends",
    )
    database.fetch(_WRITE)

    found = standing(still)
    assert found.server is not None
    assert found.server.timeline == 2
    assert found.verdict.outcome is StartOutcome.STREAM, found.verdict
    store(still, replace(position, resume=flushed(database)))
    found = standing(still)
    assert found.verdict.outcome is StartOutcome.STOP
    assert found.verdict.problem is not None
    assert "timeline 1 was left at" in found.verdict.problem.what
