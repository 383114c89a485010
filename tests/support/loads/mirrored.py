"""Tables that a mirror may get wrong, and who writes to them."""

# ruff: noqa: S608 - SQL of constants

import random
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.support.fixtures.postgres import Database
from tests.support.threads import Writers

_DEBIAN: Final = "/usr/lib/postgresql/15/bin/pgbench"

# `moved` goes by a column that is no key of it; `loose` has none at all
TABLES: Final = """
CREATE TABLE keyed (id bigint PRIMARY KEY, n int, big text);
ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
CREATE TABLE moved (id int PRIMARY KEY, org int NOT NULL, note text);
ALTER TABLE moved REPLICA IDENTITY FULL;
CREATE TABLE loose (a int, b numeric, c json, d text);
ALTER TABLE loose REPLICA IDENTITY FULL;
CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int,
  filler char(84));
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int,
  filler char(84));
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88));
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp,
  filler char(22));
"""
NAMES: Final = (
    "keyed",
    "moved",
    "loose",
    "pgbench_accounts",
    "pgbench_tellers",
    "pgbench_branches",
    "pgbench_history",
)
_FILL: Final = """
INSERT INTO pgbench_branches VALUES (1, 0, '');
INSERT INTO pgbench_tellers SELECT i, 1, 0, '' FROM generate_series(1, 10) AS i;
INSERT INTO pgbench_accounts
SELECT i, 1, 0, '' FROM generate_series(1, {accounts}) AS i;
"""
# pgbench's own TPC-B, over as many accounts as were made
_TPC_B: Final = r"""
\set aid random(1, {accounts})
\set tid random(1, 10)
\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime)
VALUES (:tid, 1, :aid, :delta, CURRENT_TIMESTAMP);
END;
"""


class OddLoad(Writers):
    """Writers whose changes a mirror may get wrong: each in a thread."""

    def __init__(self, database: Database, seed: int, *, pause_s: float) -> None:
        steps = (_keyed, _moved, _loose)
        super().__init__(*(partial(self._write, step) for step in steps))
        self._database = database
        self._seed = seed
        self._pause_s = pause_s

    def _write(self, step: Callable[[Any, random.Random], None]) -> None:
        choose = random.Random(f"{self._seed}/{step.__name__}")  # noqa: S311
        with psycopg.connect(self._database.dsn) as connection:
            while not self.leaving.is_set():
                with connection.transaction():
                    for _ in range(choose.randint(1, 5)):
                        step(connection, choose)
                self.transactions += 1
                self.leaving.wait(choose.random() * 2 * self._pause_s)


def _keyed(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Toasted values, key changes, deletes, and at times TRUNCATE."""
    key, other = choose.randrange(60), choose.randrange(60)
    dice = choose.random()
    if dice < 0.5:
        connection.execute(
            "INSERT INTO keyed VALUES (%s, 0, repeat(md5(random()::text), 80))"
            " ON CONFLICT (id) DO UPDATE SET n = keyed.n + 1",
            (key,),
        )
    elif dice < 0.7:
        connection.execute("UPDATE keyed SET n = n + 1 WHERE id = %s", (key,))
    elif dice < 0.85:
        connection.execute(
            "UPDATE keyed SET id = %s, n = n + 1 WHERE id = %s"
            " AND NOT EXISTS (SELECT FROM keyed WHERE id = %s)",
            (other, key, other),
        )
    elif dice < 0.99:
        connection.execute("DELETE FROM keyed WHERE id = %s", (key,))
    else:
        connection.execute("TRUNCATE keyed")


def _moved(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Rows that go to and fro between partitions."""
    key, org = choose.randrange(30), choose.randrange(8)
    if choose.random() < 0.85:
        connection.execute(
            "INSERT INTO moved VALUES (%s, %s, 'x')"
            " ON CONFLICT (id) DO UPDATE SET org = EXCLUDED.org, note = random()::text",
            (key, org),
        )
    else:
        connection.execute("DELETE FROM moved WHERE id = %s", (key,))


def _loose(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Rows that look alike, without any key."""
    a, b = choose.randrange(4), choose.choice(["1.0", "1.00", None])
    dice = choose.random()
    if dice < 0.6:
        connection.execute("INSERT INTO loose VALUES (%s, %s, '[1]', NULL)", (a, b))
    elif dice < 0.8:
        connection.execute(
            "UPDATE loose SET d = 'new' WHERE ctid ="
            " (SELECT ctid FROM loose WHERE a = %s LIMIT 1)",
            (a,),
        )
    else:
        connection.execute(
            "DELETE FROM loose WHERE ctid ="
            " (SELECT ctid FROM loose WHERE a = %s LIMIT 1)",
            (a,),
        )


def fill(database: Database, accounts: int) -> None:
    """Make the rows of the TPC-B load."""
    database.execute(_FILL.format(accounts=accounts))


def tpc_b(database: Database, folder: Path, *, accounts: int, count: int) -> bool:
    """Run pgbench's transactions to their end; False where there is no pgbench."""
    pgbench = shutil.which("pgbench") or (_DEBIAN if Path(_DEBIAN).exists() else None)
    if pgbench is None:
        return False
    script = folder / "tpc_b.sql"
    script.write_text(_TPC_B.format(accounts=accounts), "utf-8")
    options = ["--no-vacuum", "-c", "2", "-t", str(count // 2), "-f", str(script)]
    subprocess.run([pgbench, *options, database.dsn], check=True, capture_output=True)
    return True


def contents(database: Database) -> dict[str, dict[str, int]]:
    """Count each row of every table, as text."""
    return {
        name: dict(database.fetch(f"SELECT t::text, count(*) FROM {name} t GROUP BY 1"))
        for name in NAMES
    }
