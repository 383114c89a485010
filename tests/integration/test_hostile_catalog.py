"""Every verb in a database whose names are a stranger's: no function of his runs.

As a superuser, and as the role of docs/operations.md. What the twins catch: see
tests/support/servers/hostile_catalog.py.
"""

# ruff: noqa: S608 - SQL of constants

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from consumer.dedupe import SeenInPostgres
from consumer.row_message import RowMessage
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, local_postgres, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.mirror import Mirror
from tests.support.programs.polled_source import Polled
from tests.support.programs.table_read import postgres_url
from tests.support.programs.verb import verb
from tests.support.programs.walstream import toml
from tests.support.selection import shortened
from tests.support.servers.hostile_catalog import STRANGER, Trap
from walstream.formats.row import row_hash

pytestmark = pytest.mark.same_on_15

NAIVE: Final = "SELECT relname || '.' FROM pg_class LIMIT 1"
LONGEST_S: Final = 150.0
# The key of `names` is of an extension that the stranger's schema has; that of `moods`
# is of his own type, whose values become texts by his function.
TABLES: Final = """
CREATE EXTENSION citext SCHEMA lair;
CREATE TABLE names (name lair.citext PRIMARY KEY, n int);
CREATE TYPE public.mood AS ENUM ('sad', 'so so', 'glad');
ALTER TYPE public.mood OWNER TO stranger;
CREATE TABLE orders (id int PRIMARY KEY, kind regclass, note text);
CREATE TABLE moods (mood mood PRIMARY KEY, big text);
ALTER TABLE moods ALTER big SET STORAGE EXTERNAL;
CREATE TABLE polled (id bigserial PRIMARY KEY, mood mood, note text);
"""
ROWS: Final = """
INSERT INTO orders SELECT i, 'orders', 'note' FROM generate_series(1, 30) i;
INSERT INTO names SELECT chr(64 + i), i FROM generate_series(1, 20) i;
INSERT INTO moods VALUES ('sad', repeat('x', 9000));
INSERT INTO polled (mood, note) SELECT 'sad', 'note' FROM generate_series(1, 30);
"""
CAST: Final = """
CREATE FUNCTION lair.text_of(public.mood) RETURNS text LANGUAGE sql
  AS $$ SELECT lair.spring('cast'); SELECT 'sad' $$;
CREATE CAST (public.mood AS text) WITH FUNCTION lair.text_of(public.mood) AS IMPLICIT
"""
# as docs/operations.md has it, and with the tables' ownership
ROLE: Final = """
GRANT CREATE ON DATABASE {database} TO walstream;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO walstream;
GRANT EXECUTE ON FUNCTION pg_ls_replslotdir(text) TO walstream;
ALTER TABLE orders OWNER TO walstream; ALTER TABLE names OWNER TO walstream;
ALTER TABLE moods OWNER TO walstream; GRANT ALL ON SCHEMA public TO walstream;
"""


@pytest.fixture
def trap(guarded: Trap) -> Iterator[Trap]:
    """Give the server as nobody met a twin before."""
    guarded.forget()
    yield guarded
    Database(guarded.server).execute(f"ALTER ROLE {STRANGER} NOSUPERUSER")


@pytest.fixture(scope="module")
def guarded() -> Iterator[Trap]:
    needs_own_servers()
    with local_postgres(18) as server:
        Database(server).execute(
            f"CREATE ROLE {STRANGER} LOGIN; CREATE ROLE boss SUPERUSER LOGIN;"
            "CREATE ROLE walstream LOGIN REPLICATION"
        )
        yield Trap(server)


@pytest.fixture
def home(trap: Trap) -> Iterator[Database]:
    """Give a database with twins, and with rows."""
    with temporary_database(trap.server) as fresh:
        trap.plant(fresh)
        fresh.execute(TABLES + ROWS)
        fresh.execute(ROLE.format(database=fresh.name))
        with psycopg.connect(trap.server.dsn(fresh.name, STRANGER)) as connection:
            connection.execute("SET search_path = pg_catalog")
            connection.execute(CAST)
        yield fresh


@pytest.fixture
def copy(trap: Trap) -> Iterator[Database]:
    """Give a database with twins that a consumer writes to."""
    with temporary_database(trap.server) as fresh:
        trap.plant(fresh, "public, lair, pg_catalog")
        fresh.execute(TABLES)
        fresh.execute(ROLE.format(database=fresh.name))
        yield fresh


@dataclass
class Scene:
    """A configuration of a streamed and a polled source, both of the same database."""

    trap: Trap
    home: Database
    role: str
    walstream: Polled

    def runs(self, *words: str, codes: tuple[int, ...] = (0,)) -> None:
        """Run a verb to its end."""
        found = verb(self.walstream.configuration, *words)
        assert not self.trap.sprung(), words
        assert found.returncode in codes, (words, found.stdout, found.stderr)


ROLES: Final = [("boss", "psycopg"), ("walstream", "psycopg2")]


