"""Tables of many types, and who writes to them: for readers of Debezium's records."""

# ruff: noqa: S608 - SQL of constants

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import psycopg

from tests.support.fixtures.postgres import Database
from tests.support.threads import Writers

# `loose` has no key; `wiped` is truncated at times
TABLES: Final = """
CREATE TYPE mood AS ENUM ('sad', 'so so', 'qu"ote');
CREATE TABLE typed (id int, part text, PRIMARY KEY (id, part), n numeric(12,3),
  free numeric, f float8, g float4, d date, t time, ts timestamp, tsm timestamp(3),
  tz timestamptz, i interval, b bytea, j jsonb, u uuid, m mood, a int[], x text[],
  o bool, bits bit(5), r int4range, big text, more bytea);
ALTER TABLE typed ALTER big SET STORAGE EXTERNAL, ALTER more SET STORAGE EXTERNAL;
CREATE TABLE loose (a int, d date, v text);
ALTER TABLE loose REPLICA IDENTITY FULL;
CREATE TABLE wiped (id int PRIMARY KEY, v text);
INSERT INTO loose SELECT n, '2020-01-01', 'before' FROM generate_series(1, 20) n;
INSERT INTO wiped SELECT n, 'before' FROM generate_series(1, 20) n;
"""
NAMES: Final = ("typed", "loose", "wiped")
_VALUES: Final = {
    "n": "round((random() * 1e6)::numeric, 3)",
    "free": "trim_scale((random() * 1e9)::numeric)",
    "f": "random() * 10 ^ (random() * 60 - 30)",
    "g": "(random() * 10 ^ (random() * 20 - 10))::float4",
    "d": "'2000-01-01'::date + (random() * 20000)::int",
    "t": "(random() * 86399 || ' s')::interval::time",
    "ts": "'1990-01-01'::timestamp + random() * '80 y'::interval",
    "tsm": "(now() - random() * '9 y'::interval)::timestamp(3)",
    "tz": "now() - random() * '2000 y'::interval",
    "i": "random() * '9 y 7 mons 3 d 4 h'::interval",
    "b": "decode(md5(random()::text), 'hex')",
    "j": "jsonb_build_object('a', random(), 'é\"', md5(random()::text))",
    "u": "md5(random()::text)::uuid",
    "m": "(enum_range(NULL::mood))[1 + (random() * 2)::int]",
    "a": "ARRAY[1, NULL, (random() * 9)::int]",
    "x": "ARRAY['a b', NULL, '\"', md5(random()::text)]",
    "o": "random() < 0.5",
    "bits": "((random() * 31)::int)::bit(5)",
    "r": "int4range((random() * 9)::int, 10)",
    "big": "repeat(md5(random()::text), 80)",
    "more": "decode(repeat(md5(random()::text), 80), 'hex')",
}
_INSERT: Final = (
    f"INSERT INTO typed (id, part, {', '.join(_VALUES)})"
    f" VALUES (%s, %s, {', '.join(_VALUES.values())}) ON CONFLICT (id, part) DO UPDATE"
    f" SET {', '.join(f'{name} = EXCLUDED.{name}' for name in _VALUES)}"
)
_NULLS: Final = [name for name in _VALUES if name not in {"big", "more"}]


class TypedLoad(Writers):
    """Writers of these tables: two of the typed one, whose transactions overlap."""

    def __init__(self, database: Database, seed: int, *, pause_s: float) -> None:
        steps = (_typed, _typed, _loose, _wiped)
        works = (partial(self._write, step, n) for n, step in enumerate(steps))
        super().__init__(*works)
        self._database = database
        self._seed = seed
        self._pause_s = pause_s

    def _write(self, step: Callable[[Any, random.Random], None], number: int) -> None:
        choose = random.Random(f"{self._seed}/{number}")  # noqa: S311
        with psycopg.connect(self._database.dsn) as connection:
            connection.execute("SELECT setseed(%s)", (number / 10,))
            while not self.leaving.is_set():
                try:
                    with connection.transaction():
                        for _ in range(choose.randint(1, 5)):
                            step(connection, choose)
                            self.leaving.wait(choose.random() * self._pause_s)
                except (
                    psycopg.errors.DeadlockDetected,
                    psycopg.errors.UniqueViolation,
                ):
                    continue  # of the other writer of the same rows
                self.transactions += 1


def _typed(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Unchanged TOAST values, nulls, key changes and deletes."""
    key, other = choose.randrange(40), choose.randrange(40)
    part = choose.choice(["a", "b c"])
    dice = choose.random()
    if dice < 0.4:
        connection.execute(_INSERT, (key, part))
    elif dice < 0.6:
        name = choose.choice(_NULLS)
        change = choose.choice(["NULL", _VALUES[name]])
        connection.execute(f"UPDATE typed SET {name} = {change} WHERE id = {key}")
    elif dice < 0.8:
        connection.execute(
            "UPDATE typed SET id = %s WHERE id = %s AND part = %s"
            " AND NOT EXISTS (SELECT FROM typed WHERE id = %s AND part = %s)",
            (other, key, part, other, part),
        )
    else:
        connection.execute("DELETE FROM typed WHERE id = %s", (key,))


def _loose(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Rows that look alike; many of one WAL record, too."""
    a, dice = choose.randrange(4), choose.random()
    if dice < 0.3:
        with connection.cursor().copy("COPY loose FROM STDIN") as copy:
            for _ in range(3):
                copy.write_row((a, "2020-02-29", "copied"))
    elif dice < 0.5:
        connection.execute("INSERT INTO loose VALUES (%s, NULL, 'x')", (a,))
    else:
        change = "UPDATE loose SET v = 'new'" if dice < 0.75 else "DELETE FROM loose"
        connection.execute(
            f"{change} WHERE ctid = (SELECT ctid FROM loose WHERE a = %s LIMIT 1)", (a,)
        )


def _wiped(connection: psycopg.Connection[Any], choose: random.Random) -> None:
    """Rows, and at times a TRUNCATE."""
    key = choose.randrange(60)
    if choose.random() < 0.03:
        connection.execute("TRUNCATE wiped")
    else:
        connection.execute(
            "INSERT INTO wiped VALUES (%s, 'x')"
            " ON CONFLICT (id) DO UPDATE SET v = random()::text",
            (key,),
        )


def contents(database: Database) -> dict[str, dict[str, int]]:
    """Count each row of every table, as text."""
    return {
        name: dict(database.fetch(f"SELECT t::text, count(*) FROM {name} t GROUP BY 1"))
        for name in NAMES
    }
