"""Keys that have several spellings: a mirror loses no row, and doubles none."""

import os
import random
import time
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from consumer.handler import Fatal
from consumer.mirror import MirrorError, PostgresMirror
from consumer.mirror.table_shape import load
from consumer.op import Op
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.loads.op import make
from tests.support.oracles.key_mirror import Source, apply, drain
from tests.support.strategies import ONE_WAY, RESPELT, KeyKind
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_WITHOUT_ICU = sorted(name for name, kind in RESPELT.items() if not kind.icu)


def walked(database: Database, kind: KeyKind, *, by_org: bool = False) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    source = Source(database, kind, by_org=by_org)
    for _ in range(4):
        source.walk(choose, kind, 40)
        drain(database, source, choose)
        assert source.contents("target") == source.contents("source")


@pytest.mark.parametrize("name", _WITHOUT_ICU)
def test_a_mirror_is_its_source_however_keys_are_spelt(
    database: Database, name: str
) -> None:
    walked(database, RESPELT[name])


def test_a_mirror_is_its_source_under_a_nondeterministic_collation(
    postgres15: PostgresServer,  # the wheel's server has no ICU
) -> None:
    with temporary_database(postgres15) as database:
        walked(database, RESPELT["collation"])


@pytest.mark.parametrize("name", ["citext", "numeric", "int8"])
def test_a_mirror_is_its_source_where_other_columns_are_the_records_key(
    database: Database, name: str
) -> None:
    walked(database, (RESPELT | ONE_WAY)[name], by_org=True)


@pytest.mark.parametrize("name", sorted(ONE_WAY))
def test_keys_of_one_spelling_keep_no_positions(database: Database, name: str) -> None:
    walked(database, ONE_WAY[name])
    with psycopg.connect(database.dsn) as connection:
        shape = load(connection, "public", "target")
    assert shape is not None
    assert not shape.respelt


@pytest.mark.parametrize("name", _WITHOUT_ICU)
def test_the_generators_spellings_are_what_the_server_makes_of_them(
    database: Database, name: str
) -> None:
    kind = RESPELT[name]
    database.execute("; ".join(filter(None, [kind.before, "SELECT"])))
    with psycopg.connect(database.dsn) as connection:
        cast = f"%s::text::{kind.type}"
        for number, group in enumerate(kind.spellings):
            for text in group:
                for other in kind.spellings:
                    query = f"SELECT {cast} = {cast}, format('%%s', {cast})"
                    found = connection.execute(query, (text, other[0], text)).fetchone()
                    assert found == (other is kind.spellings[number], text)


CITEXT = "CREATE EXTENSION citext; CREATE TABLE t (key citext PRIMARY KEY, n int)"


def citext(kind: Kind, text: str, lsn: int, **fields: Any) -> Op:
    given: dict[str, Any] = {"key": [text], "lsn": lsn, **fields}
    row = {"key": text, "n": str(lsn)}
    if kind is Kind.DELETE:
        return make(kind, "public.t", old=row, **given)
    return make(kind, "public.t", new=row, **given)


def rows(database: Database) -> list[tuple[Any, ...]]:
    return database.fetch("SELECT key::text, n FROM t ORDER BY 1")


def test_an_update_that_spells_its_key_anew_is_one_of_the_same_row(
    database: Database,
) -> None:
    database.execute(CITEXT)
    mirror = PostgresMirror(database.dsn)
    spelt = citext(Kind.UPDATE, "user7", 20, old={"key": "User7"}, partition=1)
    for batch in ([citext(Kind.INSERT, "User7", 10), spelt], [spelt]):
        with psycopg.connect(database.dsn) as tx:
            apply(tx, mirror, batch)
        assert rows(database) == [("user7", 20)]


def test_positions_of_an_earlier_version_are_taken_over(database: Database) -> None:
    """They were kept by text where the records had another key."""
    database.execute(CITEXT)
    PostgresMirror(database.dsn).start()
    database.execute(
        "INSERT INTO t VALUES ('user7', 20); INSERT INTO replication_mirror_row VALUES"
        """ ('public.t', '["User7"]', 0, 10, 0), ('public.t', '["user7"]', 0, 20, 1),"""
        """ ('public.u', '["x"]', 0, 10, 0)"""
    )
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), [citext(Kind.DELETE, "USER7", 20)])
    assert rows(database) == [("user7", 20)]
    kept = database.fetch(
        "SELECT relation FROM replication_mirror_row WHERE key <> 'table'"
    )
    assert kept == [("public.u",)]


NUMERIC = "CREATE TABLE t (key numeric PRIMARY KEY, n int)"
INTEGER = "CREATE TABLE t (key int PRIMARY KEY, n int)"


