"""From an empty folder to a change in Kafka: init, check, run."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from walstream.config import PostgresSource, load

_COMMAND: Final = Path(sys.executable).with_name("walstream")
_INSERT: Final = "INSERT INTO orders VALUES (1)"
_TABLES: Final = """
CREATE TABLE orders (id int PRIMARY KEY);
CREATE TABLE notes (t text);
INSERT INTO notes VALUES ('x');
CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF parts FOR VALUES FROM (0) TO (9);
INSERT INTO parts VALUES (1), (2);
ANALYZE
"""


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        yield fresh


@pytest.fixture
def dsn(database: Database) -> str:
    """Spell the connection string with a password, which the server ignores."""
    parts = conninfo_to_dict(database.dsn)
    host = f"{parts['host']}:{parts['port']}"
    return f"postgresql://{parts['user']}:sE%40cReT@{host}/{parts['dbname']}"


def init(
    folder: Path, *options: str, typed: str | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run it in a folder; with what is `typed`, at a terminal."""
    master, terminal = pty.openpty()
    try:
        os.write(master, (typed or "").encode())
        return subprocess.run(
            [_COMMAND, "init", *options],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL if typed is None else terminal,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(master)
        os.close(terminal)


def test_from_an_empty_folder_to_a_change_in_kafka(
    database: Database,
    kafka: KafkaServer,
    dsn: str,
    topic_prefix: str,
    tmp_path: Path,
) -> None:
    schema = topic_prefix.rstrip(".")
    there = f"SET search_path = {schema}; "
    database.execute(f"CREATE SCHEMA {schema}; {there}" + _TABLES)
    written = init(tmp_path, "--dsn", dsn, "--brokers", kafka.bootstrap)
    assert written.returncode == 0, written.stderr
    assert "sE" not in written.stdout + written.stderr
    assert "run would start" in written.stdout
    assert f"  $ walstream tail {schema}.orders\n" in written.stdout
    text = (tmp_path / "walstream.toml").read_text()
    assert f'tables = ["{schema}.*"]' in text
    assert f"#   {schema}.notes  about 1 row  (no primary key: only inserts" in text
    assert f"#   {schema}.parts  about 2 rows\n" in text
    assert f"{schema}.p1" not in text

    log = tmp_path / "log"
    with log.open("wb") as stderr:
        run = subprocess.Popen([_COMMAND, "run"], cwd=tmp_path, stderr=stderr)
    try:
        wait_until(lambda: "streaming" in log.read_text(), 150, "it streams")
        database.execute(there + _INSERT)
        with Reader(kafka.bootstrap, topic_prefix) as reader:
            records = reader.count(4)  # three rows were there before
            (streamed,) = [record for record in records if not record.op.snapshot]
            assert streamed.new == {"id": "1"}
    finally:
        run.terminate()
        assert run.wait(30) == 0, log.read_text()


def test_what_is_missing_is_asked_for_at_a_terminal(
    kafka: KafkaServer, database: Database, dsn: str, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    asked = init(
        tmp_path,
        "-o",
        "other.toml",
        typed=f"no dsn\n{dsn}\n{dsn}\n{kafka.bootstrap}\nt\npublic.t, x.*\n",
    )
    assert asked.returncode == 0, asked.stderr
    assert "is not a connection string" in asked.stdout + asked.stderr
    assert "list of HOST:PORT" in asked.stdout + asked.stderr
    assert "'t' has no schema: write public.t" in asked.stdout + asked.stderr
    assert "  $ walstream check -c other.toml\n" in asked.stdout
    config = load(tmp_path / "other.toml", {})
    source = config.sources["app"]
    assert isinstance(source, PostgresSource)
    assert source.dsn == dsn
    assert source.tables == ["public.t", "x.*"]
    assert (tmp_path / "other.password").stat().st_mode & 0o777 == 0o600


def test_without_a_terminal_nothing_is_asked(tmp_path: Path, dsn: str) -> None:
    refused = init(tmp_path)
    assert refused.returncode == 2
    assert "--dsn" in refused.stderr
    assert not list(tmp_path.iterdir())

    (tmp_path / "walstream.toml").write_text("mine")
    refused = init(tmp_path, "--dsn", dsn)
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (tmp_path / "walstream.toml").read_text() == "mine"


def test_a_variable_stays_one_and_a_server_elsewhere_is_decided_by_a_person(
    tmp_path: Path,
) -> None:
    dsn = "postgresql://me:sEcReT@db.invalid/app"
    written = init(tmp_path, "--schema", "shop", WALSTREAM_DSN=dsn)
    assert written.returncode == 0, written.stderr
    assert "sEcReT" not in written.stdout + written.stderr
    assert "verify-full" in written.stdout
    assert "run would end with 2" in written.stdout
    text = (tmp_path / "walstream.toml").read_text()
    assert 'dsn = "${env:WALSTREAM_DSN}"' in text
    assert 'tables = ["shop.*"]' in text
    assert "insecure = true\n" not in text

    agreed = init(tmp_path, "--force", typed="localhost:1\ny\n\n", WALSTREAM_DSN=dsn)
    assert agreed.returncode == 0, agreed.stderr
    text = (tmp_path / "walstream.toml").read_text()
    assert "insecure = true\n" in text
    assert '# "initial", "never" or "only".' in text
    assert "run would wait" in agreed.stdout
