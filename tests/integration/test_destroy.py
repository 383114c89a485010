"""`walstream destroy`: slot, publications and state go; nothing else does."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
import pytest

from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import Terminal, verb
from tests.support.programs.walstream import SOURCE, Walstream, toml
from tests.support.servers.standby import Standby
from tests.support.slot_reader import reading
from walstream.admin.destroy import destroy as destroy_source
from walstream.admin.known_source import UNCLAIMED, Kept
from walstream.admin.teardown import Teardown, planned
from walstream.config import load
from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.pipeline.ports import Position
from walstream.postgres import server as servers
from walstream.postgres.connection import session
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    DetachedSink,
)
from walstream.sources.postgres.stored_state import INTENT, SlotIntent
from walstream.state.store import LmdbStore

pytestmark = [pytest.mark.same_on_15]

_TABLES = "CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE keyless (v int)"
_INSERT = "INSERT INTO t DEFAULT VALUES"
_PUBLICATIONS = "SELECT pubname FROM pg_publication ORDER BY 1"


def destroy(walstream: Walstream, *flags: str) -> "subprocess.CompletedProcess[str]":
    return verb(walstream.configuration, "destroy", SOURCE, *flags)


def slots(database: Database) -> list[str]:
    """Name the slots of this database."""
    query = "SELECT slot_name FROM pg_replication_slots WHERE database = %s"
    return [name for (name,) in database.fetch(query, database.name)]


def publications(database: Database) -> list[str]:
    return [name for (name,) in database.fetch(_PUBLICATIONS)]


@pytest.fixture
def stopped(database: Database, runs: Runs, reader: Reader) -> Walstream:
    """Give a source that streamed a row, and was stopped."""
    database.execute(_TABLES)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    assert slots(database) == [walstream.slot]
    assert publications(database) == ["walstream", "walstream_insert"]
    return walstream


def test_slot_publications_and_state_go_and_a_start_begins_again(
    stopped: Walstream, database: Database, reader: Reader
) -> None:
    done = destroy(stopped, "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    for dropped in (
        f"slot {stopped.slot}, which holds",
        "publication walstream\n",
        "publication walstream_insert\n",
        "cannot be undone",
        f"{stopped.prefix}public.t), consumers' tables",
    ):
        assert dropped in done.stdout.replace("\n  ", "\n"), done.stdout
    assert slots(database) == []
    assert publications(database) == []
    assert not stopped.state.exists()

    again = destroy(stopped, "--yes")
    assert again.returncode == 0
    assert "has no slot, no publication and no state" in again.stdout

    with stopped:
        database.execute(_INSERT)
        reader.count(2)
        assert stopped.terminate() == 0


def test_what_a_crash_left_goes_with_the_next_call(
    stopped: Walstream, database: Database
) -> None:
    database.fetch("SELECT pg_drop_replication_slot(%s)", stopped.slot)
    database.execute("DROP PUBLICATION walstream")
    assert destroy(stopped, "--yes").returncode == 0
    assert publications(database) == []
    assert not stopped.state.exists()


def test_nothing_goes_without_consent(stopped: Walstream, database: Database) -> None:
    asked = destroy(stopped)
    assert asked.returncode == 2
    assert "add --yes" in asked.stderr
    typed = Terminal(stopped.configuration, "destroy", SOURCE)
    code, said = typed.types("another", at="Type the source's name").ends()
    assert (code, said.splitlines()[-1]) == (0, "nothing was changed")
    assert slots(database) == [stopped.slot]
    assert publications(database) == ["walstream", "walstream_insert"]
    assert stopped.state.is_dir()
    typed = Terminal(stopped.configuration, "destroy", SOURCE)
    assert typed.types(SOURCE, at="Type the source's name").ends()[0] == 0
    assert slots(database) == []


def test_a_running_instance_and_another_reader_are_named(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    database.execute(_TABLES)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        beside = destroy(walstream, "--yes")
        assert beside.returncode == 5
        assert f"as process {walstream.pid}" in beside.stderr
        assert f"kill {walstream.pid}" in beside.stderr

        # another state folder, the same slot
        other = tmp_path / "other.toml"
        text = walstream.configuration.read_text()
        other.write_text(
            text.replace(str(walstream.folder / "state"), str(tmp_path / "elsewhere"))
        )
        spared = verb(other, "destroy", SOURCE, "--yes")
        assert spared.returncode == 0, spared.stderr
        assert f"slot {walstream.slot} stays: the state has no record" in spared.stdout
        in_use = verb(other, "destroy", SOURCE, "--yes", "--adopt-slot")
        assert in_use.returncode == 5
        assert f"slot '{walstream.slot}' is in use by pid" in in_use.stderr
        assert publications(database) == ["walstream", "walstream_insert"]
        database.execute(_INSERT)
        reader.count(2)
        assert walstream.terminate() == 0


def test_publications_that_others_may_read_or_made_stay(
    stopped: Walstream, database: Database
) -> None:
    other = f"{stopped.slot}_other"
    make = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
    database.fetch(make, other)
    try:
        done = destroy(stopped, "--yes")
    finally:
        database.fetch("SELECT pg_drop_replication_slot(%s)", other)
    assert done.returncode == 0, done.stderr
    assert f"publication walstream stays: slot {other} may read it" in done.stdout
    assert 'SQL> DROP PUBLICATION "walstream";' in done.stdout
    assert slots(database) == []
    assert publications(database) == ["walstream", "walstream_insert"]
    assert not stopped.state.exists()


def test_a_publication_that_is_used_as_it_is_stays(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLES)
    database.execute("CREATE PUBLICATION mine FOR TABLE t")
    walstream = runs(database.dsn, source={"publication": "mine", "tables": []})
    with walstream:
        assert walstream.terminate() == 0
    done = destroy(walstream, "--yes")
    assert done.returncode == 0, done.stderr
    assert "publication mine stays: walstream did not make it" in done.stdout
    assert publications(database) == ["mine"]
    assert slots(database) == []


@dataclass
class Still:
    """A source that is not started, with a position, slots and a publication."""

    database: Database
    walstream: Walstream
    shown: list[Teardown] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.walstream.configuration.write_text(toml(self.walstream.document()))
        self.database.execute("CREATE PUBLICATION walstream")
        with session(self.database.dsn) as connection:
            server = servers.look(connection)
        identifier, timeline = server.system_identifier, server.timeline
        self.position = Position(
            server.flush_lsn, identifier, timeline, server.database, self.walstream.slot
        )

    def make(self, *names: str, plugin: str = "pgoutput") -> None:
        make = "SELECT pg_create_logical_replication_slot(%s, %s)"
        for name in names:
            self.database.fetch(make, name, plugin)

    def drop(self, name: str) -> None:
        self.database.fetch("SELECT pg_drop_replication_slot(%s)", name)

    def note(self, position: Position, copy: str = "") -> None:
        """Note a position, and a sink that is away with a copy of its slot."""
        note = DetachedSink(AWAY, copy, 0.0, "", position.resume)
        with LmdbStore(self.walstream.state) as positions:
            positions.store(position, DETACHED.of("kafka").entry(note) if copy else {})

    def agree(self, shown: Teardown) -> bool:
        self.shown.append(shown)
        return True

    def destroy(self) -> Teardown | None:
        configuration = load(self.walstream.configuration, {})
        return destroy_source(configuration, SOURCE, self.agree)

    def is_refused(self, kind: type[WalstreamError], match: str, *left: str) -> None:
        """Claim that all is still there."""
        with pytest.raises(kind, match=match):
            self.destroy()
        assert sorted(slots(self.database)) == sorted(left)
        assert publications(self.database) == ["walstream"]
        assert self.walstream.state.is_dir()


@pytest.fixture
def still(newest_postgres: PostgresServer, tmp_path: Path) -> Iterator[Still]:
    with temporary_database(newest_postgres) as database:
        yield Still(database, Walstream(database.dsn, "127.0.0.1:1", tmp_path, "t."))


def test_slots_of_another_server_or_database_are_left(still: Still) -> None:
    slot, known = still.walstream.slot, still.position
    still.make(slot)
    still.note(replace(known, system_identifier=1))
    still.is_refused(HistoryError, f"server 1, this is {known.system_identifier}", slot)
    still.note(replace(known, database="elsewhere"))
    still.is_refused(HistoryError, "belongs to the database 'elsewhere'", slot)
    assert not still.shown

    refused = destroy(still.walstream, "--yes")
    assert refused.returncode == 3
    assert "correct the dsn of source 'app'" in refused.stderr
    assert f"walstream destroy app -c {still.walstream.configuration}" in refused.stderr


def test_copies_go_by_the_name_that_was_noted(still: Still) -> None:
    slot = still.walstream.slot
    old, noted, named = f"{slot}_old", f"{slot}_old_kafka", f"{slot}_kafka"
    still.make(slot, old, noted, named)
    still.note(replace(still.position, slot=old), noted)
    (still.walstream.state / "away" / "kafka").mkdir(parents=True)
    done = still.destroy()
    assert done is not None
    assert done.copies == [noted]
    assert sorted(slots(still.database)) == sorted([slot, old, named])
    assert [kept.what for kept in done.stays][:2] == [f"slot {old}", f"slot {slot}"]


def test_a_copy_without_a_folder_is_no_other_reader(still: Still) -> None:
    slot, copy = still.walstream.slot, f"{still.walstream.slot}_kafka"
    still.make(slot, copy)
    still.note(still.position, copy)
    done = still.destroy()
    assert done is not None
    assert (done.copies, done.publications) == ([copy], ["walstream"])
    assert (slots(still.database), publications(still.database)) == ([], [])


def test_a_copy_that_is_not_ours_stops_it_before_anything_goes(still: Still) -> None:
    slot, copy = still.walstream.slot, f"{still.walstream.slot}_kafka"
    still.make(slot)
    still.make(copy, plugin="test_decoding")
    still.note(still.position, copy)
    still.is_refused(HistoryError, f"{copy}' uses the plugin", slot, copy)
    assert not still.shown


def test_what_was_not_shown_is_not_dropped(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, copy = still.walstream.slot, f"{still.walstream.slot}_kafka"
    still.make(slot)
    still.note(still.position)

    def agree_too_late(_shown: Teardown) -> bool:
        still.make(copy)
        still.note(still.position, copy)
        return True

    with monkeypatch.context() as patch:
        patch.setattr(still, "agree", agree_too_late)
        still.is_refused(Transient, r"\(slots of detached sinks\)", slot, copy)
    done = still.destroy()
    assert done is not None
    (shown,) = still.shown
    assert done.changes(shown) == []  # how much WAL is held grows with the server's
    assert slots(still.database) == []


def test_a_slot_that_no_state_claims_stays_with_its_publications(
    stopped: Walstream, database: Database, runs: Runs
) -> None:
    """A second host, where `run` refuses the slot too, and the first one goes on."""
    slot = stopped.slot
    elsewhere = runs(database.dsn, folder=stopped.folder / "elsewhere")
    elsewhere.start().ends_with(3, "has no record of it")
    for _ in range(2):
        done = destroy(elsewhere, "--yes")
        assert done.returncode == 0, done.stderr
        assert f"slot {slot} stays: {UNCLAIMED}" in done.stdout
        assert f"SQL> SELECT pg_drop_replication_slot('{slot}');" in done.stdout
        assert f"publication walstream stays: slot {slot} may read it" in done.stdout
    assert slots(database) == [slot]
    assert publications(database) == ["walstream", "walstream_insert"]
    with stopped:
        database.execute(_INSERT)
        assert stopped.terminate() == 0

    adopted = destroy(elsewhere, "--yes", "--adopt-slot")
    assert adopted.returncode == 0, adopted.stderr
    assert (slots(database), publications(database)) == ([], [])


def test_a_slot_that_was_spared_is_spared_by_a_repeat(still: Still) -> None:
    slot, old = still.walstream.slot, f"{still.walstream.slot}_old"
    still.make(slot, old)
    still.note(replace(still.position, slot=old))
    still.destroy()
    again = still.destroy()
    assert again is not None
    assert again.empty
    assert Kept.slot(slot, UNCLAIMED) in again.stays
    assert sorted(slots(still.database)) == [slot, old]
    assert publications(still.database) == ["walstream"]


def test_an_interrupted_first_start_claims_its_slot_on_its_own_server(
    still: Still,
) -> None:
    slot, known = still.walstream.slot, still.position
    still.make(slot)
    intent = SlotIntent(slot, None, known.system_identifier, known.database)
    with LmdbStore(still.walstream.state) as positions:
        positions.write(INTENT.entry(replace(intent, system_identifier=1)))
    still.is_refused(HistoryError, "of the first start belongs to the server 1", slot)
    with LmdbStore(still.walstream.state) as positions:
        positions.write(INTENT.entry(intent))
    still.destroy()
    assert (slots(still.database), publications(still.database)) == ([], [])


def test_a_copy_in_use_stops_it_before_anything_goes(still: Still) -> None:
    slot, copy = still.walstream.slot, f"{still.walstream.slot}_kafka"
    still.make(slot, copy)
    still.note(still.position, copy)
    with reading(still.database, copy):
        still.is_refused(Transient, f"slot '{copy}' is in use by pid", slot, copy)
    still.destroy()
    assert slots(still.database) == []


def test_a_standby_has_slots_of_its_own(
    own_postgres: OwnPostgres, tmp_path: Path
) -> None:
    own = own_postgres(18, wal_level="logical")
    primary = Database(own)
    with Standby(own) as server:
        standby = Walstream(Database(server).dsn, "127.0.0.1:1", tmp_path, "t.")
        still = Still(primary, Walstream(primary.dsn, "127.0.0.1:1", tmp_path, "t."))
        still.make(still.walstream.slot)
        still.note(still.position)
        standby.configuration.write_text(toml(standby.document()))
        still.is_refused(ConfigError, "is a standby", still.walstream.slot)


def test_half_way_it_says_what_is_dropped_already(still: Still) -> None:
    slot = still.walstream.slot
    still.make(slot)
    still.note(still.position)
    with psycopg.connect(still.database.dsn) as holder:
        holder.execute("ALTER PUBLICATION walstream SET (publish = 'insert')")
        done = destroy(still.walstream, "--yes")
        holder.rollback()
    assert done.returncode == 5
    assert f"dropped already: slot {slot}" in done.stderr
    assert "what is left is dropped by: walstream destroy app -c " in done.stderr
    assert "tries again" not in done.stderr
    assert slots(still.database) == []
    assert publications(still.database) == ["walstream"]
    assert still.walstream.state.is_dir()
    assert destroy(still.walstream, "--yes").returncode == 0
    assert publications(still.database) == []
    assert not still.walstream.state.exists()


def test_a_publication_of_the_same_name_elsewhere_is_another_one(
    still: Still, newest_postgres: PostgresServer
) -> None:
    still.make(still.walstream.slot)
    still.note(still.position)
    document = still.walstream.document()
    document["sinks"]["kafka"]["topic"] = "t.{source}.{schema}.{table}"
    other = {**document["sources"][SOURCE], "slot": f"{still.walstream.slot}_other"}
    document["sources"]["other"] = other
    still.walstream.configuration.write_text(toml(document))
    stays = Kept(
        "publication walstream",
        "source other names it, too",
        'DROP PUBLICATION "walstream";',
    )
    with planned(load(still.walstream.configuration, {}), SOURCE) as (plan, _):
        assert list(plan.stays) == [stays]
    with temporary_database(newest_postgres) as elsewhere:
        other["dsn"] = elsewhere.dsn
        still.walstream.configuration.write_text(toml(document))
        done = still.destroy()
    assert done is not None
    assert done.publications == ["walstream"]
    assert publications(still.database) == []


def test_a_state_folder_that_is_a_link_goes_with_what_it_leads_to(
    still: Still, tmp_path: Path
) -> None:
    still.make(still.walstream.slot)
    still.note(still.position)
    state, target = still.walstream.state, tmp_path / "volume"
    state.rename(target)
    state.symlink_to(target)
    done = destroy(still.walstream, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"{state}, a link to {target}" in " ".join(done.stdout.split())
    assert not target.exists()
    assert not any(one.name.startswith(SOURCE) for one in state.parent.iterdir())
    again = destroy(still.walstream, "--yes")
    assert "has no slot, no publication and no state" in again.stdout
