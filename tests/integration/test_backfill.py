"""The rows that were there before come first, and agree with the stream."""

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from structlog.testing import capture_logs

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import agree, filled, load, settled
from tests.support.programs.operator import Operator
from tests.support.programs.walstream import Walstream, toml
from walstream.config import load as load_config
from walstream.errors import Transient
from walstream.op import Kind
from walstream.pipeline.shutdown import Stop, Waker
from walstream.postgres import catalog
from walstream.postgres.connection import connect
from walstream.postgres.slot_health import Alarm
from walstream.sources.postgres.backfill.run import SnapshotBackfill, hold
from walstream.sources.postgres.backfill.site import Site, Surroundings
from walstream.sources.stream_metrics import StreamMetrics
from walstream.testing import MemoryStore

pytestmark = pytest.mark.same_on_15


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return filled(database, runs, spark=False)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def test_rows_of_before_and_changes_of_meanwhile_are_the_table(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = filled(database, runs)  # by Spark
    with load(database, seed=3) as writing:
        walstream.start().until("backfill ended", 150)
        walstream.streaming()
        writing.wait_for_more()
    records = settled(database, walstream, reader)
    agree(database, records)
    snapshot = [record for record in records if record.op.snapshot]
    assert {record.kind for record in snapshot} == {Kind.INSERT}
    assert len({record.op.lsn for record in snapshot}) == 1
    assert len({record.name for record in snapshot}) == len(snapshot) > 6000


def test_without_java_nothing_is_created(
    database: Database, walstream: Walstream
) -> None:
    walstream.environment = {"JAVA_HOME": "/nowhere", "PATH": "/usr/bin:/bin"}
    walstream.top = {"spark": {"min_size": "0"}}
    walstream.start()
    walstream.ends_with(
        2, "Spark needs Java 17 or later", "apt-get install", 'backfill = "never"'
    )
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


def site_of(walstream: Walstream) -> Site:
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    config = load_config(walstream.configuration)
    name, source = next(iter(config.postgres_sources.items()))
    return Site(
        config,
        name,
        source,
        MemoryStore(),
        StreamMetrics(Alarm("s", 1 << 30, time.monotonic), None),
        Stop(Waker(), 1.0),
        driver="",
    )


def test_tables_that_cannot_be_read_are_given_up_and_those_that_are_gone_are_done(
    database: Database, walstream: Walstream
) -> None:
    role = f"blind_{database.name}"
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION")
    walstream.dsn = make_conninfo(database.dsn, user=role)
    site = site_of(walstream)
    backfill = SnapshotBackfill(site)
    backfill.begin(99, ["public.small", "public.gone"])
    with connect(database.dsn) as connection:
        facts = catalog.tables(connection)
    facts["public.gone"] = replace(facts["public.load"], name="gone")
    around = Surroundings(facts, [], {}, b"", lambda *_: None)
    try:
        with closing(hold(site, tell=print)) as holder, capture_logs() as logs:
            assert backfill.run(holder, around)
    finally:
        database.execute(f"DROP ROLE {role}")
    record = backfill.record
    assert record is not None
    assert record.tables == ()
    assert list(record.failed) == ["public.small"]
    assert "may not read 'public.small'" in record.failed["public.small"]
    (said,) = [entry for entry in logs if "is skipped" in entry["event"]]
    assert said["repair"] == f'GRANT SELECT ON "public"."small" TO "{role}";'


def test_a_stop_while_it_is_planned_leaves_all_to_the_next_start(
    database: Database, walstream: Walstream
) -> None:
    site = site_of(walstream)
    backfill = SnapshotBackfill(site)
    backfill.begin(99, ["public.load", "public.small"])
    with connect(database.dsn) as connection:
        facts = catalog.tables(connection)
    around = Surroundings(facts, [], {}, b"", lambda *_: None)
    with closing(hold(site, tell=print)) as holder:
        site.stop.request()
        with pytest.raises(Transient, match="stopped"):
            backfill.run(holder, around)
    assert backfill.record is not None
    assert backfill.record.tables == ("public.load", "public.small")
