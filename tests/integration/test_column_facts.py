"""What a server says of its tables' columns, and what is kept of that for a replay."""

from functools import partial

import psycopg
import pytest

from tests.support.fixtures.postgres import (
    Database,
    PostgresServer,
    temporary_database,
)
from tests.support.oracles.column_facts import facts_now
from walstream.op import ColumnFacts
from walstream.pipeline.column_history import FACTS, Labels, shape_of
from walstream.pipeline.pgoutput import Column, Relation
from walstream.pipeline.root_key import Place
from walstream.postgres import catalog, column_facts
from walstream.postgres.connection import session
from walstream.postgres.fact_book import FactBook
from walstream.testing import MemoryStore

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
ALTER TYPE mood ADD VALUE 'glad' BEFORE 'ok';
CREATE DOMAIN price AS numeric(10, 2) NOT NULL;
CREATE DOMAIN discount AS price NOT NULL CHECK (value < 100);
CREATE DOMAIN label AS varchar;
CREATE DOMAIN moods AS mood[];
CREATE TABLE t (
  id int PRIMARY KEY, name varchar(10) DEFAULT 'x' || 'y', cost discount,
  at timestamptz(3), short label, m mood DEFAULT 'ok', ms moods, tags text[] NOT NULL,
  twice int GENERATED ALWAYS AS (id * 2) STORED
);
"""
UNSENT = 1000
_COLUMNS = (
    "SELECT attname, atttypid::int8, atttypmod FROM pg_attribute"
    " WHERE attrelid = 't'::regclass AND attnum > 0 AND NOT attisdropped"
    " ORDER BY attnum"
)


def described(database: Database) -> Relation:
    """Return what the stream would say of the table now."""
    columns = [Column(False, *row) for row in database.fetch(_COLUMNS)]
    ((oid,),) = database.fetch("SELECT 't'::regclass::oid::int8")
    return Relation(oid, "public", "t", "d", columns)


def asked(database: Database, relation: Relation) -> dict[str, ColumnFacts]:
    with session(database.dsn) as connection:
        found = column_facts.of_columns(connection, relation.oid, relation.columns)
    return {
        column.name: facts
        for column, facts in zip(relation.columns, found, strict=True)
    }


def facts_now_of(database: Database) -> dict[str, ColumnFacts]:
    with psycopg.connect(database.dsn, options="-c search_path=") as connection:
        return facts_now(connection)["public", "t"]


def written(
    book: FactBook,
    database: Database,
    relation: Relation,
    place: Place,
    labels: Labels = (),
) -> tuple[ColumnFacts, ...]:
    """Return the facts that a row there is written with, as the companion asks."""
    history = book.known(relation, place, labels)
    if history is None:
        book.look(partial(session, database.dsn), relation, 1, place, labels)
        history = book.known(relation, place, labels)
    assert history is not None
    found = history.at(place, shape_of(relation))
    assert found is not None
    return found.columns


@pytest.fixture
def typed(database: Database) -> Database:
    database.execute(TYPES)
    return database


def test_facts_are_those_of_the_catalog(typed: Database) -> None:
    found = asked(typed, described(typed))
    assert found == facts_now_of(typed)
    assert found["cost"].base_name == "numeric"
    assert found["cost"].base_modifier == (10 << 16 | 2) + 4
    assert found["cost"].not_null
    assert found["m"].labels == ("sad", "glad", "ok")
    assert found["ms"].element_name == "mood"
    assert found["twice"].default is None


def test_a_column_that_changed_since_has_the_facts_of_its_type_alone(
    typed: Database,
) -> None:
    relation = described(typed)
    typed.execute(
        "ALTER TABLE t ALTER name DROP DEFAULT, ALTER name TYPE int USING 1,"
        " ALTER name SET NOT NULL, DROP COLUMN cost; ALTER TABLE t RENAME m TO was"
    )
    found = asked(typed, relation)
    assert found["name"] == ColumnFacts(type_oid=1043, type_name="varchar")
    assert found["cost"].base_name == "numeric"
    assert found["m"].labels == ("sad", "glad", "ok")
    assert found["m"].default is None


def test_of_a_dropped_table_the_types_are_found(typed: Database) -> None:
    relation = described(typed)
    typed.execute("DROP TABLE t")
    assert asked(typed, relation)["m"].labels == ("sad", "glad", "ok")
    typed.execute("DROP TYPE mood CASCADE")
    assert asked(typed, relation)["m"].labels == ()


def test_facts_change_under_the_same_description_and_a_replay_has_those_of_then(
    typed: Database,
) -> None:
    relation = described(typed)
    store = MemoryStore()
    book = FactBook(store, unsent=UNSENT, oldest=0)
    before = written(book, typed, relation, (UNSENT, 0))
    typed.execute("ALTER TABLE t ALTER name SET NOT NULL, ALTER name SET DEFAULT 'z'")
    after = written(book, typed, relation, (UNSENT + 10, 2))
    assert (before[1].not_null, after[1].not_null) == (False, True)
    assert after[1].default == "'z'::character varying"

    typed.execute("ALTER TABLE t ALTER name DROP DEFAULT")
    replayed = FactBook(store, unsent=UNSENT + 20, oldest=UNSENT)
    assert written(replayed, typed, relation, (UNSENT, 0)) == before
    assert written(replayed, typed, relation, (UNSENT + 10, 1)) == before
    assert written(replayed, typed, relation, (UNSENT + 10, 2)) == after
    assert written(replayed, typed, relation, (UNSENT + 19, 0)) == after
    now = written(replayed, typed, relation, (UNSENT + 20, 0))
    assert now[1].default is None


def test_a_new_label_asks_once_and_one_that_is_gone_is_kept_as_it_came(
    typed: Database,
) -> None:
    relation = described(typed)
    store = MemoryStore()
    book = FactBook(store, unsent=0, oldest=0)
    written(book, typed, relation, (10, 0))
    typed.execute("ALTER TYPE mood ADD VALUE 'new'")
    labels = ((5, "new"),)
    found = written(book, typed, relation, (20, 1), labels)
    assert found[5].labels == ("sad", "glad", "ok", "new")
    replayed = FactBook(store, unsent=100, oldest=0)
    assert written(replayed, typed, relation, (20, 0))[5].labels[-1] == "ok"
    assert written(replayed, typed, relation, (20, 1), labels) == found
    typed.execute("ALTER TYPE mood RENAME VALUE 'sad' TO 'blue'")
    written(book, typed, relation, (30, 0))
    found = written(book, typed, relation, (30, 1), ((5, "sad"),))
    assert found[5].labels == ("blue", "glad", "ok", "new", "sad")


def test_a_null_where_the_catalog_forbids_it_is_allowed_from_its_row_on(
    typed: Database,
) -> None:
    """The usual migration in a backlog: nulls, an UPDATE, SET NOT NULL."""
    relation = described(typed)
    book = FactBook(MemoryStore(), unsent=0, oldest=0)
    assert written(book, typed, relation, (10, 0))[7].not_null
    found = written(book, typed, relation, (10, 4), ((7, None),))
    assert not found[7].not_null
    assert written(book, typed, relation, (20, 0))[7].not_null


def test_a_constraint_that_is_not_valid_does_not_forbid_the_nulls_of_before(
    postgres18: PostgresServer,
) -> None:
    with temporary_database(postgres18) as database:
        database.execute(
            "CREATE TABLE t (id int PRIMARY KEY, n int, m int NOT NULL);"
            " INSERT INTO t VALUES (1, NULL, 2);"
            " ALTER TABLE t ADD CONSTRAINT nn NOT NULL n NOT VALID"
        )
        required = []
        for cure in ("", "UPDATE t SET n = 1; ALTER TABLE t VALIDATE CONSTRAINT nn"):
            database.execute(cure)
            found = asked(database, described(database))
            assert found == facts_now_of(database)
            required.append({name for name in found if found[name].not_null})
            with session(database.dsn) as connection:
                assert catalog.tables(connection)["public.t"].not_null == required[-1]
    assert required == [{"id", "m"}, {"id", "m", "n"}]


def test_facts_of_a_type_that_is_gone_stay_as_they_were_known(typed: Database) -> None:
    relation = described(typed)
    book = FactBook(MemoryStore(), unsent=0, oldest=0)
    before = written(book, typed, relation, (10, 0))
    typed.execute("ALTER TABLE t DROP m, DROP ms; DROP TYPE mood CASCADE")
    after = written(book, typed, relation, (20, 0))
    assert after[5].labels == before[5].labels == ("sad", "glad", "ok")


def test_a_locked_table_is_not_waited_for(typed: Database) -> None:
    relation = described(typed)
    with psycopg.connect(typed.dsn) as locking, session(typed.dsn) as connection:
        locking.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        found = column_facts.of_columns(connection, relation.oid, relation.columns)
    assert found[1].default is not None


def test_what_no_replay_needs_is_not_kept(typed: Database) -> None:
    relation = described(typed)
    store = MemoryStore()
    book = FactBook(store, unsent=0, oldest=0)
    for lsn in (10, 20, 30):
        typed.execute(f"ALTER TABLE t ALTER name SET DEFAULT '{lsn}'")
        written(book, typed, relation, (lsn, 0))
    typed.execute("ALTER TABLE t ALTER name DROP DEFAULT")
    later = FactBook(store, unsent=0, oldest=30)
    written(later, typed, relation, (40, 0))
    kept = FACTS.of(str(relation.oid)).read(store)
    assert kept is not None
    assert [one.from_lsn for one in kept] == [30, 40]