@pytest.mark.parametrize(
    ("table", "records", "options"),
    [
        (NUMERIC, {}, {}),  # equal keys may print otherwise
        (INTEGER, {"key": ["other"]}, {}),  # the record's key is not the row's
        (INTEGER, {}, {"row_positions": True}),
    ],
)
def test_a_table_that_is_made_again_is_filled_again(
    database: Database,
    table: str,
    records: dict[str, Any],
    options: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By a new group, say: positions of the dropped table's rows kept it empty."""
    database.execute(table)
    sent = [citext(Kind.INSERT, str(n), 10 + n, **records) for n in range(3)]
    for _ in range(3):
        with psycopg.connect(database.dsn) as tx:
            apply(tx, PostgresMirror(database.dsn, **options), sent)
        assert len(rows(database)) == 3
        database.execute(f"DROP TABLE t; {table}")
    assert "another table than before" in caplog.text


def test_a_copy_that_took_a_tables_place_keeps_its_positions(
    database: Database,
) -> None:
    database.execute(NUMERIC)
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), [citext(Kind.INSERT, "1.0", 20)])
    database.execute(
        "CREATE TABLE u (LIKE t INCLUDING ALL); INSERT INTO u TABLE t;"
        " DROP TABLE t; ALTER TABLE u RENAME TO t"
    )
    for _ in range(2):
        with psycopg.connect(database.dsn) as tx:
            apply(tx, PostgresMirror(database.dsn), [citext(Kind.INSERT, "1", 10)])
        assert rows(database) == [("1.0", 20)]


def test_positions_are_kept_when_the_keys_type_changes(database: Database) -> None:
    database.execute("CREATE TABLE t (key numeric PRIMARY KEY, n int)")
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), [citext(Kind.INSERT, "1.0", 20)])
    database.execute("ALTER TABLE t ALTER key TYPE float8")
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), [citext(Kind.DELETE, "1", 10)])
    assert rows(database) == [("1", 20)]


def test_a_truncate_forgets_the_positions_of_every_spelling(database: Database) -> None:
    database.execute(CITEXT)
    mirror = PostgresMirror(database.dsn)
    with psycopg.connect(database.dsn) as tx:
        apply(tx, mirror, [citext(Kind.INSERT, "a", 50)])
        truncate = make(Kind.TRUNCATE, "public.t", columns=("key",), lsn=60)
        apply(tx, mirror, [truncate])
        apply(tx, mirror, [citext(Kind.INSERT, "A", 5)])
    assert rows(database) == [("A", 5)]


def test_a_citext_that_the_search_path_lacks_is_compared_as_one(
    database: Database,
) -> None:
    database.execute(
        "CREATE SCHEMA away; CREATE EXTENSION citext SCHEMA away;"
        " CREATE TABLE t (key away.citext PRIMARY KEY, n int)"
    )
    mirror = PostgresMirror(database.dsn)
    with psycopg.connect(database.dsn) as tx:
        apply(tx, mirror, [citext(Kind.INSERT, "a", 10)])
        apply(tx, mirror, [citext(Kind.DELETE, "A", 20), citext(Kind.INSERT, "b", 30)])
    assert rows(database) == [("b", 30)]


def test_a_role_that_may_not_make_the_positions_table_is_told_how(
    database: Database,
) -> None:
    database.execute(f"REVOKE CREATE ON SCHEMA public FROM PUBLIC; {CITEXT}")
    PostgresMirror(database.dsn).start()
    name = f"role_{database.name}"
    database.execute(
        f"CREATE ROLE {name} LOGIN;"
        " GRANT SELECT, INSERT, UPDATE, DELETE"
        f" ON ALL TABLES IN SCHEMA public TO {name}"
    )
    try:
        dsn = make_conninfo(database.dsn, user=name)
        op = citext(Kind.INSERT, "a", 10)
        with (
            psycopg.connect(dsn) as tx,
            pytest.raises(Fatal) as refused,
            tx.transaction(),
        ):
            PostgresMirror(dsn).handle_message(tx, op)
        assert isinstance(refused.value.cause, MirrorError)
        made = refused.value.cause.hint.partition("DELETE: ")[2]
        database.execute(
            f"{made} GRANT SELECT, INSERT, UPDATE, DELETE"
            f" ON ALL TABLES IN SCHEMA public TO {name}"
        )
        with psycopg.connect(dsn) as tx:
            apply(tx, PostgresMirror(dsn), [op])
        assert rows(database) == [("a", 10)]
    finally:
        database.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_record_key_that_is_the_rows_by_chance_hides_no_order(
    database: Database,
) -> None:
    """Row 9 came into organization 9, by whose number the records are keyed."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, org int)")

    def op(kind: Kind, org: str, lsn: int, seq_id: int = 0) -> Op:
        which = "old" if kind is Kind.DELETE else "new"
        given: Any = {which: {"id": "9", "org": org}}
        there: Any = {"key": [org], "partition": int(org) % 2, "seq_id": seq_id}
        return make(kind, "public.t", lsn=lsn, **there, **given)

    ahead = [op(Kind.INSERT, "9", 20, 1)]
    behind = [op(Kind.INSERT, "4", 10), op(Kind.DELETE, "4", 20)]
    with psycopg.connect(database.dsn) as tx:
        apply(tx, PostgresMirror(database.dsn), ahead)
        apply(tx, PostgresMirror(database.dsn), behind)
    assert database.fetch("TABLE t") == [(9, 9)]


def test_one_record_shows_what_the_records_key_is(database: Database) -> None:
    """Other columns may hold the key's text in some rows: that costs no position."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, org int)")
    mirror = PostgresMirror(database.dsn)
    with psycopg.connect(database.dsn) as tx:
        for number, org in enumerate("1311", 1):
            row = {"id": str(number), "org": org}
            op = make(Kind.INSERT, "public.t", new=row, key=[str(number)])
            apply(tx, mirror, [op])
    kept = database.fetch("SELECT key FROM replication_mirror_row")
    assert kept == [('["1"]',)]
