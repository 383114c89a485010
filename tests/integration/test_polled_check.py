"""`walstream check` of sql sources: what `run` would end with, and the very cure."""

import json
from pathlib import Path

import jsonschema
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.programs.inspection import repair as run_repair
from tests.support.programs.operator import Operator, codes, findings, found
from tests.support.programs.polled_source import Polled
from tests.support.programs.sqlite_source import execute, file_of
from tests.support.programs.verb import published
from walstream.errors import Repair
from walstream.testing.servers.port import free_port

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (3);"


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path / "operator")


def on_sqlite(folder: Path, bootstrap: str, prefix: str) -> Polled:
    execute(file_of(folder), TABLE)
    url = f"sqlite:///{file_of(folder)}"
    return Polled(url, bootstrap, folder, prefix, tables={"t": {}})


def test_what_can_be_polled_would_start(
    tmp_path: Path, kafka: KafkaServer, topic_prefix: str, operator: Operator
) -> None:
    polled = on_sqlite(tmp_path, kafka.bootstrap, topic_prefix)
    report = operator.check(polled)
    assert report["ok"], findings(report)
    assert codes(report) == {"low-water-mark", "topics-to-create"}
    assert f"{topic_prefix}legacy.t" in found(report, "topics-to-create")["subject"]
    jsonschema.validate(report, published("check"))
    assert not (tmp_path / "state").exists()


def test_kafka_that_is_away_is_waited_for(tmp_path: Path, operator: Operator) -> None:
    report = operator.check(on_sqlite(tmp_path, f"127.0.0.1:{free_port()}", "x."))
    assert report["exit_code"] == 5
    assert "new rows wait" in found(report, "brokers-unreachable")["why"]


def test_every_table_that_cannot_be_polled_is_named(
    tmp_path: Path, kafka: KafkaServer, topic_prefix: str, operator: Operator
) -> None:
    polled = on_sqlite(tmp_path, kafka.bootstrap, topic_prefix)
    polled.tables = {"none": {}, "t": {"fields": ["nope"]}}
    report = operator.check(polled)
    assert report["exit_code"] == 2
    said = [one["what"] for one in findings(report) if one["code"] == "table"]
    assert "no table none" in said[0]
    assert "has no column nope" in said[1]


def test_a_machine_without_java_is_told_what_to_install(
    tmp_path: Path,
    kafka: KafkaServer,
    topic_prefix: str,
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polled = on_sqlite(tmp_path, kafka.bootstrap, topic_prefix)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    report = operator.check(polled)
    assert report["exit_code"] == 2
    assert "apt-get install openjdk" in json.dumps(found(report, "java"))


def test_a_database_that_is_away_is_waited_for_and_no_secret_is_shown(
    tmp_path: Path, kafka: KafkaServer, topic_prefix: str, operator: Operator
) -> None:
    url = f"postgresql+psycopg://me:sEcReT@127.0.0.1:{free_port()}/shop"
    polled = Polled(url, kafka.bootstrap, tmp_path, topic_prefix, tables={"t": {}})
    report = operator.check(polled)
    assert report["exit_code"] == 5
    assert "database shop" in found(report, "database-unreachable")["what"]
    assert "sEcReT" not in json.dumps(report)


def url_of(database: Database, user: str) -> str:
    """Write it as SQLAlchemy wants it."""
    facts = conninfo_to_dict(database.dsn)
    name, host, port = facts["dbname"], facts["host"], facts.get("port", 5432)
    return f"postgresql+psycopg://{user}@/{name}?host={host}&port={port}"


def test_a_right_that_is_missing_is_given_as_printed(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path, operator: Operator
) -> None:
    with temporary_database(postgres18) as database:
        role = f"reader_{database.name}"
        database.execute(
            f"CREATE ROLE {role} LOGIN; CREATE TABLE t (id serial PRIMARY KEY)"
        )
        url = url_of(database, role)
        polled = Polled(url, kafka.bootstrap, tmp_path, "right.", tables={"t": {}})
        try:
            report = operator.check(polled)
            assert report["exit_code"] == 4
            run_repair(database, Repair(**found(report, "table-right")["repair"]))
            report = operator.check(polled)
            assert report["ok"], findings(report)
            assert "low-water-mark" not in codes(report)  # PostgreSQL has one
        finally:
            database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
