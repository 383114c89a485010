"""A standby is promoted: what it lacks of what was sent is told, never mixed."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.op_order import distinct
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
from tests.support.servers.standby import Standby
from walstream.testing.servers import LocalPostgres

RECEIVED = """
SELECT FROM pg_stat_replication
WHERE application_name = 'walstream' AND write_lsn >= %s::pg_lsn
"""
COMMITS = 600_000
SINGLY = """
DO $$BEGIN
  FOR n IN {0}..{1} LOOP INSERT INTO t VALUES (n); COMMIT; END LOOP;
END$$
"""


@pytest.fixture
def primary(own_postgres: OwnPostgres) -> LocalPostgres:
    return own_postgres(18)


@pytest.fixture
def database(primary: LocalPostgres) -> Database:
    made = Database(primary)
    made.execute("CREATE TABLE t (id int PRIMARY KEY)")
    return made


@pytest.fixture
def standby(primary: LocalPostgres) -> Iterator[Standby]:
    with Standby(primary) as made:
        yield made


def begun(walstream: Walstream, database: Database, reader: Reader) -> Walstream:
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    return walstream


def follow(database: Database) -> None:
    """Wait until the standby has all that the primary has."""
    ((end,),) = database.fetch("SELECT pg_current_wal_insert_lsn()::text")
    behind = "SELECT FROM pg_stat_replication WHERE replay_lsn >= %s::pg_lsn"
    behind += " AND application_name = 'walreceiver'"
    wait_until(lambda: database.fetch(behind, end), 30, "the standby follows")


def fail_over(primary: LocalPostgres, standby: Standby, walstream: Walstream) -> None:
    primary.kill()
    standby.start()
    standby.promote()
    walstream.dsn = standby.dsn()


def test_a_row_that_was_sent_and_that_the_new_primary_lost_stops_the_source(
    primary: LocalPostgres,
    database: Database,
    standby: Standby,
    own_kafka: OwnKafka,
    runs: Runs,
) -> None:
    kafka = own_kafka()
    walstream = runs(
        primary.dsn(), bootstrap=kafka.bootstrap, source={"failover": True}
    )
    with Reader(kafka.bootstrap, runs.prefix) as reader:
        begun(walstream, database, reader)
        standby.sync(walstream.slot)
        standby.stop()
        kafka.freeze()  # sent, but not acknowledged: the position stays below
        database.execute("INSERT INTO t VALUES (2)")
        ((end,),) = database.fetch("SELECT pg_current_wal_flush_lsn()::text")
        wait_until(lambda: database.fetch(RECEIVED, end), 30, "it is given out")
        fail_over(primary, standby, walstream)
        kafka.thaw()
        reader.count(2)
        walstream.until("server closed the connection")
        assert walstream.terminate() == 0
    walstream.start().ends_with(
        3, "readers have changes that this server lost", "walstream positions reset app"
    )


@pytest.mark.fault_long
@pytest.mark.takes(240)
def test_what_a_sinks_own_worker_sent_stops_the_source_when_it_is_back(  # noqa: PLR0913, PLR0917 - fixtures
    primary: LocalPostgres,
    database: Database,
    standby: Standby,
    kafka: KafkaServer,
    own_kafka: OwnKafka,
    runs: Runs,
) -> None:
    """The stream never came to it: another sink's Kafka was away for long."""
    database.execute("ALTER TABLE t ADD v text")
    stuck, prefix = own_kafka(), f"other_{runs.prefix}"
    topic = f"{prefix}public.t"
    admin = TopicAdmin(kafka.bootstrap)
    admin.create(topic, 1, max_message_bytes="2000")
    walstream = runs(
        primary.dsn(),
        source={"failover": True},
        sink={"producer": {"bootstrap.servers": stuck.bootstrap}},
        others={"other-one": {"topic": prefix + "{schema}.{table}"}},
    )
    with (
        Reader(stuck.bootstrap, runs.prefix) as late,
        Reader(kafka.bootstrap, prefix) as early,
    ):
        begun(walstream, database, late)
        early.count(1)
        standby.sync(walstream.slot)
        database.execute("INSERT INTO t VALUES (2, repeat('x', 5000))")
        late.count(2)
        walstream.until("streaming to a detached sink")
        stuck.freeze()
        admin.configure(topic, "max.message.bytes", "200000")
        database.execute("ALTER SYSTEM SET synchronous_commit = off")
        database.execute("SELECT pg_reload_conf()")
        database.execute(SINGLY.format(3, COMMITS))
        follow(database)
        standby.stop()
        database.execute(SINGLY.format(COMMITS + 1, COMMITS + 100_000))
        early.until(
            lambda some: len(some) == COMMITS + 100_000, 180, "its own worker sends all"
        )
        stuck.thaw()
        walstream.until("sink is back in the source's stream")
        assert walstream.terminate() == 0
        assert len(late.read()) < COMMITS
    fail_over(primary, standby, walstream)
    walstream.start().ends_with(
        3, "readers have changes that this server lost", "walstream positions reset app"
    )


@pytest.mark.fault_long
def test_all_that_was_sent_is_on_the_new_primary_and_it_goes_on(
    primary: LocalPostgres,
    database: Database,
    standby: Standby,
    runs: Runs,
    reader: Reader,
) -> None:
    walstream = begun(runs(primary.dsn(), source={"failover": True}), database, reader)
    standby.sync(walstream.slot)
    follow(database)
    assert walstream.terminate() == 0
    fail_over(primary, standby, walstream)
    walstream.start().streaming()
    Database(standby).execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    # what it is on now is kept before anything of it is given out
    walstream.kill()
    walstream.start().streaming()


@pytest.mark.fault_long
@pytest.mark.takes(20)
def test_after_a_kill_an_operator_says_that_nothing_was_lost(
    primary: LocalPostgres,
    database: Database,
    standby: Standby,
    runs: Runs,
    reader: Reader,
) -> None:
    walstream = begun(runs(primary.dsn(), source={"failover": True}), database, reader)
    standby.sync(walstream.slot)
    follow(database)
    walstream.kill()
    fail_over(primary, standby, walstream)
    walstream.start().ends_with(
        3, "before it noted how far", "walstream positions show app"
    )
    walstream.start("--accept-timeline").streaming()
    Database(standby).execute("INSERT INTO t VALUES (2)")
    reader.until(partial(distinct, 2))
    assert walstream.terminate() == 0
    walstream.start().streaming()


@pytest.mark.takes(20)
def test_a_dsn_that_leads_to_the_former_primary_is_waited_out(
    primary: LocalPostgres,
    database: Database,
    standby: Standby,
    runs: Runs,
    reader: Reader,
) -> None:
    """As an address does that moves some seconds after the promotion."""
    walstream = begun(runs(primary.dsn(), source={"failover": True}), database, reader)
    standby.sync(walstream.slot)
    follow(database)
    assert walstream.terminate() == 0
    fail_over(primary, standby, walstream)
    walstream.start().streaming()
    Database(standby).execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    assert walstream.terminate() == 0

    primary.start()
    walstream.dsn = primary.dsn()
    walstream.start().until("it is a former primary")
    walstream.dsn = standby.dsn()
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    assert verb(walstream.configuration, "reload").returncode == 0
    Database(standby).execute("INSERT INTO t VALUES (3)")
    reader.count(3)
    assert walstream.terminate() == 0
    assert not walstream.said("positions reset app")
