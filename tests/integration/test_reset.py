"""`walstream positions reset` repairs what stops a source for good."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream, toml
from tests.support.servers.standby import Standby
from tests.support.slot_reader import reading
from walstream.admin.reset import reset as reset_source
from walstream.config import Config, load
from walstream.errors import ConfigError, HistoryError, Transient
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    DetachedSink,
)
from walstream.state.lock import holder
from walstream.state.store import LmdbStore

pytestmark = pytest.mark.same_on_15

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY)"
_INSERT = "INSERT INTO t DEFAULT VALUES"


def reset(walstream: Walstream, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return verb(walstream.configuration, "positions", "reset", *arguments)


def epoch(record: Record) -> int:
    value = dict(record.headers)["walstream-source"]
    return int(value.decode().rsplit("/", 1)[1])


def test_after_a_lost_slot_the_printed_repair_makes_it_stream(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    walstream.start().ends_with(3, "is gone", "walstream positions reset app")
    done = reset(walstream, "app", "--yes")
    assert done.returncode == 0, done.stderr
    assert "starts from scratch" in done.stdout
    with walstream:
        database.execute(_INSERT)
        first, second = reader.count(2)
        assert epoch(first) == epoch(second) == 0  # the same history: LSNs compare
        assert walstream.terminate() == 0


def test_after_damage_the_epoch_is_another(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    (walstream.state / "data.mdb").write_bytes(b"\xff" * 20_000)
    repair = "walstream positions reset app --adopt-slot"
    walstream.start().ends_with(3, "damaged", repair)
    done = reset(walstream, "app", "--adopt-slot", "--yes")
    assert (done.returncode, "is dropped" in done.stdout) == (0, True), done.stderr
    with walstream:
        database.execute(_INSERT)
        (record,) = reader.count(1)
        assert epoch(record) > 1_000_000
        assert walstream.terminate() == 0


def test_nothing_is_reset_or_stopped_without_consent(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        asked = reset(walstream, "app")
        assert asked.returncode == 2
        assert "--yes" in asked.stderr
        unknown = reset(walstream, "nope", "--yes")
        assert unknown.returncode == 2
        assert "configured are: app" in unknown.stderr
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    assert len(walstream.said("streaming")) == 1


def test_a_running_instance_begins_anew(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        done = reset(walstream, "app", "--yes")
        assert done.returncode == 0, done.stderr
        assert "is reset, and starts from scratch" in done.stdout
        wait_until(lambda: len(walstream.said("slot created")) == 2, 30, "a new slot")
        database.execute(_INSERT)
        reader.count(2)
        assert walstream.terminate() == 0


@dataclass
class Still:
    """A source that is not started, and has a position."""

    database: Database
    walstream: Walstream
    asked: list[str] = field(default_factory=list)

    @property
    def config(self) -> Config:
        return load(self.walstream.configuration, {})

    @property
    def slots(self) -> set[str]:
        """Name those that are there, of the two."""
        query = "SELECT slot_name FROM pg_replication_slots"
        mine = {self.database.name, f"{self.database.name}_old"}
        return {name for (name,) in self.database.fetch(query)} & mine

    def make(self, slot: str, plugin: str = "pgoutput") -> None:
        make = "SELECT pg_create_logical_replication_slot(%s, %s)"
        self.database.fetch(make, slot, plugin)

    def position(self) -> Position | None:
        with LmdbStore(self.walstream.state) as positions:
            return positions.position()

    def is_at(self, slot: str) -> None:
        with session(self.database.dsn) as connection:
            server = servers.look(connection)
        resume, system = server.flush_lsn, server.system_identifier
        at = Position(resume, system, server.timeline, server.database, slot)
        with LmdbStore(self.walstream.state) as positions:
            positions.write({"epoch": {"number": 4}, "keys/public.t": []})
            positions.store(at)

    def agree(self, what: str) -> bool:
        self.asked.append(what)
        return True

    def reset(self, *, adopt: bool = False) -> str:
        return reset_source(self.config, SOURCE, self.agree, adopt=adopt)


@pytest.fixture
def still(newest_postgres: PostgresServer, tmp_path: Path) -> Iterator[Still]:
    with temporary_database(newest_postgres) as database:
        walstream = Walstream(database.dsn, "127.0.0.1:1", tmp_path, "t.")
        walstream.configuration.write_text(toml(walstream.document()))
        made = Still(database, walstream)
        yield made
        for slot in made.slots:
            database.fetch("SELECT pg_drop_replication_slot(%s)", slot)


def test_a_slot_that_is_not_ours_is_left_before_and_after_consent(still: Still) -> None:
    slot = still.walstream.slot
    still.is_at(slot)
    still.make(slot, "test_decoding")
    with pytest.raises(HistoryError, match="test_decoding"):
        still.reset()
    assert not still.asked

    still.database.fetch("SELECT pg_drop_replication_slot(%s)", slot)
    still.make(slot)

    def agree_too_late(_what: str) -> bool:
        still.database.fetch("SELECT pg_drop_replication_slot(%s)", slot)
        still.database.fetch("SELECT pg_create_physical_replication_slot(%s)", slot)
        return True

    with pytest.raises(HistoryError, match="physical slot: it is not ours"):
        reset_source(still.config, SOURCE, agree_too_late)
    assert still.slots == {slot}
    assert still.position() is not None


def test_where_the_source_names_another_slot_now_neither_is_dropped(
    still: Still,
) -> None:
    slot, old = still.walstream.slot, f"{still.walstream.slot}_old"
    still.make(slot)
    still.make(old)
    still.is_at(old)
    done = still.reset()
    assert still.slots == {slot, old}
    assert still.position() is None
    for text in (*still.asked, done):
        assert f"walstream slots drop {old} --source app -c " in text
        assert "neither slot is dropped" in text
    assert f"slot {slot!r} is dropped" not in still.asked[0]


def test_the_folder_is_locked_until_the_epoch_is_written(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, folder = still.walstream.slot, still.walstream.state
    still.is_at(slot)
    still.make(slot)
    held = []
    drop = slots.drop

    def watched(connection: Connection, name: str) -> None:
        held.append(holder(folder))
        drop(connection, name)

    monkeypatch.setattr(slots, "drop", watched)
    inode = (folder / "lock").stat().st_ino
    (folder / "anew").mkdir()
    (folder / "anew" / "data.mdb").write_bytes(b"x" * 9)  # a crash left it
    still.reset()
    assert held[0] is not None
    assert (folder / "lock").stat().st_ino == inode
    assert not still.slots
    with LmdbStore(folder) as positions:
        assert set(positions.names("")) == {"epoch", "format"}
        assert positions.read("epoch") == {"number": 4}  # the same history
    assert {path.name for path in folder.iterdir()} == {"data.mdb", "lock", "lock.mdb"}


def test_a_slot_that_the_state_does_not_know_stays_unless_it_is_adopted(
    still: Still,
) -> None:
    slot = still.walstream.slot
    still.make(slot)
    (still.walstream.state).mkdir(parents=True)
    for damage in (b"", b"\xff" * 20_000):
        if damage:
            (still.walstream.state / "data.mdb").write_bytes(damage)
        done = still.reset()
        assert f"slot {slot} stays: the state has no record of it" in done
        assert f"SQL> SELECT pg_drop_replication_slot('{slot}');" in done
        assert "walstream positions reset app --adopt-slot -c " in done
        assert "is dropped" not in still.asked[-1]
        assert still.slots == {slot}
    still.reset(adopt=True)
    assert f"slot {slot!r} is dropped" in still.asked[-1]
    assert not still.slots


def test_a_slot_of_another_server_is_left_unless_it_is_adopted(still: Still) -> None:
    slot = still.walstream.slot
    still.is_at(slot)
    known = still.position()
    assert known is not None
    still.make(slot)
    other = replace(known, system_identifier=1)
    with LmdbStore(still.walstream.state) as positions:
        positions.store(other)
    with pytest.raises(HistoryError, match="belongs to the server 1") as refused:
        still.reset()
    assert refused.value.repair.command == f"walstream slots drop {slot} --source app"
    assert (still.slots, still.asked, still.position()) == ({slot}, [], other)
    still.reset(adopt=True)
    assert (still.slots, still.position()) == (set(), None)

    with LmdbStore(still.walstream.state) as positions:
        positions.store(other)
    still.reset()  # nothing is there to be mistaken: a start begins on this server
    assert still.position() is None


def test_a_copy_in_use_stops_it_before_anything_goes(still: Still) -> None:
    slot, copy = still.walstream.slot, f"{still.walstream.slot}_kafka"
    still.make(slot)
    still.make(copy)
    still.database.execute("CREATE PUBLICATION walstream")
    still.is_at(slot)
    note = DetachedSink(AWAY, copy, 0.0, "", 1)
    with LmdbStore(still.walstream.state) as positions:
        positions.write(DETACHED.of("kafka").entry(note))
    query = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
    left = [(slot,), (copy,)]
    with reading(still.database, copy):
        with pytest.raises(Transient, match=f"slot '{copy}' is in use by pid"):
            still.reset()
        assert sorted(still.database.fetch(query, still.database.name)) == left
        assert still.position() is not None
    still.reset()
    assert still.database.fetch(query, still.database.name) == []


def test_a_standby_is_not_reset(own_postgres: OwnPostgres, tmp_path: Path) -> None:
    own = own_postgres(18, wal_level="logical")
    primary = Database(own)
    with Standby(own) as server:
        walstream = Walstream(Database(server).dsn, "127.0.0.1:1", tmp_path, "t.")
        walstream.configuration.write_text(toml(walstream.document()))
        still = Still(primary, walstream)
        still.is_at(walstream.slot)
        with pytest.raises(ConfigError, match="is a standby"):
            still.reset()
        assert still.position() is not None
        assert not still.asked
