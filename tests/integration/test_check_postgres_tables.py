"""`check` finds what tables and publications leave out; its SQL cures it."""

from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.fixtures.postgres import Database
from tests.support.programs.inspection import look, of, one, repair, stops
from tests.support.servers.pooler import pooler
from walstream.cli.output import console, print_findings
from walstream.errors import ConfigError
from walstream.finding import Severity
from walstream.postgres.checks import Inspection
from walstream.postgres.connection import connect


@pytest.fixture
def database(database: Database) -> Database:
    """Give it one table in which nothing is to be found."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, n int)")
    return database


def publish(database: Database, name: str, rest: str) -> None:
    database.execute(
        sql.SQL("CREATE PUBLICATION {} ").format(sql.Identifier(name)) + sql.SQL(rest)
    )


def cured(database: Database, code: str, **source: Any) -> Inspection:
    """Run the one finding's repair, and claim that the finding is gone."""
    before = look(database.dsn, **source)
    (finding,) = of(before, code)
    repair(database, finding.repair)
    after = look(database.dsn, **source)
    assert not of(after, code), after.findings
    return after


def test_a_plain_table_is_captured_without_a_remark(database: Database) -> None:
    found = look(database.dsn)
    assert list(found.captured) == ["public.t"]
    assert found.server is not None
    assert found.server.database == database.name
    assert {finding.code for finding in found.findings} <= {"wal-limit"}


@pytest.mark.parametrize("kind", ["regclass", "regtype[]", "object", "objects"])
def test_a_key_that_holds_names_is_told_with_its_column(
    database: Database, kind: str
) -> None:
    database.execute(
        "CREATE DOMAIN object AS regproc; CREATE DOMAIN objects AS object[]"
    )
    database.execute(
        f"CREATE TABLE k (a int, b {kind}, c regclass, PRIMARY KEY (a, b))"
    )
    finding = one(look(database.dsn), "key-type", Severity.WARNING)
    assert finding.subject == "table public.k"
    assert "b of public.k (" in finding.what
    assert f"{kind})" in finding.what
    assert "c of" not in finding.what


NOTHING = "ALTER TABLE k REPLICA IDENTITY NOTHING"
BY_INDEX = (
    "CREATE TABLE k (a int NOT NULL UNIQUE);"
    "ALTER TABLE k REPLICA IDENTITY USING INDEX k_a_key;"
    "ALTER TABLE k DROP CONSTRAINT k_a_key"
)
LEAVES = (
    "CREATE TABLE k (a int, PRIMARY KEY (a)) PARTITION BY LIST (a);"
    "CREATE TABLE k1 PARTITION OF k FOR VALUES IN (1);"
    "CREATE TABLE k2 PARTITION OF k FOR VALUES IN (2);"
    "ALTER TABLE k2 REPLICA IDENTITY NOTHING"
)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        pytest.param("CREATE TABLE k (a int)", "no primary key", id="none"),
        pytest.param(
            f"CREATE TABLE k (a int PRIMARY KEY); {NOTHING}", "NOTHING", id="nothing"
        ),
        pytest.param(
            "CREATE TABLE k (a int PRIMARY KEY DEFERRABLE)", "deferrable", id="deferred"
        ),
        pytest.param(BY_INDEX, "is gone", id="index"),
        pytest.param(LEAVES, "NOTHING", id="leaf"),
    ],
)
def test_a_table_without_identity_gives_inserts_only_until_it_has_one(
    database: Database, table: str, says: str
) -> None:
    database.execute(table)
    finding = one(look(database.dsn), "identity", Severity.WARNING)
    assert finding.subject == "table public.k"
    assert "only inserts are captured" in finding.what
    assert says in finding.what
    cured(database, "identity")


@pytest.mark.parametrize(
    "whom", ["FOR ALL TABLES", "FOR TABLE k", "FOR TABLES IN SCHEMA public"]
)
def test_updates_that_fail_now_are_said_loudly(database: Database, whom: str) -> None:
    database.execute("CREATE TABLE k (a int); INSERT INTO k VALUES (1)")
    publish(database, "of_somebody", whom)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        database.execute("UPDATE k SET a = 2")

    finding = one(look(database.dsn), "updates-fail", Severity.WARNING)
    assert finding.subject == "table public.k"
    assert "FAIL NOW" in finding.what
    assert "of_somebody" in finding.why
    found = cured(database, "updates-fail")
    assert not of(found, "identity")
    database.execute("UPDATE k SET a = 2")


