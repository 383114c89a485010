"""Backfills without a stream: once and no more, or once more."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.table_state import by_arrival, by_position, in_place, rows_of
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import agree, filled, settled
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        yield made


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return filled(database, runs, spark=False)


def test_only_backfills_and_ends(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.source = {"backfill": "only"}
    assert walstream.start().wait(150) == 0
    records = reader.read()
    assert by_position(records) == rows_of(database, "public.load", "public.small")
    assert not database.fetch("SELECT FROM pg_replication_slots")
    assert walstream.start().wait(60) == 0
    assert walstream.said("backfilled before")
    assert len(reader.read()) == len(records)


def test_rows_of_a_table_that_is_new_since_a_reset_come_once(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    database.execute("DROP TABLE load")
    walstream.source = {"backfill": "never"}  # the reset is what counts
    assert walstream.start().streaming().terminate() == 0
    reset = verb(walstream.configuration, "positions", "reset", SOURCE, "--yes")
    assert reset.returncode == 0, reset.stderr
    assert "publications stay: walstream, walstream_insert" in reset.stdout
    database.execute(
        "CREATE TABLE later (id int PRIMARY KEY);"
        " INSERT INTO later SELECT generate_series(1, 7);"
        " CREATE TABLE bare (v text); INSERT INTO bare VALUES ('x')"
    )
    walstream.source = {"backfill": "initial"}
    assert walstream.start().streaming().running
    assert not walstream.said("not sent")
    database.execute("INSERT INTO later VALUES (8)")  # comes behind all of before
    records = reader.until(lambda found: any(r.new == {"id": "8"} for r in found), 60)
    assert walstream.terminate() == 0
    counts = Counter(record.op.table.name for record in records)
    assert counts == {"small": 10, "later": 8, "bare": 1}
    assert not walstream.said("table backfilled")  # beside the stream


def backfilled(
    walstream: Walstream, *arguments: str
) -> subprocess.CompletedProcess[str]:
    return verb(walstream.configuration, "backfill", *arguments, timeout_s=120)


@pytest.mark.fault_long
def test_tables_are_sent_again_in_their_place(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.source = {**walstream.source, "backfill": "never"}
    walstream.start().streaming()
    assert walstream.terminate() == 0
    database.execute(
        "DELETE FROM load WHERE id > 5; UPDATE load SET n = 1 WHERE id = 5"
    )
    database.execute("CREATE VIEW odd AS SELECT id, n FROM load WHERE id % 2 = 1")
    refused = backfilled(walstream, "public.none")
    assert refused.returncode == 2
    assert "there is no table 'public.none'" in refused.stderr
    done = backfilled(walstream, "load", "public.odd")
    assert done.returncode == 0, done.stderr
    records = settled(database, walstream.start(), reader)
    load = [record for record in records if record.op.table.name == "load"]
    assert by_position(load) == by_arrival(load) == rows_of(database, "public.load")
    in_place(records)
    odd = [record for record in records if record.op.table.name == "odd"]
    ((count,),) = database.fetch("SELECT count(*) FROM odd")
    assert len(odd) == count
    assert all(record.op.snapshot for record in odd)


@pytest.mark.fault_long
def test_replaced_rows_that_were_deleted_in_a_gap_are_gone(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start().until("backfill ended", 150)
    settled(database, walstream, reader)
    database.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
    )
    database.execute("DELETE FROM small WHERE id < 4")
    walstream.start().ends_with(3, "is gone")
    command = str(Path(sys.executable).with_name("walstream"))
    reset = [
        command,
        "positions",
        "reset",
        "app",
        "--yes",
        "-c",
        str(walstream.configuration),
    ]
    subprocess.run(reset, check=True, capture_output=True)
    walstream.source = {**walstream.source, "backfill": "never"}
    walstream.start().streaming()
    assert walstream.terminate() == 0
    assert by_position(reader.read()) != rows_of(
        database, "public.load", "public.small"
    )
    done = backfilled(walstream, "public.*", "--replace")
    assert done.returncode == 0, done.stderr
    agree(database, settled(database, walstream.start(), reader))


@pytest.mark.fault_long
def test_a_table_that_is_given_up_is_the_exit_code_until_it_is_mended(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = filled(database, runs, tables=[], backfill="only")
    database.execute(
        "CREATE TABLE broken (id int PRIMARY KEY); INSERT INTO broken VALUES (5);"
        "CREATE PUBLICATION walstream FOR TABLE small, broken"
        " WHERE (10 / (id - 5) > -100)"
    )
    walstream.start()
    walstream.ends_with(5, "public.broken", "division by zero", timeout_s=150)
    before = list(reader.read())
    # a chunk may be sent again for another one's sake: under the same names
    assert len({(record.op.lsn, record.op.seq_id) for record in before}) == 10
    database.execute("ALTER PUBLICATION walstream SET TABLE small, broken")
    assert walstream.start().wait(150) == 0, walstream.text
    assert len(reader.read()) == len(before) + 1
