"""A Debezium connector hands its slot over: translated, checked, adopted, and back.

What stands for the connector here is its slot, its publication and its file: what it
has sent is what the slot is confirmed to.
"""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import Done, verb
from tests.support.programs.walstream import Walstream

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, note text, secret text);
CREATE TABLE audit (id int PRIMARY KEY);
CREATE PUBLICATION dbz_publication FOR ALL TABLES;
"""
JSON = "org.apache.kafka.connect.json.JsonConverter"
INCLUDED = {"table.include.list": r"public\.orders"}


class Translated(Walstream):
    """Runs what init wrote, without a page that other tests would have, too."""

    def document(self) -> dict[str, Any]:
        made = tomllib.loads((self.folder / "made.toml").read_text("utf-8"))
        return {**made, "http": {"listen": ""}}


class Connector:
    """A connector's file and slot."""

    def __init__(self, database: Database, kafka: KafkaServer, prefix: str) -> None:
        self.database = database
        self._kafka = kafka
        self.prefix = prefix
        self.slot = database.name
        database.execute(TABLES)
        create = "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')"
        database.fetch(create, self.slot)

    def sends(self) -> None:
        """Stand for a connector that has sent everything."""
        advance = "SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())"
        self.database.fetch(advance, self.slot)

    def translate(self, folder: Path, entries: dict[str, str]) -> Done:
        """Write its file, and have it translated into made.toml."""
        parts = conninfo_to_dict(self.database.dsn)
        config = {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "slot.name": self.slot,
            "topic.prefix": self.prefix.rstrip("."),
            "database.hostname": parts["host"],
            "database.port": parts["port"],
            "database.user": parts["user"],
            "database.dbname": parts["dbname"],
            "database.password": "it's s3cret",
            **entries,
        }
        file = folder / "connector.json"
        file.write_text(json.dumps({"name": "app", "config": config}), "utf-8")
        worker = folder / "worker.properties"
        worker.write_text(
            f"bootstrap.servers={self._kafka.bootstrap}\ngroup.id=connect\n"
            f"key.converter={JSON}\nkey.converter.schemas.enable=false\n"
            f"value.converter={JSON}\nvalue.converter.schemas.enable=false\n",
            "iso-8859-1",
        )
        return verb(
            None,
            "init",
            "--from",
            str(file),
            "--worker",
            str(worker),
            "-o",
            str(folder / "made.toml"),
        )


@pytest.fixture
def connector(database: Database, kafka: KafkaServer, topic_prefix: str) -> Connector:
    return Connector(database, kafka, topic_prefix)


@pytest.fixture
def documents(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, json.loads) as opened:
        yield opened


@pytest.fixture
def walstream(
    connector: Connector, kafka: KafkaServer, tmp_path: Path
) -> Iterator[Walstream]:
    made = Translated(
        connector.database.dsn, kafka.bootstrap, tmp_path, connector.prefix
    )
    yield made
    made.close()


def ids(records: list[Record]) -> list[Any]:
    found: list[Any] = [one.op for one in records]
    return sorted(one["after"]["id"] for one in found)


def test_a_slot_is_taken_over_with_nothing_missing_and_nothing_more(
    connector: Connector, documents: Reader, walstream: Walstream, tmp_path: Path
) -> None:
    database = connector.database
    database.execute("INSERT INTO orders VALUES (1)")
    connector.sends()
    database.execute("INSERT INTO orders VALUES (2, 'n', 's')")
    database.execute("INSERT INTO audit VALUES (1)")
    columns = {"column.exclude.list": r"public\.orders\.secret"}
    made = connector.translate(tmp_path, {**INCLUDED, **columns})
    assert made.returncode == 0, made.stderr + made.stdout
    assert "s3cret" not in made.stdout + made.stderr
    assert "0 to decide" in made.stdout
    assert "database.hostname: [sources.app] dsn, host" in made.stdout
    assert "group.id (worker): the worker's own" in made.stdout

    back = f"{connector.slot}_back"
    copy = "SELECT pg_copy_logical_replication_slot(%s, %s)"
    database.fetch(copy, connector.slot, back)
    configuration = tmp_path / "made.toml"
    no_java = {"WALSTREAM__SPARK__MIN_SIZE": "0", "PATH": "", "JAVA_HOME": "/none"}
    checked = verb(configuration, "check", environment=no_java)
    assert checked.returncode == 3  # no rows from before are sent, by Spark or without
    assert "Java" not in checked.stdout
    checked = verb(configuration, "check")
    assert checked.returncode == 3
    assert "walstream run --adopt-slot" in checked.stdout
    slots = verb(configuration, "slots")
    assert back in slots.stdout, slots.stderr

    walstream.start("--adopt-slot").streaming()
    (record,) = documents.count(1)
    assert record.topic == f"{connector.prefix}public.orders"
    assert record.key == b'{"id":2}'
    value: Any = record.op
    assert value["after"] == {"id": 2, "note": "n"}
    assert value["source"]["name"] == connector.prefix.rstrip(".")
    assert walstream.terminate() == 0
    database.execute("INSERT INTO audit VALUES (2)")
    database.execute("INSERT INTO orders VALUES (3)")
    walstream.start().streaming()
    documents.count(2)
    assert ids(documents.read()) == [2, 3]

    peek = (
        "SELECT count(*) FROM pg_logical_slot_peek_binary_changes(%s, NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'dbz_publication')"
        " WHERE get_byte(data, 0) = ascii('I')"
    )
    assert database.fetch(peek, back) == [(4,)]  # the way back misses nothing


def test_a_publication_that_has_to_be_made_is_made_while_the_connector_runs(
    connector: Connector, documents: Reader, walstream: Walstream, tmp_path: Path
) -> None:
    database = connector.database
    made = connector.translate(tmp_path, {"schema.include.list": "public"})
    assert made.returncode == 3
    statement = f'CREATE PUBLICATION "{connector.slot}_walstream"'
    assert f"SQL> {statement} FOR TABLES IN SCHEMA public;\n" in made.stdout
    walstream.start("--adopt-slot")
    own = f"publication '{connector.slot}_walstream'"
    walstream.ends_with(2, f"{own} does not exist", "nothing was changed")

    database.execute("INSERT INTO orders VALUES (1)")
    database.execute(f"{statement} FOR TABLES IN SCHEMA public")
    walstream.start("--adopt-slot")
    walstream.ends_with(3, "publication")  # the slot is not beyond it
    rmtree(walstream.state)  # nothing was sent; the slot goes back to the connector
    connector.sends()
    database.execute("INSERT INTO orders VALUES (2)")
    walstream.start("--adopt-slot").streaming()
    documents.count(1)
    assert ids(documents.read()) == [2]


def test_what_says_the_same_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    for options, why in (
        (("--from", str(file), "--dsn", "host=x"), "--dsn and --from"),
        (("--from", str(file), "--tables", "a.b"), "--tables and --from"),
        (("--worker", str(file), "--dsn", "host=x"), "--worker is only for --from"),
        (("--from", str(file)), "cannot be read"),
    ):
        refused = verb(None, "init", *options, "-o", str(tmp_path / "w.toml"))
        assert refused.returncode == 2
        assert why in refused.stderr
    assert not list(tmp_path.iterdir())
