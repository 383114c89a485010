"""TLS and logins with real servers: what is right streams, and each way is backfilled.

PostgreSQL verifies by SCRAM or by a certificate, Kafka by SASL_SSL (PLAIN and SCRAM) or
by mutual TLS, MariaDB by a password over TLS. Certificates are of an authority that is
made here. tests/fault/test_tls.py has what is wrong, or is replaced in flight.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.fixtures.postgres import Database, temporary_database
from tests.support.fixtures.tls import Secured, check, consume
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled
from tests.support.programs.walstream import Walstream
from tests.support.servers.tls import KEY_PASSWORD, SecureKafka, SecureMariadb


@pytest.fixture(scope="module")
def kafka(secured: Secured) -> SecureKafka:
    return secured.kafka


@pytest.fixture
def database(secured: Secured) -> Iterator[Database]:
    with temporary_database(secured.postgres.server) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
        yield fresh


def streams(walstream: Walstream, database: Database, reader: Reader) -> None:
    """Claim that it is fit to start, backfills, streams, and is consumed."""
    walstream.source = {"backfill": "initial"}
    check(walstream)
    walstream.start().until("streaming", 150)
    reader.count(1)
    database.execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    assert walstream.terminate() == 0
    properties = walstream.sink["producer"]
    consume(properties, f"{walstream.prefix}public.t", 2)
    assert "PaSsWoRd" not in walstream.text


@pytest.mark.parametrize(
    "mechanism",
    ["SCRAM-SHA-256", pytest.param("PLAIN", marks=pytest.mark.fault_long)],
)
def test_passwords_over_tls(
    secured: Secured,
    database: Database,
    runs: Runs,
    reader: Reader,
    mechanism: str,
) -> None:
    producer = secured.kafka.login(mechanism)
    walstream = runs(secured.postgres.dsn(database.name), sink={"producer": producer})
    streams(walstream, database, reader)


def test_certificates_whose_keys_are_encrypted(
    secured: Secured,
    database: Database,
    runs: Runs,
    reader: Reader,
) -> None:
    pair = secured.ours.sign("bearer", password=KEY_PASSWORD)
    dsn = secured.postgres.dsn(
        database.name,
        user="bearer",
        password="",
        sslcert=str(pair.certificate),
        sslkey=str(pair.key),
        sslpassword=KEY_PASSWORD,
    )
    producer = secured.kafka.bearing(pair, KEY_PASSWORD)
    streams(runs(dsn, sink={"producer": producer}), database, reader)


def test_a_polled_source_over_tls(
    secure_mariadb: SecureMariadb, kafka: SecureKafka, tmp_path: Path, topic_prefix: str
) -> None:
    polled = Polled(
        secure_mariadb.url(),
        kafka.bootstrap,
        tmp_path / "polled",
        topic_prefix,
        sink={"producer": kafka.login("PLAIN")},
        tables={"t": {"primary_key": "id"}},
    )
    secure_mariadb.database.execute("INSERT INTO t VALUES (1)")
    check(polled)
    polled.once()
    with polled.reader() as reader:
        reader.count(1)


def test_no_physical_replication_comes_in_by_these_rules(
    secured: Secured,
) -> None:
    """What streams above has no line `replication` in pg_hba.conf."""
    dsn = secured.postgres.dsn("postgres", replication="true")
    with pytest.raises(psycopg.OperationalError, match="for replication connection"):
        psycopg.connect(dsn)