def test_updates_that_a_leaf_makes_fail_are_found_by_their_root(
    database: Database,
) -> None:
    database.execute(
        "CREATE TABLE k (a int PRIMARY KEY) PARTITION BY LIST (a);"
        "CREATE TABLE k1 PARTITION OF k FOR VALUES IN (1);"
        "ALTER TABLE k1 REPLICA IDENTITY NOTHING; INSERT INTO k VALUES (1)"
    )
    publish(database, "of_somebody", "FOR TABLE k")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        database.execute("DELETE FROM k")
    assert one(look(database.dsn), "updates-fail", Severity.WARNING).subject.endswith(
        "k1"
    )
    cured(database, "updates-fail")
    database.execute("DELETE FROM k")


def test_inserts_alone_may_be_published_of_any_table(database: Database) -> None:
    database.execute("CREATE TABLE k (a int)")
    publish(database, "p", "FOR TABLE k WITH (publish = 'insert')")
    assert not of(look(database.dsn), "updates-fail")


def test_leaves_that_do_not_follow_a_full_root_are_named(database: Database) -> None:
    database.execute(
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE TABLE r1 PARTITION OF r FOR VALUES IN (1);"
        "CREATE TABLE r2 PARTITION OF r FOR VALUES IN (2);"
        "ALTER TABLE r REPLICA IDENTITY FULL; ALTER TABLE r1 REPLICA IDENTITY FULL"
    )
    finding = one(look(database.dsn), "partition-identity", Severity.NOTE)
    assert finding.repair.sql == 'ALTER TABLE "public"."r2" REPLICA IDENTITY FULL;'
    cured(database, "partition-identity")


def test_long_values_that_do_not_come_are_one_note(database: Database) -> None:
    database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, v text);"
        "CREATE TABLE b (id int PRIMARY KEY, v jsonb, w bytea);"
        "CREATE TABLE c (id text PRIMARY KEY, n int);"  # a key always comes
        "CREATE TABLE d (id int PRIMARY KEY, v text);"
        "ALTER TABLE d REPLICA IDENTITY FULL;"
        "CREATE TABLE e (id int PRIMARY KEY, v text);"
        "ALTER TABLE e ALTER v SET STORAGE PLAIN"
    )
    finding = one(look(database.dsn), "toast", Severity.NOTE)
    assert finding.subject == "2 tables"
    assert "public.a, public.b" in finding.what
    cured(database, "toast")


def test_more_statements_than_can_be_read_come_in_turns(database: Database) -> None:
    for number in range(23):
        database.execute(f"CREATE TABLE k{number:02} (a int)")
    finding = one(look(database.dsn), "identity", Severity.WARNING)
    assert finding.subject == "23 tables"
    assert "and 20 more" in finding.what
    assert len(finding.repair.sql.splitlines()) == 20
    assert "3 more" in finding.repair.then
    repair(database, finding.repair)
    cured(database, "identity")


def test_an_unlogged_table_and_leaf_are_named(database: Database) -> None:
    database.execute(
        "CREATE UNLOGGED TABLE u (id int PRIMARY KEY);"
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE UNLOGGED TABLE r1 PARTITION OF r FOR VALUES IN (1)"
    )
    finding = one(look(database.dsn), "unlogged", Severity.WARNING)
    assert "public.r1, public.u" in finding.what
    after = cured(database, "unlogged")
    assert "public.u" in after.captured


def test_a_pattern_that_matches_nothing_is_named_with_what_may_be_meant(
    database: Database,
) -> None:
    found = look(database.dsn, tables=["public.T", "elsewhere.*", "public.t"])
    near, far = of(found, "pattern")
    assert near.subject == "pattern public.T"
    assert "did you mean 'public.t'?" in near.what
    assert "did you mean" not in far.what
    assert near.severity is Severity.WARNING
    assert not of(look(database.dsn, tables=["public.?"]), "pattern")


