"""Keys that start anew: the table turns red, with the command that cures it.

On PostgreSQL, MariaDB and SQLite, with `walstream run`: table `t` waits for somebody,
and `u` is read from its first key.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.integration.test_polled_tables import (
    LONG_S,
    MariadbShop,
    Postgres,
    Scene,
    Shop,
    SqliteShop,
)
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled, keys_of
from tests.support.programs.sqlite_source import file_of
from tests.support.programs.table_read import postgres_url
from tests.support.programs.verb import verb
from walstream.formats.row import decode

TABLES: Final = {"t": {}, "u": {"on_restart": "reread"}}


@dataclass
class Restarts(Scene):
    """An instance, and what came of each table."""

    def insert_into(self, table: str, rows: int = 1) -> None:
        values = ", ".join(["('v')"] * rows)
        self.shop.execute(f"INSERT INTO {table} (v) VALUES {values}")  # noqa: S608

    def keys(self, table: str, count: int) -> list[int]:
        """Read all of a table's records, when there are so many."""
        topic = f"{self.polled.prefix}legacy.{table}"
        with Reader(self.polled.bootstrap, topic, decode) as reader:
            reader.count(count, LONG_S)
            return sorted(keys_of(reader))

    def waits(self, *words: str) -> None:
        """See `t` red, and cure it by its own command."""

        def is_red() -> bool:
            error = self.table("t").error
            if not error or not all(word in error for word in words):
                return False
            return self.source().state == "polling"  # not what another run has said

        wait_until(is_red, LONG_S, f"t says {words}")
        found = self.source()
        assert found.exit_code == 5
        repair = self.table("t").repair
        assert repair in found.problems[0]
        command = shlex.split(re.sub(r"(-c|--config) \S+", "", repair))
        assert command[:3] == ["walstream", "positions", "rewind"]
        done = verb(self.polled.configuration, *command[1:], "--yes")
        assert done.returncode == 0, done.stderr
        self.is_well()

    def is_well(self) -> None:
        wait_until(lambda: self.source().exit_code == 0, LONG_S, "it is well")


@contextmanager
def scene_of(
    shop: Shop, kafka: KafkaServer, folder: Path, prefix: str
) -> Iterator[Restarts]:
    polled = Polled(shop.url, kafka.bootstrap, folder, prefix, tables=TABLES)
    with closing(polled):
        polled.start().until("polling", LONG_S)
        scene = Restarts(shop, polled)
        for table in TABLES:
            scene.insert_into(table, 3)
            assert scene.keys(table, 3) == [1, 2, 3]
        yield scene
        assert polled.terminate() == 0


def test_a_truncated_table_of_postgresql_is_not_passed_over_in_silence(
    postgres18: PostgresServer, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    with temporary_database(postgres18) as database:
        shop = Postgres(postgres_url(database.dsn), database.dsn)
        for table in TABLES:
            shop.execute(f"CREATE TABLE {table} (id serial PRIMARY KEY, v TEXT)")
        with scene_of(shop, kafka, tmp_path, topic_prefix) as scene:
            shop.execute("DELETE FROM t")  # on purpose: its keys go on
            scene.insert_into("t")
            assert scene.keys("t", 4)[-1] == 4
            shop.execute("TRUNCATE t, u RESTART IDENTITY")
            for table in TABLES:
                scene.insert_into(table, 2)
            assert scene.keys("u", 5) == [1, 1, 2, 2, 3]
            scene.waits("greatest key is 2, and its position 4")
            assert scene.keys("t", 6) == [1, 1, 2, 2, 3, 4]
            (said,) = scene.polled.said("a table is not polled")
            assert said["repair"].startswith("walstream positions rewind")
            assert scene.polled.said("its keys start again: the table is read")

            # within one transaction the keys grow past the position
            shop.execute(
                "BEGIN; TRUNCATE t RESTART IDENTITY;"
                "INSERT INTO t (v) SELECT 'v' FROM generate_series(1, 9); COMMIT"
            )
            scene.waits("was created again")
            assert scene.keys("t", 15).count(9) == 1

            # its type is changed: its keys go on
            shop.execute(
                "ALTER TABLE t ALTER id TYPE bigint; ALTER SEQUENCE t_id_seq AS bigint"
            )
            scene.insert_into("t")
            assert scene.keys("t", 16)[-1] == 10
            scene.is_well()


def test_a_truncated_table_of_mariadb_is_not_passed_over_in_silence(
    mariadb_database: Mariadb, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    shop = MariadbShop(mariadb_database.url, mariadb_database)
    for table in TABLES:
        shop.execute(
            f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9))"
        )
    with scene_of(shop, kafka, tmp_path, topic_prefix) as scene:
        shop.execute("DELETE FROM t WHERE id = 3")
        scene.insert_into("t")
        assert scene.keys("t", 4) == [1, 2, 3, 4]
        for table in TABLES:
            shop.execute(f"TRUNCATE {table}")
        scene.waits("next key is 1, and its position 4")  # before a row is lost
        for table in TABLES:
            scene.insert_into(table)
        assert scene.keys("t", 5) == [1, 1, 2, 3, 4]
        assert scene.keys("u", 4) == [1, 1, 2, 3]
        scene.is_well()


@pytest.mark.parametrize("stops", [False, True])
def test_a_table_of_sqlite_that_gives_its_keys_again_waits(
    kafka: KafkaServer,
    topic_prefix: str,
    tmp_path: Path,
    stops: bool,
) -> None:
    shop = SqliteShop(f"sqlite:///{file_of(tmp_path)}", file_of(tmp_path))
    for table in TABLES:
        shop.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v TEXT)")
    with scene_of(shop, kafka, tmp_path, topic_prefix) as scene:
        shop.execute("DELETE FROM t")
        scene.insert_into("u")
        assert scene.keys("u", 4)[-1] == 4
        scene.is_well()  # a table without rows shows nothing yet
        if stops:
            assert scene.polled.terminate() == 0
        scene.insert_into("t")
        if stops:
            scene.polled.start().until("polling", LONG_S)
        scene.waits("greatest key is 1, and its position 3")
        assert scene.keys("t", 4) == [1, 1, 2, 3]
