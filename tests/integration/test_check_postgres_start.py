"""`check` says what the start table says; the printed command makes `run` stream."""

import re
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.inspection import (
    command,
    known,
    look,
    look_as,
    of,
    one,
    stops,
)
from tests.support.programs.walstream import Walstream
from walstream.finding import Finding, Severity
from walstream.lsn import parse
from walstream.postgres.start_table import StoredState

INSERT = "INSERT INTO t DEFAULT VALUES"


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as fresh:
        fresh.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        yield fresh


@pytest.fixture
def stopped(database: Database, runs: Runs, reader: Reader) -> Walstream:
    """Give one that has streamed a row."""
    walstream = runs(database.dsn).start().streaming()
    database.execute(INSERT)
    reader.count(1)
    assert walstream.terminate() == 0
    return walstream


def streams(database: Database, walstream: Walstream, reader: Reader) -> None:
    """Claim that a running one passes a row on, and ends well."""
    walstream.streaming()
    before = len(reader.read())
    database.execute(INSERT)
    reader.until(lambda records: len(records) > before)
    assert walstream.terminate() == 0


def ends_as(walstream: Walstream, finding: Finding) -> None:
    """Claim that `run` ends with that finding, and prints the same repair."""
    fact = finding.what.partition(";")[0]  # the server's LSN goes on
    walstream.start().ends_with(finding.exit_code, fact)
    (said,) = walstream.said(fact)
    assert said["repair"].startswith(finding.repair.command)


@pytest.fixture(scope="module")
def rested(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Walstream]:
    """Give one that several tests look at, and none starts again."""
    folder = tmp_path_factory.mktemp("rested")
    with temporary_database(newest_postgres) as fresh:
        fresh.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        with Walstream(fresh.dsn, kafka.bootstrap, folder, prefix="rested.") as once:
            assert once.terminate() == 0
        yield once


def test_a_source_that_has_streamed_goes_on_without_a_remark(rested: Walstream) -> None:
    found = look_as(rested)
    assert not [one for one in found.findings if one.severity is not Severity.NOTE]
    assert list(found.captured) == ["public.t"]


def test_what_is_lost_is_reset_as_printed(
    database: Database, stopped: Walstream, reader: Reader
) -> None:
    database.fetch("SELECT pg_drop_replication_slot(%s)", stopped.slot)
    finding = one(look_as(stopped), "slot-lost", Severity.STOP, 3)
    ends_as(stopped, finding)
    command(stopped, finding.repair)
    assert not stops(look_as(stopped))
    streams(database, stopped.start(), reader)

    database.execute("DROP PUBLICATION walstream")
    finding = one(look_as(stopped), "publication-lost", Severity.STOP, 3)
    command(stopped, finding.repair)
    assert not stops(look_as(stopped))


def test_a_table_taken_out_is_a_loss_only_while_it_is_wanted(
    stopped: Walstream,
) -> None:
    with psycopg.connect(stopped.dsn, autocommit=True) as connection:
        connection.execute("ALTER PUBLICATION walstream DROP TABLE t")
        one(look_as(stopped), "publication-lost", Severity.STOP, 3)
        meant = look_as(stopped, tables=["public.other"])
        connection.execute("ALTER PUBLICATION walstream ADD TABLE t")
    assert not stops(meant)
    assert one(meant, "taken-out", Severity.NOTE).subject == "table public.t"


def test_what_the_folder_does_not_know_cannot_be_trusted(rested: Walstream) -> None:
    stored, publications = known(rested)
    assert publications is not None
    found = look(rested.dsn, stored, slot=rested.slot)
    one(found, "publication-lost", Severity.STOP, 3)
    gone = replace(stored, position=None)
    (code,) = stops(look(rested.dsn, gone, slot=rested.slot, publication="other"))
    assert code == ("publication-lost", 3)


def test_an_unknown_slot_may_be_adopted(rested: Walstream) -> None:
    unknown = look(rested.dsn, slot=rested.slot)
    finding = one(unknown, "history", Severity.STOP, 3)
    assert finding.repair.command == "walstream run --adopt-slot"
    assert not stops(look(rested.dsn, slot=rested.slot, adopt_slot=True))


def test_only_another_ones_hold_of_the_slot_is_a_finding(
    database: Database, stopped: Walstream, reader: Reader
) -> None:
    stored, publications = known(stopped)
    assert stored.position is not None
    passed = stored.position.resume
    stopped.start().streaming()
    second = one(look(stopped.dsn, slot=stopped.slot), "slot-in-use", Severity.STOP, 2)
    assert "second instance" in second.why
    assert re.search(r"pid \d+ \(walstream of .* since 20", second.what)
    other = look(stopped.dsn, slot=stopped.slot, adopt_slot=True)
    finding = one(other, "slot-in-use", Severity.STOP, 5)
    assert "run would wait" in finding.why
    assert re.fullmatch(r"SELECT pg_terminate_backend\(\d+\);", finding.repair.sql)
    assert "walstream run --adopt-slot --take-over" in finding.repair.then
    assert not finding.repair.command  # no run while an instance has the folder

    database.execute(INSERT)
    reader.count(2)
    confirmed = (
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        " WHERE slot_name = current_database()"
    )
    wait_until(lambda: parse(database.fetch(confirmed)[0][0]) > passed, 20, "it moves")
    # beside it, what was read of its position is behind by now
    beside = look(
        stopped.dsn, stored, publications=publications, running=True, slot=stopped.slot
    )
    assert not stops(beside)
    assert stopped.terminate() == 0


def test_a_slot_that_is_not_ours_is_left_alone(database: Database) -> None:
    database.execute(
        "SELECT pg_create_logical_replication_slot(current_database()::name,"
        " 'test_decoding')"
    )
    for stored in (StoredState(), StoredState(intent=True)):
        found = look(database.dsn, stored, slot=database.name)
        finding = one(found, "history", Severity.STOP, 3)
        assert "test_decoding" in finding.what
        assert "another `slot`" in finding.repair.then
    # as is printed: another one
    assert not of(look(database.dsn, slot="another"), "history")


def test_a_slot_that_gives_out_what_is_prepared_is_named(database: Database) -> None:
    database.execute(
        "SELECT pg_create_logical_replication_slot(current_database()::name,"
        " 'pgoutput', false, true)"
    )
    found = look(database.dsn, slot=database.name, adopt_slot=True)
    finding = one(found, "history", Severity.STOP, 3)
    assert "two_phase" in finding.what
    assert "another `slot`" in finding.repair.then
