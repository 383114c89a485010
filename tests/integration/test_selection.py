"""Tables that are left out, column lists, generated columns: from a server to Kafka."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.inspection import look, look_as, of, one
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from walstream.finding import Severity

PUBLISHED = (
    "SELECT pubname || ': ' || tablename || ' ' || attnames::text"
    " FROM pg_publication_tables ORDER BY 1"
)
TABLES = """
CREATE TABLE users (id int PRIMARY KEY, name text, email text);
CREATE TABLE audit_log (id int PRIMARY KEY, v text);
CREATE TABLE notes (v text);
INSERT INTO users VALUES (1, 'a', 'a@x'); INSERT INTO audit_log VALUES (1, 'secret');
INSERT INTO notes VALUES ('n')
"""
EXCLUDE: dict[str, Any] = {"exclude": ["public.audit_*"]}
COLUMNS: dict[str, Any] = {"columns": {"public.users": ["name", "id"]}}

Made = Callable[..., Walstream]


@pytest.fixture
def made(database: Database, runs: Runs) -> Made:
    database.execute(TABLES)

    def run(**source: Any) -> Walstream:
        return runs(database.dsn, source={"backfill": "initial", **source})

    return run


def published(database: Database) -> list[str]:
    return [name for (name,) in database.fetch(PUBLISHED)]


def rows(records: list[Record], table: str) -> list[dict[str, Any]]:
    return [one.new for one in records if one.op.table.name == table]


def reconfigured(walstream: Walstream, **source: Any) -> Walstream:
    walstream.source = {"backfill": "initial", **source}
    return walstream


def test_excluded_tables_are_neither_published_nor_backfilled(
    database: Database, made: Made, reader: Reader
) -> None:
    with made(**EXCLUDE) as walstream:
        walstream.until("backfill ended").streaming()
        assert [name.split()[1] for name in published(database)] == ["users", "notes"]
        database.execute(
            "CREATE TABLE audit_2027 (id int PRIMARY KEY);"
            "INSERT INTO audit_2027 VALUES (7); INSERT INTO audit_log VALUES (2, 'x');"
            "INSERT INTO users VALUES (2)"
        )
        reader.until(lambda records: len(rows(records, "users")) == 2)
    assert {record.op.table.name for record in reader.read()} == {"users", "notes"}
    found = look_as(walstream)
    note = one(found, "excluded", Severity.NOTE, subject="2 tables")
    assert "public.audit_2027, public.audit_log" in note.what


def test_a_table_that_becomes_excluded_leaves_and_comes_back_whole(
    database: Database, made: Made, reader: Reader
) -> None:
    walstream = made().start().until("backfill ended").streaming()
    assert walstream.terminate() == 0
    reconfigured(walstream, **EXCLUDE)
    database.execute("INSERT INTO audit_log VALUES (2, 'sent')")
    note = one(look_as(walstream), "excluded-published", Severity.NOTE)
    assert "public.audit_log" in note.what
    walstream.start().streaming()
    (removed,) = walstream.said("table removed from the publication")
    assert removed["table"] == "public.audit_log"
    database.execute("INSERT INTO audit_log VALUES (3, 'missed')")
    database.execute("INSERT INTO users VALUES (3)")
    reader.until(lambda records: len(rows(records, "users")) == 2)
    assert [row["id"] for row in rows(reader.read(), "audit_log")] == ["1", "2"]
    assert walstream.terminate() == 0

    reconfigured(walstream).start().streaming()
    reader.until(lambda records: len(rows(records, "audit_log")) == 6)
    assert walstream.terminate() == 0
    again = [record for record in reader.read() if record.op.table.name == "audit_log"]
    assert again[2].kind.value == "Truncate"  # what was deleted meanwhile goes, too
    assert [record.new.get("id") for record in again[3:]] == ["1", "2", "3"]


@pytest.mark.parametrize(
    "how", ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public"], ids=["all", "schema"]
)
@pytest.mark.parametrize("key", [EXCLUDE, COLUMNS], ids=["exclude", "columns"])
def test_a_publication_without_exceptions_is_refused(
    database: Database, made: Made, how: str, key: dict[str, Any]
) -> None:
    database.execute(
        f"CREATE PUBLICATION walstream {how} WITH (publish_via_partition_root = true)"
    )
    walstream = made(**key)
    stop = one(look(database.dsn, **key), "publication-selection", Severity.STOP, 2)
    assert "cannot be kept to" in stop.what
    walstream.start().ends_with(2, "cannot be kept to")


@pytest.mark.parametrize("whole", [False, True], ids=["named", "all"])
def test_what_a_publication_has_beside_the_patterns_is_named(
    database: Database, made: Made, reader: Reader, *, whole: bool
) -> None:
    database.execute(
        "CREATE TABLE pay (id int PRIMARY KEY);"
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE leaf PARTITION OF root DEFAULT"
    )
    what = "ALL TABLES" if whole else "TABLE pay, root"
    root = "WITH (publish_via_partition_root = true)"
    database.execute(f"CREATE PUBLICATION walstream FOR {what} {root}")
    wanted = ["public.users", "public.root", "public.audit*", "public.notes"]
    tables: dict[str, Any] = {"tables": wanted}
    walstream = made(**tables).start().streaming()
    (said,) = walstream.said("although `tables` does not name them: public.pay")
    assert said["publication"] == "walstream"
    database.execute("INSERT INTO pay VALUES (1)")
    reader.until(lambda records: rows(records, "pay") == [{"id": "1"}])
    found = look(database.dsn, **tables)
    one(found, "unwanted-published", Severity.WARNING, subject="public.pay")


def test_an_excluded_partition_goes_out_as_its_root_and_is_named(
    database: Database, made: Made
) -> None:
    database.execute(
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);"
        "CREATE TABLE audit_leaf PARTITION OF root DEFAULT"
    )
    walstream = made(**EXCLUDE).start().streaming()
    (said,) = walstream.said("partition is excluded, but its rows go out")
    assert said["table"] == "public.audit_leaf"
    one(
        look(database.dsn, **EXCLUDE),
        "excluded-partition",
        Severity.WARNING,
        subject="public.audit_leaf",
    )


def test_only_listed_columns_are_published_and_backfilled(
    database: Database, made: Made, reader: Reader
) -> None:
    with made(**COLUMNS) as walstream:
        walstream.until("backfill ended").streaming()
        assert "walstream: users {id,name}" in published(database)
        database.execute("INSERT INTO users VALUES (2, 'b', 'b@x')")
        database.execute("UPDATE users SET email = 'c@x' WHERE id = 1")
        database.execute("DELETE FROM users WHERE id = 1")
        verb(walstream.configuration, "backfill", "users", "--wait")
        reader.until(lambda records: len(records_of(records, "users")) == 5)
    columns = {record.op.table.columns for record in records_of(reader.read(), "users")}
    assert columns == {("id", "name")}
    assert not of(look_as(walstream), "publication-filter")
    assert not of(look_as(walstream), "publication-columns")


def records_of(records: list[Record], table: str) -> list[Record]:
    return [record for record in records if record.op.table.name == table]


@pytest.mark.parametrize(
    ("alter", "columns", "said"),
    [
        ("", ["name"], "leaves out 'id' of its replica identity"),
        ("", ["id", "nam"], "names 'nam', which it does not have"),
        ("ALTER TABLE users REPLICA IDENTITY FULL", ["id"], "REPLICA IDENTITY FULL"),
    ],
)
def test_a_list_that_postgresql_would_not_take_is_refused(
    database: Database, made: Made, alter: str, columns: list[str], said: str
) -> None:
    walstream = made(columns={"public.users": columns})
    if alter:
        database.execute(alter)
    found = look(database.dsn, columns={"public.users": columns})
    assert said in one(found, "publication-selection", Severity.STOP, 2).what
    walstream.start().ends_with(2, said)
    assert not database.fetch("SELECT FROM pg_publication")


def test_another_list_stops_until_the_table_is_read_again(
    database: Database, made: Made, reader: Reader
) -> None:
    walstream = made(**COLUMNS).start().until("backfill ended").streaming()
    assert walstream.terminate() == 0
    wider = {"columns": {"public.users": ["id", "name", "email"]}}
    reconfigured(walstream, **wider)
    found = one(look_as(walstream), "publication-columns", Severity.WARNING)
    assert "has the columns id, name of it" in found.what
    walstream.start().ends_with(3, "has another column list in the publication")
    assert "walstream: users {id,name}" in published(database)
    (stop,) = walstream.said("stopped")
    command = stop["repair"].split()
    assert command[:3] == ["walstream", "backfill", "public.users"]
    done = verb(walstream.configuration, *command[1:])
    assert done.returncode == 0, done.stderr
    assert "walstream: users {id,name,email}" in published(database)
    walstream.start().streaming()
    database.execute("INSERT INTO users VALUES (2, 'b', 'b@x')")
    reader.until(lambda records: len(rows(records, "users")) == 4)
    assert rows(reader.read(), "users")[1:] == [
        {},
        {"id": "1", "name": "a", "email": "a@x"},
        {"id": "2", "name": "b", "email": "b@x"},
    ]


def test_another_list_is_read_again_beside_the_stream(
    database: Database, made: Made, reader: Reader
) -> None:
    walstream = made(**COLUMNS).start().until("backfill ended").streaming()
    assert walstream.terminate() == 0
    database.execute("INSERT INTO users VALUES (2, 'b', 'b@x')")  # with the first list
    reconfigured(
        walstream,
        columns={"public.users": ["id", "email"]},
        on_publication_change="reread",
    )
    walstream.start().streaming()
    reader.until(lambda records: len(rows(records, "users")) == 5)
    assert rows(reader.read(), "users") == [
        {"id": "1", "name": "a"},
        {"id": "2", "name": "b"},
        {},
        {"id": "1", "email": "a@x"},
        {"id": "2", "email": "b@x"},
    ]
    assert "walstream: users {id,email}" in published(database)


def test_a_table_that_gains_a_key_keeps_its_list(
    database: Database, made: Made, reader: Reader
) -> None:
    database.execute("ALTER TABLE notes ADD n int, ADD m int")
    listed = {"columns": {"public.notes": ["v", "n"]}}
    walstream = made(**listed).start().until("backfill ended").streaming()
    assert walstream.terminate() == 0
    database.execute("ALTER TABLE notes ADD PRIMARY KEY (v)")
    narrower = {"columns": {"public.notes": ["v"]}, "on_publication_change": "reread"}
    reconfigured(walstream, **narrower).start().streaming()
    # one list in both: PostgreSQL decodes no change of a table with two
    assert {"walstream: notes {v}", "walstream_insert: notes {v}"} < {
        *published(database)
    }
    database.execute("INSERT INTO notes VALUES ('two', 1, 2)")
    reader.until(lambda records: {"v": "two"} in rows(records, "notes"))
    assert walstream.terminate() == 0
    narrower["columns"] = {"public.notes": ["v", "m"]}
    reconfigured(walstream, **narrower).start().streaming()
    lists = [name for name in published(database) if "notes" in name]
    assert lists == ["walstream: notes {v,m}"]
    database.execute("INSERT INTO notes VALUES ('three', 3, 4)")
    reader.until(lambda records: {"v": "three", "m": "4"} in rows(records, "notes"))


GENERATED = """
CREATE TABLE g (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO g VALUES (1)
"""


@pytest.mark.parametrize("identity", ["FULL", "USING INDEX other"])
def test_a_list_that_a_partition_would_not_take_is_refused(
    database: Database, made: Made, identity: str
) -> None:
    """PostgreSQL asks for the identity of the partition that a row is in."""
    database.execute(
        "CREATE TABLE root (id int PRIMARY KEY, v int) PARTITION BY RANGE (id);"
        "CREATE TABLE leaf PARTITION OF root (v NOT NULL) DEFAULT;"
        "CREATE UNIQUE INDEX other ON leaf (v);"
        "INSERT INTO root VALUES (1, 2)"
    )
    database.execute(f"ALTER TABLE leaf REPLICA IDENTITY {identity}")
    columns = {"public.root": ["id"]}
    stop = one(
        look(database.dsn, columns=columns), "publication-selection", Severity.STOP, 2
    )
    assert "its partition 'public.leaf'" in stop.what
    made(columns=columns).start().ends_with(2, "its partition 'public.leaf'")
    database.execute("UPDATE root SET v = 3")  # whoever did that went on


@pytest.mark.parametrize("generated", ["stored", "none"])
def test_generated_columns_are_sent_and_backfilled_alike(
    database: Database, made: Made, reader: Reader, generated: str
) -> None:
    database.execute(GENERATED)
    walstream = made(generated=generated)
    if database.server.version < 18 and generated == "stored":
        stop = one(
            look(database.dsn, generated=generated), "generated", Severity.STOP, 2
        )
        assert "cannot publish generated columns" in stop.what
        walstream.start().ends_with(2, "cannot publish generated columns")
        return
    with walstream:
        walstream.until("backfill ended").streaming()
        database.execute("INSERT INTO g VALUES (2)")
        verb(walstream.configuration, "backfill", "g", "--wait")
        reader.until(lambda records: len(rows(records, "g")) == 4)
    expected = ("id", "twice") if generated == "stored" else ("id",)
    found = records_of(reader.read(), "g")
    assert {record.op.table.columns for record in found} == {expected}
    if generated == "stored":
        assert {(row["id"], row["twice"]) for row in rows(found, "g")} == {
            ("1", "2"),
            ("2", "4"),
        }


@pytest.mark.parametrize("postgres", ["postgres18"], indirect=True)
def test_a_publication_without_generated_columns_is_named(
    database: Database, made: Made
) -> None:
    database.execute(GENERATED + ";CREATE PUBLICATION walstream FOR TABLE g")
    found = one(
        look(database.dsn, generated="stored"),
        "publication-generated",
        Severity.WARNING,
    )
    assert "publish_generated_columns = stored" in found.repair.sql
    walstream = made(generated="stored").start().streaming()
    assert walstream.said("publication does not publish stored generated columns")


BARE_GENERATED = (
    "CREATE TABLE g (id int NOT NULL, twice int GENERATED ALWAYS AS (id * 2) STORED)"
)


@pytest.mark.parametrize("postgres", ["postgres18"], indirect=True)
def test_both_publications_have_generated_columns_alike(
    database: Database, made: Made, reader: Reader
) -> None:
    """PostgreSQL decodes no change of a table that two publish differently."""
    database.execute(
        f"{BARE_GENERATED};"
        "CREATE PUBLICATION walstream FOR TABLE users"
        " WITH (publish_via_partition_root = true)"
    )
    with made(generated="stored") as walstream:
        walstream.until("backfill ended").streaming()
        said = walstream.said("publication does not publish stored generated columns")
        database.execute(
            "INSERT INTO g VALUES (1); ALTER TABLE g ADD PRIMARY KEY (id);"
            "ALTER PUBLICATION walstream ADD TABLE g; INSERT INTO g VALUES (2)"
        )
        reader.until(lambda records: len(rows(records, "g")) == 2)
        database.execute(said[0]["repair"])  # as printed
        database.execute("UPDATE g SET id = 3 WHERE id = 1")
        reader.until(lambda records: {"id": "3", "twice": "6"} in rows(records, "g"))


@pytest.mark.parametrize("postgres", ["postgres18"], indirect=True)
def test_a_table_stays_in_one_of_publications_that_differ_in_generated_columns(
    database: Database, made: Made, reader: Reader
) -> None:
    database.execute(
        f"{BARE_GENERATED};"
        "CREATE PUBLICATION walstream WITH (publish_via_partition_root = true);"
        "CREATE PUBLICATION walstream_insert WITH (publish = 'insert, truncate',"
        " publish_via_partition_root = true, publish_generated_columns = stored)"
    )
    walstream = made().start().until("backfill ended").streaming()
    assert walstream.said("publications differ in publish_generated_columns")
    assert walstream.terminate() == 0
    one(look_as(walstream), "publication-generated", Severity.WARNING)
    database.execute("ALTER TABLE g ADD PRIMARY KEY (id)")
    with walstream:
        walstream.streaming()
        database.execute("INSERT INTO g VALUES (1)")
        reader.until(lambda records: len(rows(records, "g")) == 1)
    assert [name for name in published(database) if " g " in name] == [
        "walstream_insert: g {id,twice}"
    ]


COMPUTED = """
CREATE TABLE f (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED);
ALTER TABLE f REPLICA IDENTITY FULL;
CREATE TABLE k (id int, g int GENERATED ALWAYS AS (id * 2) STORED PRIMARY KEY);
CREATE TABLE v (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL);
ALTER TABLE v REPLICA IDENTITY FULL;
CREATE TABLE r (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED)
  PARTITION BY RANGE (id);
CREATE TABLE leaf PARTITION OF r DEFAULT; ALTER TABLE leaf REPLICA IDENTITY FULL;
INSERT INTO f VALUES (1); INSERT INTO k VALUES (1); INSERT INTO v VALUES (1);
INSERT INTO r VALUES (1)
"""


@pytest.mark.parametrize("postgres", ["postgres18"], indirect=True)
@pytest.mark.parametrize("generated", ["none", "stored"])
def test_generated_columns_of_an_identity_keep_no_application_from_its_updates(
    database: Database, made: Made, generated: str
) -> None:
    """PostgreSQL 18 refuses them where such columns are not published."""
    database.execute(COMPUTED)
    database.execute("CREATE PUBLICATION by_hand FOR TABLE f, k, v, r")
    found = look(database.dsn, generated=generated)
    failing = one(found, "updates-fail", Severity.WARNING, subject="4 tables")
    assert "generated columns, which are not published" in failing.what
    database.execute("DROP PUBLICATION by_hand")
    walstream = made(generated=generated).start().streaming()
    for table in "fkvr":
        database.execute(f"UPDATE {table} SET id = id + 1")  # noqa: S608 - of our own
    whole = [name for name in published(database) if name.startswith("walstream: ")]
    assert {name.split()[1] for name in whole} & {*"fkvr"} == (
        {*"fkr"} if generated == "stored" else set()
    )
    assert walstream.said("table has no replica identity: only its inserts")
    assert not of(look(database.dsn, generated=generated), "updates-fail")


def test_a_column_list_that_the_publication_cannot_have_costs_that_table_alone(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    database.execute(
        "CREATE TABLE r (id int PRIMARY KEY, v int, s int) PARTITION BY RANGE (id)"
    )
    database.execute("CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (9)")
    database.execute("CREATE PUBLICATION walstream FOR TABLE a")
    columns = {"public.r": ["id", "v"]}
    walstream = runs(database.dsn, source={"columns": columns}).start().streaming()
    (warned,) = walstream.said("cannot use column list")
    assert "publish_via_partition_root" in str(warned)
    database.execute("INSERT INTO a VALUES (1)")
    reader.count(1)
