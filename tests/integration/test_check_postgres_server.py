"""`check` finds what a server is set to, and what its slots hold; its repairs work."""

import time
from functools import partial

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.inspection import (
    command,
    known,
    look,
    look_as,
    of,
    one,
    repair,
    stops,
)
from tests.support.programs.walstream import Walstream
from walstream.errors import Repair
from walstream.finding import Severity
from walstream.pipeline.ports import Position
from walstream.postgres.checks import Inspection, clock, open_transactions
from walstream.postgres.start_table import StoredState

SLOT = "walstream_check"
MIB = "1MiB"


@pytest.mark.parametrize(
    "version", [pytest.param(15, marks=pytest.mark.fault_long), 18]
)
def test_settings_that_stop_are_said_at_once_and_run_ends_or_waits_as_said(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader, version: int
) -> None:
    server = own_postgres(
        version, wal_level="replica", max_replication_slots="1", max_wal_senders="1"
    )
    database = Database(server)
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY);"
        "SELECT pg_create_physical_replication_slot('other')"
    )
    walstream = runs(database.dsn, source={"slot": SLOT})
    dsn = make_conninfo(server.dsn(), replication="true")
    with psycopg.connect(dsn, autocommit=True):  # takes the one sender
        found = look(database.dsn)
    assert stops(found) == [("wal-level", 2), ("free-slot", 5), ("free-sender", 5)]
    assert "run would wait" in of(found, "free-slot")[0].why
    level, slots, senders = found.findings[:3]
    assert "no client reads other now" in slots.why
    assert "walstream slots drop other" in slots.why
    walstream.start().ends_with(2, "wal_level")
    assert walstream.said("wal_level")[0]["repair"] == level.repair.sql

    restarted(database, level.repair)
    assert stops(look(database.dsn)) == [("free-slot", 5)]
    walstream.start().until("trying again")
    assert walstream.said("trying again")[0]["repair"] == slots.repair.sql
    # nothing is left behind by a start that waits
    assert not database.fetch("SELECT FROM pg_publication")

    repair(database, senders.repair)
    restarted(database, slots.repair)
    # the slot itself may be there by now, since run has waited for this
    assert not set(stops(look(database.dsn))) & {("free-slot", 5), ("free-sender", 5)}
    walstream.streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    assert walstream.terminate() == 0


def restarted(database: Database, printed: Repair) -> None:
    assert printed.then == "restart PostgreSQL"
    repair(database, printed)
    assert hasattr(database.server, "restart")
    database.server.restart()


def test_limits_of_wal_and_idleness_are_found_and_lifted_as_printed(
    own_postgres: OwnPostgres,
) -> None:
    server = own_postgres(
        18, max_slot_wal_keep_size="1GB", idle_replication_slot_timeout="1min"
    )
    database = Database(server)
    before = look(database.dsn)
    one(before, "idle-timeout", Severity.WARNING)
    one(before, "wal-limit", Severity.WARNING)
    for finding in (*of(before, "idle-timeout"), *of(before, "wal-limit")):
        repair(database, finding.repair)
    reloaded(database, "idle-timeout", "wal-limit")

    database.execute("ALTER SYSTEM SET max_slot_wal_keep_size = -1")
    database.execute("SELECT pg_reload_conf()")
    wait_until(lambda: of(look(database.dsn), "wal-limit"), 5, "no limit is noted")
    repair(database, one(look(database.dsn), "wal-limit", Severity.NOTE).repair)
    reloaded(database, "wal-limit")


def reloaded(database: Database, *codes: str) -> None:
    """Wait for the reload that the repair asked for."""
    gone = lambda: not any(of(look(database.dsn), code) for code in codes)  # noqa: E731
    wait_until(gone, 5, f"no finding of {codes}")


