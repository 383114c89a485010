"""`walstream slots`: what each slot holds, whose it is, and dropping one."""

import contextlib
import gc
import os
import re
import resource
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from secrets import token_hex

import jsonschema
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pydantic import TypeAdapter

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.programs.verb import Terminal, as_json, is_plain, published, verb
from tests.support.programs.walstream import toml
from walstream.admin.slots import Loss, Slots, Where, look
from walstream.admin.slots import drop as drop_slot
from walstream.config import load
from walstream.errors import ConfigError, WalstreamError
from walstream.postgres.connection import Connection, connect
from walstream.postgres.slot import SlotSpec, WaitPolicy, create, let_fail_over
from walstream.postgres.slot_inventory import SlotFacts

pytestmark = pytest.mark.same_on_15

SCHEMA = TypeAdapter(Slots)
_WAL = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 100000))"
_LOGICAL = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
_PHYSICAL = "SELECT pg_create_physical_replication_slot(%s, true)"


@pytest.fixture
def newest(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as fresh:
        yield fresh


@pytest.fixture
def poor_role(database: Database) -> Iterator[str]:
    """Make a role with LOGIN REPLICATION, and nothing else."""
    name = f"poor_{database.name}"
    database.execute(sql.SQL("CREATE ROLE {} LOGIN REPLICATION").format(named(name)))
    yield name
    database.execute(sql.SQL("DROP ROLE {}").format(named(name)))


def agree(_loss: Loss) -> bool:
    return True


class Physical:
    """Makes physical slots, and drops those that are left."""

    def __init__(self) -> None:
        self._made: list[tuple[Database, str]] = []

    def __call__(self, database: Database, name: str = "") -> str:
        slot = name or f"physical_{token_hex(6)}"
        database.fetch(_PHYSICAL, slot)
        self._made.append((database, slot))
        return slot

    def close(self) -> None:
        for database, slot in self._made:
            if exists(database, slot):
                database.fetch("SELECT pg_drop_replication_slot(%s)", slot)


@pytest.fixture
def physical() -> Iterator[Physical]:
    made = Physical()
    yield made
    made.close()


def named(name: str) -> sql.Identifier:
    return sql.Identifier(name)


def exists(database: Database, slot: str) -> bool:
    query = "SELECT FROM pg_replication_slots WHERE slot_name = %s"
    return bool(database.fetch(query, slot))


def listed(where: Where) -> dict[str, SlotFacts]:
    """Give the slots of all servers by their names."""
    found = look(where)
    jsonschema.validate(SCHEMA.dump_python(found, mode="json"), published("slots"))
    return {slot.name: slot for server in found.servers for slot in server.slots}


def configured(folder: Path, **sources: tuple[str, str]) -> Path:
    """Configure sources by name, each of a DSN and a slot."""
    file = folder / "walstream.toml"
    document = {
        "state": str(folder / "state"),
        "http": {"listen": ""},
        "sources": {
            name: {
                "kind": "postgres",
                "dsn": dsn,
                "slot": slot,
                "publication": name,
                "backfill": "never",
                "tables": [f"{name}.*"],
                "sinks": ["kafka"],
            }
            for name, (dsn, slot) in sources.items()
        },
        "sinks": {
            "kafka": {
                "kind": "kafka",
                "topic": "{source}.{table}",
                "producer": {"bootstrap.servers": "localhost:1"},
            }
        },
    }
    file.write_text(toml(document))
    return file


def test_the_published_schema_is_the_one_of_the_code() -> None:
    assert published("slots") == SCHEMA.json_schema(mode="serialization")


def test_a_poor_role_sees_every_slot_those_that_hold_most_first(
    database: Database, poor_role: str, physical: Physical
) -> None:
    first_name = physical(database)
    database.fetch(_WAL)
    database.fetch(_LOGICAL, database.name)
    dsn = make_conninfo(database.dsn, user=poor_role)

    slots = listed(Where(None, dsn))
    first, second = slots[first_name], slots[database.name]
    assert list(slots).index(first_name) < list(slots).index(database.name)
    assert first.held_bytes > second.held_bytes + 100_000
    assert (first.kind, first.lag_bytes) == ("physical", None)
    assert (second.plugin, second.database) == ("pgoutput", database.name)
    assert second.sources == []
    assert second.reader is None
    assert (second.inactive_since is None) == (database.server.version < 17)
    assert (second.failover is None) == (database.server.version < 17)

    done = verb(None, "slots", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    assert is_plain(done.stdout)
    assert f"pgoutput, database {database.name}" in done.stdout
    assert "nobody reads it" in done.stdout


def test_without_a_configuration_the_variable_names_the_server(
    newest: Database, tmp_path: Path
) -> None:
    variable = {"WALSTREAM_DSN": newest.dsn}
    newest.fetch(_LOGICAL, newest.name)
    done = verb(None, "slots", folder=tmp_path, environment=variable)
    assert newest.name in done.stdout, done.stderr
    configured(tmp_path, app=("host=127.0.0.1 port=1", "x"))
    done = verb(None, "slots", folder=tmp_path, environment=variable)
    assert newest.name not in done.stdout  # it is there for the configuration
    assert done.returncode == 5
    assert "source app" in done.stdout
    assert is_plain(done.stdout.replace("\u2717", "x"))
    (tmp_path / "walstream.toml").write_text("oops = 1\n")
    done = verb(None, "slots", "--dsn", newest.dsn, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert newest.name in done.stdout
    assert "whose slots these are is not known" in done.stderr


def test_of_a_server_that_does_not_answer_no_other_try_is_promised(
    tmp_path: Path,
) -> None:
    done = verb(None, "slots", "--dsn", "host=127.0.0.1 port=1", folder=tmp_path)
    assert done.returncode == 5
    assert "run the command again when it answers" in done.stdout
    assert "by itself" not in done.stdout


def test_a_slot_of_ours_is_let_go_by_the_command_that_is_printed(
    newest: Database, runs: Runs
) -> None:
    newest.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    walstream = runs(newest.dsn)
    slot = walstream.slot
    with walstream:
        walstream.streaming_said()
        found = listed(Where(load(walstream.configuration, {})))[slot]
        assert found.sources == ["app"]
        assert found.reader is not None
        assert found.reader.application == "walstream"
        refused = verb(walstream.configuration, "slots", "drop", slot, "--yes")
        assert refused.returncode == 5
        assert f"pid {found.reader.pid}" in refused.stderr
        (end,) = re.findall(r"stop that first: (kill \d+)", refused.stderr)
        subprocess.run(["bash", "-ec", end], check=True)
        assert walstream.wait() == 0

    asked = verb(walstream.configuration, "slots", "drop", slot)
    assert asked.returncode == 2
    assert "exit code 3 until walstream positions reset app" in " ".join(
        asked.stdout.split()
    )
    assert "--yes" in asked.stderr
    assert exists(newest, slot)


def held(newest: Database) -> Connection:
    """Hold the slot that is named after the database, as another program does."""
    newest.execute("CREATE PUBLICATION p")
    held = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active"
    wait_until(lambda: not newest.fetch(held, newest.name), 10, "it is free")
    connection = connect(newest.dsn, replication=True)
    command = (
        f'START_REPLICATION SLOT "{newest.name}" LOGICAL 0/0'
        " (proto_version '1', publication_names 'p')"
    )
    connection.pgconn.exec_(command.encode())
    return connection


@pytest.fixture
def foreign(newest: Database) -> Iterator[Connection]:
    """Make a slot that another program holds."""
    newest.fetch(_LOGICAL, newest.name)
    connection = held(newest)
    yield connection
    connection.close()


def test_an_instance_that_waits_for_its_slot_is_not_who_reads_it(
    newest: Database, runs: Runs
) -> None:
    newest.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    walstream = runs(newest.dsn)
    with walstream:
        assert walstream.terminate() == 0
    with contextlib.closing(held(newest)):
        walstream.start().until("trying again")
        reader = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
        ((pid,),) = newest.fetch(reader, walstream.slot)
        end = f"SELECT pg_terminate_backend({pid});"
        file = walstream.configuration

        refused = verb(file, "slots", "drop", walstream.slot, "--yes")
        assert refused.returncode == 5
        assert end in refused.stderr
        assert "kill" not in refused.stderr

        (standing,) = as_json(file, "positions", "positions", "show")["sources"]
        assert standing["verdict"]["outcome"] == "wait"
        assert standing["verdict"]["problem"]["repair"]["sql"] == end

        (source,) = as_json(file, "check", "check")["sources"]
        (stop,) = [one for one in source["findings"] if one["code"] == "slot-in-use"]
        assert (source["exit_code"], stop["repair"]["sql"]) == (5, end)

        assert newest.fetch(end) == [(True,)]
        walstream.streaming()  # by itself
        assert walstream.terminate() == 0


def test_a_slot_of_others_is_let_go_by_the_statement_that_is_printed(
    newest: Database, foreign: Connection
) -> None:
    assert not foreign.closed
    drop = ("slots", "drop", newest.name, "--dsn", newest.dsn)
    refused = verb(None, *drop, "--yes")
    assert refused.returncode == 5
    (end,) = re.findall(r"end its session: (SELECT .*;)", refused.stderr)
    assert newest.fetch(end) == [(True,)]
    free = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND NOT active"
    wait_until(lambda: newest.fetch(free, newest.name), 10, "it is let go")

    with pytest.raises(ConfigError, match="no slot 'nope'") as unknown:
        drop_slot(Where(None, newest.dsn), "nope", agree)
    assert newest.name in unknown.value.hint
    done = verb(None, *drop, "--yes")
    assert done.returncode == 0, done.stderr
    assert not exists(newest, newest.name)


def test_at_a_terminal_the_name_has_to_be_typed(
    newest: Database, physical: Physical
) -> None:
    slot = physical(newest)
    drop = ("slots", "drop", slot, "--dsn", newest.dsn)
    code, text = Terminal(None, *drop).types("y", at="to drop it").ends()
    assert (code, exists(newest, slot)) == (0, True), text
    assert "nothing was changed" in text
    code, text = Terminal(None, *drop).types(slot, at="to drop it").ends()
    assert (code, exists(newest, slot)) == (0, False), text
    assert f"slot '{slot}' is dropped" in text


def test_of_two_servers_with_one_name_the_source_has_to_be_said(
    postgres15: PostgresServer,
    postgres18: PostgresServer,
    physical: Physical,
    tmp_path: Path,
) -> None:
    old, new = Database(postgres15), Database(postgres18)
    twin = physical(old)
    physical(new, twin)
    file = configured(
        tmp_path, old=(old.dsn, "x"), new=(new.dsn, "y"), newer=(new.dsn, twin)
    )
    servers = as_json(file, "slots", "slots")["servers"]
    assert [one["sources"] for one in servers] == [["new", "newer"], ["old"]]
    slots = [slot for one in servers for slot in one["slots"] if slot["name"] == twin]
    assert [slot["sources"] for slot in slots] == [["newer"], []]
    with pytest.raises(ConfigError, match="2 servers have a slot") as refused:
        drop_slot(Where(load(file, {})), twin, agree)
    assert "--source, one of: new, old" in refused.value.hint
    done = verb(file, "slots", "drop", twin, "--yes", "--source", "old")
    assert done.returncode == 0, done.stderr
    assert (exists(old, twin), exists(new, twin)) == (False, True)


def test_a_lost_slot_says_so_and_holds_nothing(own_postgres: OwnPostgres) -> None:
    server = own_postgres(
        18, max_slot_wal_keep_size="1MB", min_wal_size="32MB", max_wal_size="32MB"
    )
    database = Database(server)
    database.fetch(_PHYSICAL, "lost")
    for _ in range(4):
        database.fetch(_WAL)
        database.execute("SELECT pg_switch_wal()")
    database.execute("CHECKPOINT")
    text = verb(None, "slots", "--dsn", server.dsn()).stdout
    said = " ".join(text.split())
    assert "1 slot holds 0 B" in said
    assert "can no longer be read, wal_removed" in said


def test_a_slot_is_made_above_descriptor_1023(newest: Database) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, limits[1]))
    name = f"high_{newest.name}"
    gc.collect()  # what earlier tests left frees no lower descriptor meanwhile
    try:
        with (
            contextlib.ExitStack() as taken,
            psycopg.connect(newest.dsn) as open_one,
            ThreadPoolExecutor(1) as thread,
        ):
            open_one.execute("SELECT pg_current_xact_id()")  # what the slot waits for
            for _ in range(1100):
                taken.enter_context(Path(os.devnull).open("rb"))
            making = thread.submit(
                create,
                newest.dsn,
                SlotSpec(name, temporary=True),
                WaitPolicy(threading.Event(), lambda _: None),
            )
            # it waits on its socket by now, or failed
            assert not wait([making], 2).done
            open_one.rollback()
            made = making.result(30)
            assert made.connection.pgconn.socket > 1023
            made.connection.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_copy_that_is_not_kept_on_standbys_is_no_copy_that_is(
    postgres18: PostgresServer,
) -> None:
    """The next failover would leave nothing for its sink."""
    kept = "SELECT failover FROM pg_replication_slots WHERE slot_name = %s"
    with temporary_database(postgres18) as database:
        database.fetch(_LOGICAL, database.name)
        let_fail_over(database.dsn, database.name)
        assert database.fetch(kept, database.name) == [(True,)]
        with pytest.raises(WalstreamError, match="keeping slot 'other' on standbys"):
            let_fail_over(database.dsn, "other")