@pytest.fixture(params=ROLES, ids=" ".join)
def scene(
    request: pytest.FixtureRequest,
    trap: Trap,
    home: Database,
    kafka: KafkaServer,
    tmp_path: Path,
) -> Scene:
    role, driver = request.param
    dsn = make_conninfo(home.dsn, user=role)
    app = {
        "kind": "postgres",
        "dsn": dsn,
        "slot": home.name,
        "tables": ["public.orders", "public.names", "public.moods"],
        "backfill": "initial",
        "sinks": ["ops"],
    }
    ops = {
        "kind": "kafka",
        "topic": f"{home.name}.{{schema}}.{{table}}",
        "producer": {"bootstrap.servers": kafka.bootstrap},
    }
    walstream = Polled(
        postgres_url(dsn, driver),
        kafka.bootstrap,
        tmp_path / "run",
        f"{home.name}.row.",
        tables={"polled": {}},
        others={"app": app},
        other_sinks={"ops": ops},
    )
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    return Scene(trap, home, role, walstream)


def test_a_first_look_runs_no_function_of_a_stranger(
    scene: Scene, kafka: KafkaServer, tmp_path: Path
) -> None:
    dsn = make_conninfo(scene.home.dsn, user=scene.role)
    options = ("--dsn", dsn, "--brokers", kafka.bootstrap)
    made = verb(None, "init", *options, folder=tmp_path)
    assert not scene.trap.sprung()
    assert "walstream.toml" in made.stdout, made
    scene.runs("check", codes=(0, 4))  # not of its own tables yet
    scene.runs("positions", "show", "app")
    scene.runs("status", codes=(0, 5))
    scene.runs("slots")
    scene.runs("config")
    scene.home.execute("SELECT pg_create_logical_replication_slot('stray', 'pgoutput')")
    scene.trap.forget()  # the line above is this test's own
    scene.runs("slots", "drop", "stray", "--yes")
    assert "stray" not in verb(scene.walstream.configuration, "slots").stdout
    assert not scene.trap.won()


@pytest.mark.takes(40)
@pytest.mark.parametrize(
    "scene", shortened(ROLES, ROLES[0]), ids=" ".join, indirect=True
)
def test_no_verb_runs_a_function_of_a_stranger(
    scene: Scene, copy: Database, kafka: KafkaServer, tmp_path: Path
) -> None:
    home, walstream, trap = scene.home, scene.walstream, scene.trap
    target = make_conninfo(copy.dsn, user=scene.role)
    topics = [f"{home.name}.public.{name}" for name in ("orders", "names", "moods")]
    with (
        Reader(kafka.bootstrap, f"{home.name}.public.") as reader,
        Mirror(target, kafka.bootstrap, topics, tmp_path) as mirror,
        walstream.reader() as rows,
        walstream,
    ):
        reader.until(lambda records: len(records) >= 51, LONGEST_S)
        home.execute("UPDATE moods SET mood = 'glad'")  # its long value is read
        home.execute("INSERT INTO orders VALUES (31, 'orders', 'new')")
        reader.until(lambda records: len(records) >= 54, LONGEST_S)
        assert {record.new.get("big") for record in reader.records} >= {"x" * 9000}
        scene.runs("status", codes=(0, 5))
        scene.runs("check", codes=(0, 5))
        scene.runs(
            "tail", f"{home.name}.*", "--from-beginning", "--until-end", "-n", "5"
        )
        scene.runs("debug", "on")
        scene.runs("reload")
        scene.runs("backfill", "public.names", "--replace", "--wait")
        scene.runs("backfill", "public.moods", "--wait", codes=(5,))
        home.execute("TRUNCATE orders; INSERT INTO orders VALUES (1, 'names', 'last')")
        rows.until(lambda records: len(records) >= 30, LONGEST_S)
        home.execute("INSERT INTO polled (mood, note) VALUES ('glad', 'new')")
        rows.until(lambda records: len(records) >= 31, LONGEST_S)
        for name in ("orders", "names", "moods"):
            asked = f"SELECT format('%s', t) FROM {name} t ORDER BY 1"
            wanted = home.fetch(asked)
            follows(mirror, copy, asked, wanted)
        assert mirror.terminate() == 0, mirror.text
        assert walstream.terminate() == 0, walstream.text
    assert not trap.sprung()
    scene.runs("poll", "--once")
    scene.runs("positions", "show", "app")
    scene.runs("positions", "show", "legacy")
    scene.runs("positions", "rewind", "legacy", "--to", "2", "--yes")
    scene.runs("positions", "reset", "app", "--yes")
    assert not trap.won()


def follows(
    mirror: Mirror, copy: Database, asked: str, wanted: list[tuple[Any, ...]]
) -> None:
    mirror.until(lambda: copy.fetch(asked) == wanted, LONGEST_S, asked)


def test_the_filter_of_duplicates_runs_no_function_of_a_stranger(
    trap: Trap, copy: Database
) -> None:
    message = RowMessage(1.0, "source", "t", {"id": 1}, row_hash({"id": 1}))
    dsn = make_conninfo(copy.dsn, user="walstream")
    for _ in range(2):
        with psycopg.connect(dsn) as connection:
            seen = SeenInPostgres(connection)
            assert message not in seen
            seen.add(message)
            assert message in seen
            assert not seen.forget()
            connection.execute("DELETE FROM replication_consumer_seen")
    assert not trap.sprung()


def test_a_naive_query_springs(trap: Trap, home: Database) -> None:
    """The trap works: what is claimed of walstream is not so of others."""
    dsn = make_conninfo(home.dsn, user="boss")
    with psycopg.connect(dsn) as connection:
        connection.execute(NAIVE)
    sprung = trap.sprung()
    assert "relation pg_class as boss" in sprung
    assert any(one.startswith("||(") for one in sprung)
    assert trap.won()