def test_a_publication_without_tables_is_named(database: Database) -> None:
    publish(database, "walstream", "")
    finding = one(look(database.dsn, tables=[]), "publication-empty", Severity.WARNING)
    assert finding.subject == "publication walstream"
    after = cured(database, "publication-empty", tables=[])
    assert "public.t" in after.captured
    # `run` fills it where `tables` says with what
    database.execute("ALTER PUBLICATION walstream DROP TABLE t")
    assert not of(look(database.dsn, tables=["public.*"]), "publication-empty")
    database.execute("ALTER PUBLICATION walstream ADD TABLES IN SCHEMA public")
    assert not of(look(database.dsn, tables=[]), "publication-empty")


def test_operations_that_are_not_published_are_named(database: Database) -> None:
    database.execute("CREATE TABLE k (a int); INSERT INTO k VALUES (1)")
    publish(database, "walstream", "FOR TABLE t, k WITH (publish = 'insert')")
    found = look(database.dsn, tables=[])
    finding = one(found, "publication-operations", Severity.WARNING)
    assert "update, delete, truncate" in finding.what
    # and the cure does no harm to a table that could not bear it before
    after = cured(database, "publication-operations", tables=[])
    assert not of(after, "updates-fail")
    database.execute("UPDATE k SET a = 2")


def test_rows_and_columns_that_are_left_out_are_named(database: Database) -> None:
    publish(database, "walstream", "FOR TABLE t (id) WHERE (id > 5)")
    finding = one(look(database.dsn, tables=[]), "publication-filter", Severity.WARNING)
    assert finding.subject == "table public.t"
    assert "a row filter and columns" in finding.what
    cured(database, "publication-filter", tables=[])
    assert database.fetch("SELECT FROM pg_publication_tables WHERE tablename = 't'")


def test_partitions_that_are_published_by_themselves_are_named(
    database: Database,
) -> None:
    database.execute(
        "CREATE TABLE r (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE TABLE r1 PARTITION OF r FOR VALUES IN (1)"
    )
    publish(database, "walstream", "FOR TABLE r")
    one(look(database.dsn, tables=[]), "publication-root", Severity.NOTE)
    # what was decided at the first start stays
    later = look(database.dsn, tables=[], publications={"walstream": {}})
    assert not of(later, "publication-root")
    cured(database, "publication-root", tables=[])


def test_a_publication_that_is_not_there_stops(database: Database) -> None:
    found = look(database.dsn, tables=[])
    one(found, "publication-missing", Severity.STOP, 2)
    assert stops(found) == [("publication-missing", 2)]
    assert list(cured(database, "publication-missing", tables=[]).captured) == [
        "public.t"
    ]


def test_a_lock_on_a_table_does_not_hold_the_questions_up(database: Database) -> None:
    database.execute("CREATE TABLE r (id int, v text) PARTITION BY LIST (id)")
    publish(database, "walstream", "FOR TABLE t")
    with psycopg.connect(database.dsn) as other:
        other.execute("LOCK TABLE t, r IN ACCESS EXCLUSIVE MODE")
        found = look(database.dsn, tables=[])
    assert not stops(found)
    assert not of(found, "not-asked")


def test_a_table_whose_name_drives_a_terminal_is_told_of_in_plain_text(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    name = sql.Identifier("o\x1b]0;owned\x07\x9b2J\u202e\n✓ run would start\n")
    for words in ("CREATE TABLE {} (n int)", "CREATE UNLOGGED TABLE u.{} (n int)"):
        database.execute("CREATE SCHEMA IF NOT EXISTS u")
        database.execute(sql.SQL(words).format(name))
    found = look(database.dsn).findings
    assert any("owned" in one.subject + one.what for one in found)
    print_findings(console(), found, str)
    said = capsys.readouterr().out
    assert r"\x1b]0;owned\x07\x9b2J\u202e" in said
    assert {char for char in said if not char.isprintable()} == {"\n"}
    assert not [line for line in said.splitlines() if line.lstrip(" ")[:1] == "✓"]


def test_a_pooler_that_drops_our_settings_is_refused(database: Database) -> None:
    """Names would be led astray behind it, and values be other bytes."""
    with pooler(int(str(conninfo_to_dict(database.dsn)["port"]))) as port:
        dsn = make_conninfo(database.dsn, port=port, sslmode="disable")
        finding = one(look(dsn), "connection", Severity.STOP, 2)
        assert "search_path" in finding.what
        assert "pooler" in finding.why
        with pytest.raises(ConfigError, match="search_path"):
            connect(dsn, replication=True)
