"""`walstream positions rewind --to TIME`: exactly what was not committed before it."""

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import as_json, verb
from tests.support.programs.walstream import SOURCE, Walstream
from walstream.admin import rewind as rewinding
from walstream.admin.rewind import Rewind, To
from walstream.config import load
from walstream.errors import ConfigError, Transient
from walstream.formats import event, timestamp
from walstream.lsn import parse, show
from walstream.state.store import LmdbStore

pytestmark = pytest.mark.same_on_15

_DAY = "2026-11-21"
_RETAIN = {"retain": "64MiB"}
_TABLE = "CREATE TABLE t (id serial PRIMARY KEY, v text)"
_ORIGIN = "rewinds"


def commit_at(database: Database, *times: str) -> None:
    """Commit a transaction of two rows at each time, whatever the clock says."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(f"SELECT pg_replication_origin_create('{_ORIGIN}')")
        connection.execute(f"SELECT pg_replication_origin_session_setup('{_ORIGIN}')")
        try:
            for time in times:
                with connection.transaction():
                    connection.execute(
                        f"SELECT pg_replication_origin_xact_setup('0/1', '{time}Z')"
                    )
                    connection.execute("INSERT INTO t (v) VALUES ('x'), ('y')")
        finally:
            connection.execute("SELECT pg_replication_origin_session_reset()")
            connection.execute(f"SELECT pg_replication_origin_drop('{_ORIGIN}')")


def planned(walstream: Walstream, to: To) -> int:
    """Tell to which LSN it would go, and leave it where it is."""
    found: list[Rewind] = []

    def refuse(rewind: Rewind) -> bool:
        found.append(rewind)
        return False

    config = load(walstream.configuration, {})
    said = rewinding.rewind(config, SOURCE, to, refuse)
    assert said == "nothing was changed"
    return found[0].to


def at(time: str) -> To:
    return timestamp.parse(f"{_DAY}T{time}")


def all_stored(walstream: Walstream, lsn: int) -> None:
    """Wait until a position behind a transaction is stored."""

    def stored() -> bool:
        with LmdbStore.open_read_only(walstream.state) as positions:
            position = positions.position() if positions else None
        return position is not None and position.resume > lsn

    wait_until(stored, 10, "the position is stored")


def test_a_time_leads_to_the_first_that_was_not_committed_before_it(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source=_RETAIN)
    with walstream:
        times = ["12:00:00.000001", "11:00:00", "13:00:00", "12:30:00", "14:00:00"]
        commit_at(database, *(f"{_DAY} {time}" for time in times))
        first = list(reader.count(10))
        lsns = [record.op.lsn for record in first[::2]]
        all_stored(walstream, lsns[-1])

        # commit times do not rise with the LSN
        for time, wanted in {
            "12:00:00.000001": 0,
            "12:00:00.000002": 2,
            "12:45": 2,
            "13:00:00": 2,
            "14:00:00+01": 2,
            "13:00:00.000001": 4,
            "14:00": 4,
        }.items():
            assert planned(walstream, at(time)) == lsns[wanted], time
        (window,) = [
            source["window"]
            for source in as_json(
                walstream.configuration, "positions", "positions", "show"
            )["sources"]
        ]
        assert window["first_time"] == f"{_DAY}T12:00:00.000001Z"
        assert window["last_time"] == f"{_DAY}T14:00:00Z"
        for time in ("11:59", "14:00:00.000001"):
            with pytest.raises(ConfigError) as refused:
                planned(walstream, at(time))
            assert f"any LSN from {window['oldest']} to" in refused.value.hint
            assert f"time from {_DAY}T12:00:00.000001Z to" in refused.value.hint
        for age in ("-1s", "1 second ago"):  # an age is a time, too
            words = ("positions", "rewind", SOURCE, "--to", age, "--yes")
            done = verb(walstream.configuration, *words)
            assert done.returncode == 2
            assert "up to the position was committed at" in done.stderr
    slots = "SELECT count(*) FROM pg_replication_slots WHERE temporary"
    wait_until(lambda: database.fetch(slots) == [(0,)], 10, "no copy is left")


def test_three_lsns_and_a_time_repeat_each_uuid(
    newest_postgres: PostgresServer, kafka: KafkaServer, runs: Runs, topic_prefix: str
) -> None:
    with (
        temporary_database(newest_postgres) as database,
        Reader(kafka.bootstrap, topic_prefix, event.decode) as reader,
        psycopg.connect(database.dsn) as slow,
    ):
        database.execute(_TABLE)
        walstream = runs(database.dsn, source=_RETAIN, sink={"format": "event"})
        with walstream:
            commit_at(database, f"{_DAY} 10:00:00", f"{_DAY} 11:00:00")
            between = lsn_of(database)
            slow.execute("INSERT INTO t (v) VALUES ('slow')")
            inside = lsn_of(database)
            commit_at(database, f"{_DAY} 12:00:00")
            behind = lsn_of(database)
            slow.commit()
            first = list(reader.count(7))
            config = load(walstream.configuration, {})
            for to, skipped in (
                (between, 4),
                (inside, 4),
                (behind, 6),  # the slow one alone: its commit lies behind
                (f"{_DAY} 11:30:00+01", 2),
            ):
                seen = len(reader.records)
                all_stored(walstream, behind)
                if isinstance(to, int):
                    said = rewinding.rewind(config, SOURCE, to, lambda _: True)
                    assert f"is at {show(to)}, and streams again" in said
                else:
                    arguments = ("positions", "rewind", SOURCE, "--to", to, "--yes")
                    done = verb(walstream.configuration, *arguments)
                    assert done.returncode == 0, done.stderr
                again = reader.count(seen + 7 - skipped)[seen:]
                assert [one.value for one in again] == [
                    one.value for one in first[skipped:]
                ]

            # the index knows what came again, and what comes now
            before = lsn_of(database)
            commit_at(database, f"{_DAY} 13:00:00")
            reader.count(len(reader.records) + 2)
            all_stored(walstream, before)
            assert planned(walstream, at("12:00:01")) >= behind
            assert inside < planned(walstream, at("12:00")) < behind


def lsn_of(database: Database) -> int:
    ((text,),) = database.fetch("SELECT pg_current_wal_insert_lsn()::text")
    return parse(str(text))


def test_a_search_without_a_free_slot_says_what_else_there_is(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader
) -> None:
    with temporary_database(newest_postgres) as database:
        database.execute(_TABLE)
        walstream = runs(database.dsn, source=_RETAIN)
        with walstream:
            commit_at(database, f"{_DAY} 10:00:00")
            all_stored(walstream, reader.count(2)[0].op.lsn)
            with psycopg.connect(database.dsn, autocommit=True) as other:
                other.execute(
                    "SELECT pg_create_physical_replication_slot('taken_' || n, false,"
                    " true) FROM pg_settings, generate_series(1, setting::int -"
                    " (SELECT count(*) FROM pg_replication_slots)::int) n"
                    " WHERE name = 'max_replication_slots'"
                )
                with pytest.raises(Transient, match="in use") as full:
                    planned(walstream, at("10:00"))
            assert "an LSN" in full.value.hint


def test_a_fresh_idle_slot_with_a_large_retain_is_quiet(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"retain": "4TiB"})
    query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
    with walstream:
        # nothing of ours is written: keepalives alone move the position
        start = lsn_of(database)
        database.fetch("SELECT pg_logical_emit_message(false, 'other', 'x')")
        database.execute("CHECKPOINT")
        all_stored(walstream, start)
        config = load(walstream.configuration, {})
        with pytest.raises(ConfigError, match="no commit time is known") as refused:
            rewinding.rewind(config, SOURCE, at("10:00"), lambda _: True)
        assert "any time" not in refused.value.hint
        ((confirmed,),) = database.fetch(
            f"{query} WHERE slot_name = '{walstream.slot}'"
        )
        assert parse(str(confirmed)) <= start
        assert planned(walstream, parse(str(confirmed))) == parse(str(confirmed))
        assert walstream.terminate() == 0
    loud = [entry for entry in walstream.log if entry["level"] != "info"]
    assert not loud, loud