def test_slots_that_are_lost_or_hold_much_are_dropped_as_printed(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    server = own_postgres(18, max_slot_wal_keep_size="64MB", max_replication_slots="1")
    database = Database(server)
    database.fetch("SELECT pg_create_physical_replication_slot('other', true)")
    write_wal(database, 3)
    walstream = runs(database.dsn, source={"slot": SLOT})
    idle = look(database.dsn, alarm_retained_wal=MIB)
    finding = one(idle, "idle-slot", Severity.WARNING)
    assert "(physical) holds 4" in finding.what
    assert not finding.repair.command  # its reader may only be down
    assert not of(look(database.dsn), "idle-slot")
    sibling = look(database.dsn, alarm_retained_wal=MIB, sibling_slots={"other"})
    assert not of(sibling, "idle-slot")

    write_wal(database, 6)
    database.execute("CHECKPOINT")
    found = look(database.dsn)
    lost = one(found, "lost-slot", Severity.WARNING)
    full = one(found, "free-slot", Severity.STOP, 5)
    assert full.repair == lost.repair
    command(walstream, lost.repair)
    after = look(database.dsn)
    assert not of(after, "lost-slot")
    assert not stops(after)


def write_wal(database: Database, segments: int) -> None:
    """Fill so many segments of WAL, nearly."""
    for _ in range(segments):
        database.fetch("SELECT pg_logical_emit_message(false, '', ''), pg_switch_wal()")


def test_a_slot_that_holds_too_much_is_read_as_printed_before_it_is_lost(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    server = own_postgres(18, max_slot_wal_keep_size="96MB")
    database = Database(server)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database.dsn, source={"slot": SLOT}).start().streaming()
    assert walstream.terminate() == 0

    write_wal(database, 2)
    finding = one(
        look_as(walstream, alarm_retained_wal=MIB), "retained-wal", Severity.WARNING
    )
    assert "no client reads" in finding.why
    for _ in range(5):
        if of(look_as(walstream), "slot-in-danger"):
            break
        write_wal(database, 1)
    danger = one(look_as(walstream), "slot-in-danger", Severity.WARNING)
    repair(database, danger.repair)
    wait_until(lambda: not of(look_as(walstream), "slot-in-danger"), 5, "out of danger")
    assert not stops(look_as(walstream))

    assert finding.repair.command == "walstream run"
    before = known(walstream)
    walstream.start().streaming()

    def read() -> bool:
        database.execute("CHECKPOINT")  # what a slot needs is noted then
        beside = beside_it(walstream, before, alarm_retained_wal=MIB)
        return not of(beside, "retained-wal")

    wait_until(read, 20, "what was held is read")
    assert walstream.terminate() == 0


def beside_it(
    walstream: Walstream, known: tuple[StoredState, object], **options: object
) -> Inspection:
    stored, publications = known
    return look(
        walstream.dsn,
        stored,
        publications=publications,
        running=True,
        slot=walstream.slot,
        **options,
    )


def test_transactions_that_delay_the_slot_are_named_and_ended_as_printed(
    own_postgres: OwnPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_transactions, "OLD_S", 0)
    server = own_postgres(18, max_prepared_transactions="5")
    database = Database(server)
    database.execute("CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE app LOGIN")
    with psycopg.connect(database.dsn) as other, psycopg.connect(database.dsn) as idle:
        idle.execute("SELECT 1")  # reads alone delay nothing
        other.execute("INSERT INTO t VALUES (1)")
        with psycopg.connect(database.dsn) as prepared:
            prepared.execute("INSERT INTO t VALUES (2)")
            prepared.execute("PREPARE TRANSACTION 'it''s'")
            prepared.rollback()
        found = look(database.dsn)
        session = one(found, "long-transaction", Severity.WARNING)
        assert session.subject == f"pid {other.info.backend_pid}"
        waiting = one(found, "prepared-transaction", Severity.WARNING)
        for finding in (session, waiting):
            repair(database, finding.repair)
        wait_until(
            lambda: not of(look(database.dsn), "long-transaction"), 5, "it has ended"
        )
        assert not of(look(database.dsn), "prepared-transaction")
        other.close()
    # once the slot is there nothing waits
    ours = StoredState(intent=True)
    database.fetch(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'pgoutput')")
    with psycopg.connect(database.dsn) as other:
        other.execute("INSERT INTO t VALUES (1)")
        assert not of(look(database.dsn, ours), "long-transaction")


def test_a_standby_stops_until_it_is_promoted_and_its_history_is_checked(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    server = own_postgres(18)
    database = Database(server)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database.dsn, source={"slot": SLOT}).start().streaming()
    assert walstream.terminate() == 0
    server.stop()
    (server.data / "standby.signal").touch()
    server.start()

    assert stops(look(database.dsn)) == [("standby", 2)]
    runs(database.dsn).start().ends_with(2, "standby")
    # or it is the primary, just being promoted
    assert stops(look_as(walstream)) == [("standby", 5)]

    database.fetch("SELECT pg_promote()")
    assert not stops(look_as(walstream))
    stored, publications = known(walstream)
    assert stored.position is not None
    database.execute("INSERT INTO t VALUES (1)")
    beyond = position_at_the_end(stored.position, database)
    found = look(
        database.dsn, StoredState(beyond), publications=publications, slot=SLOT
    )
    finding = one(found, "history", Severity.STOP, 3)
    assert "timeline 1 was left" in finding.what
    assert finding.repair.command == "walstream positions reset app"


def position_at_the_end(position: Position, database: Database) -> Position:
    """Give what would have been read on the old timeline, had it gone on."""
    ((end,),) = database.fetch(
        "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint"
    )
    return Position(
        int(end),
        position.system_identifier,
        position.timeline,
        position.database,
        position.slot,
    )


def test_a_database_of_any_bytes_stops_until_its_encoding_is_said(
    newest_postgres: PostgresServer,
) -> None:
    home = Database(newest_postgres)
    name = sql.Identifier("any_bytes")
    home.execute(
        sql.SQL(
            "CREATE DATABASE {} ENCODING 'SQL_ASCII' TEMPLATE template0"
            " LC_COLLATE 'C' LC_CTYPE 'C'"
        ).format(name)
    )
    try:
        dsn = newest_postgres.dsn("any_bytes")
        found = look(dsn)
        assert stops(found) == [("encoding", 2)]
        assert "UTF8" in one(found, "encoding", Severity.STOP, 2).repair.then
        assert not stops(look(dsn, encoding="UTF8"))
    finally:
        home.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def test_clocks_that_are_apart_are_named(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not of(look(postgres.dsn()), "clock")
    monkeypatch.setattr(clock, "now", lambda: time.time() - 60)
    finding = one(look(postgres.dsn()), "clock", Severity.WARNING)
    assert "ahead of" in finding.what


def test_failover_is_noted_where_the_server_has_none(postgres: PostgresServer) -> None:
    found = look(postgres.dsn(), failover=True)
    if postgres.version < 17:
        one(found, "failover", Severity.NOTE)
    else:
        assert not of(found, "failover")
    assert not of(look(postgres.dsn()), "failover")


def test_a_failover_that_may_lack_what_was_sent_is_named(
    own_postgres: OwnPostgres,
) -> None:
    database = Database(own_postgres(18))
    look_on = partial(look, database.dsn)
    assert not of(look_on(), "standby-slots")
    bare = one(look_on(failover=True), "standby-slots", Severity.WARNING)
    assert "primary_slot_name" in bare.repair.then
    database.fetch("SELECT pg_create_physical_replication_slot('other')")
    named = one(look_on(failover=True), "standby-slots", Severity.WARNING)
    repair(database, named.repair)
    shown = "SHOW synchronized_standby_slots"
    wait_until(lambda: database.fetch(shown) == [("other",)], 10, "it is reloaded")
    assert not of(look_on(failover=True), "standby-slots")
    # nothing would be sent: the named slot is gone
    database.fetch("SELECT pg_drop_replication_slot('other')")
    gone = one(look_on(failover=True), "standby-slots", Severity.WARNING)
    assert "names other" in gone.what
    # the slot has it, though the source does not ask for it (any more)
    database.fetch(
        "SELECT pg_create_logical_replication_slot(%s, 'pgoutput', failover => true)",
        SLOT,
    )
    assert of(look_on(), "standby-slots")


def test_a_question_that_is_refused_leaves_the_others(
    newest_postgres: PostgresServer,
) -> None:
    with temporary_database(newest_postgres) as database:
        database.execute(
            "CREATE TABLE k (a int); REVOKE ALL ON pg_prepared_xacts FROM PUBLIC;"
            "CREATE ROLE asking LOGIN REPLICATION"
        )
        try:
            database.execute(
                f"GRANT CREATE ON DATABASE {database.name} TO asking;"
                "ALTER TABLE k OWNER TO asking"
            )
            found = look(make_conninfo(database.dsn, user="asking"))
            assert one(found, "not-asked", Severity.NOTE).subject == "open_transactions"
            assert of(found, "identity")
            assert not stops(found)
        finally:
            database.execute("DROP OWNED BY asking; DROP ROLE asking")
