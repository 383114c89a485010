"""The rows that were there before come first, and agree with the stream."""

import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from tests.backfilling import agree, filled, load, settled
from tests.fix_postgres import Database
from tests.fix_walstream import Runs
from tests.folding import by_arrival, by_position, in_place, rows_of
from tests.operator import Operator
from tests.reading import Reader
from tests.running import Walstream
from walstream.op import Kind


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return filled(database, runs)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def test_rows_of_before_and_changes_of_meanwhile_are_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    with load(database, seed=3) as writing:
        walstream.start().until("backfill ended", 60)
        walstream.streaming()
        writing.wait_for_more()
    records = settled(database, walstream, reader)
    agree(database, records)
    snapshot = [record for record in records if record.op.snapshot]
    assert {record.kind for record in snapshot} == {Kind.INSERT}
    assert len({record.op.lsn for record in snapshot}) == 1
    assert len({record.name for record in snapshot}) == len(snapshot) > 6000


def test_only_backfills_and_ends(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.source = {"backfill": "only"}
    assert walstream.start().wait(90) == 0
    records = reader.read()
    assert by_position(records) == rows_of(database, "public.load", "public.small")
    assert not database.fetch("SELECT FROM pg_replication_slots")
    assert walstream.start().wait(30) == 0
    assert walstream.said("backfilled before")
    assert len(reader.read()) == len(records)


def test_without_java_nothing_is_created(
    database: Database, walstream: Walstream
) -> None:
    walstream.environment = {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin:/bin"}
    walstream.start()
    walstream.ends_with(2, "Spark needs Java 17 or later", "apt-get install")
    assert not database.fetch("SELECT FROM pg_replication_slots")
    assert not database.fetch("SELECT FROM pg_publication")


def test_a_table_that_may_not_be_read_stops_it_before_anything_is_created(
    database: Database, walstream: Walstream, operator: Operator
) -> None:
    role = f"role_{database.name}"
    database.execute(
        f"CREATE ROLE {role} LOGIN REPLICATION; CREATE PUBLICATION walstream FOR ALL"
        f" TABLES; GRANT SELECT ON load TO {role}"
    )
    walstream.dsn = make_conninfo(database.dsn, user=role)
    walstream.source = {**walstream.source, "tables": []}
    try:
        walstream.start().ends_with(4, f"role '{role}' may not read 'public.small'")
        assert not database.fetch("SELECT FROM pg_replication_slots")
        report = operator.check(walstream)
        assert report["exit_code"] == 4
        (finding,) = [
            one
            for source in report["sources"]
            for one in source["findings"]
            if one["code"] == "backfill-right"
        ]
        database.execute(finding["repair"]["sql"])
        assert operator.check(walstream)["ok"]
    finally:
        database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def backfilled(
    walstream: Walstream, *arguments: str
) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("walstream")
    return subprocess.run(
        [command, "backfill", *arguments, "-c", walstream.configuration],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


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


def test_replaced_rows_that_were_deleted_in_a_gap_are_gone(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start().until("backfill ended", 90)
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
