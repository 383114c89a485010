"""Each change of a publication that may keep rows out of the stream is noticed.

Also one that was undone before anybody looked; what keeps no row out is none. Told by
the catalogs of real servers, whether walstream runs on or begins anew.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import psycopg
import pytest

from tests.fix_postgres import Database
from walstream.errors import PublicationLost, Transient
from walstream.postgres import catalog
from walstream.postgres.capture import Capture
from walstream.postgres.connection import Connection, connect
from walstream.postgres.mending import Mending
from walstream.postgres.watch import Watch

SCHEMA = """
CREATE SCHEMA s; CREATE SCHEMA o;
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE s.m (id int PRIMARY KEY, v text);
CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (1) TO (9);
CREATE TABLE branch PARTITION OF root FOR VALUES FROM (10) TO (99)
  PARTITION BY RANGE (id);
CREATE TABLE twig PARTITION OF branch DEFAULT;
CREATE TABLE away (id int NOT NULL)
"""
ROOT = "WITH (publish_via_partition_root = true)"
# how `walstream` is made, and the patterns of `tables`
KINDS = {
    "patterns": ("", ["public.t", "public.root", "s.m"]),
    "by hand": (f"FOR TABLE t, root, TABLES IN SCHEMA s {ROOT}", []),
    "all": (f"FOR ALL TABLES {ROOT}", []),
    "leaves": ("FOR TABLE t, root, TABLES IN SCHEMA s", []),
}
P = "ALTER PUBLICATION walstream "
FEWER = P + "SET (publish = 'insert')"
EVERYTHING = P + "SET (publish = 'insert, update, delete, truncate')"
EACH = {"public.t", "public.root", "s.m"}

Undone = tuple[str, list[str], set[str]]
"""Kind of publication, statements, and the tables of which rows may be missing."""

CHANGES: dict[str, Undone] = {
    "drop and add": (
        "patterns",
        [P + "DROP TABLE t", P + "ADD TABLE t"],
        {"public.t"},
    ),
    "set without and with": (
        "patterns",
        [P + "SET TABLE s.m, root", P + "SET TABLE t, s.m, root"],
        {"public.t"},
    ),
    "fewer operations for a while": ("patterns", [FEWER, EVERYTHING], EACH),
    "likewise of all tables": ("all", [FEWER, EVERYTHING], {*EACH, "public.away"}),
    "leaves as themselves for a while": (
        "by hand",
        [
            P + "SET (publish_via_partition_root = false)",
            P + "SET (publish_via_partition_root = true)",
        ],
        EACH,
    ),
    "other name for a while": (
        "patterns",
        [P + "RENAME TO other", "ALTER PUBLICATION other RENAME TO walstream"],
        EACH,
    ),
    "other owner after fewer operations": (
        "patterns",
        [FEWER, EVERYTHING, P + "OWNER TO CURRENT_USER", "CREATE PUBLICATION another"],
        EACH,
    ),
    # nothing tells it from fewer operations for a while
    "the same operations set once more": ("patterns", [EVERYTHING], EACH),
    "likewise, on a line that VACUUM gave back": (
        "patterns",
        [FEWER, EVERYTHING, "VACUUM pg_publication", EVERYTHING],
        EACH,
    ),
    "row filter": (
        "patterns",
        [P + "SET TABLE t WHERE (id > 9), s.m, root"],
        {"public.t"},
    ),
    "column list": ("patterns", [P + "SET TABLE t (id), s.m, root"], {"public.t"}),
    "row filter for a while": (
        "by hand",
        [
            P + "SET TABLE t WHERE (id > 9), root, TABLES IN SCHEMA s",
            P + "SET TABLE t, root, TABLES IN SCHEMA s",
        ],
        {"public.t"},
    ),
    "schema dropped and added": (
        "by hand",
        [P + "DROP TABLES IN SCHEMA s", P + "ADD TABLES IN SCHEMA s"],
        {"s.m"},
    ),
    "table out of the schema and back": (
        "by hand",
        ["ALTER TABLE s.m SET SCHEMA o", "ALTER TABLE o.m SET SCHEMA s"],
        {"s.m"},
    ),
    "partition detached and attached": (
        "patterns",
        [
            "ALTER TABLE root DETACH PARTITION leaf",
            "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (1) TO (9)",
        ],
        {"public.root"},
    ),
    "likewise of all": (
        "all",
        [
            "ALTER TABLE root DETACH PARTITION leaf",
            "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (1) TO (9)",
        ],
        {"public.root"},
    ),
    "branch detached and attached": (
        "patterns",
        [
            "ALTER TABLE root DETACH PARTITION branch",
            "ALTER TABLE root ATTACH PARTITION branch FOR VALUES FROM (10) TO (99)",
        ],
        {"public.root"},
    ),
    "leaf that goes out as itself, likewise": (
        "leaves",
        [
            "ALTER TABLE root DETACH PARTITION leaf",
            "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (1) TO (9)",
        ],
        {"public.leaf", "public.twig"},
    ),
    "unlogged in a schema": ("by hand", ["ALTER TABLE s.m SET UNLOGGED"], {"s.m"}),
    "unlogged of all": ("all", ["ALTER TABLE t SET UNLOGGED"], {"public.t"}),
    "unlogged partition": (
        "patterns",
        ["ALTER TABLE leaf SET UNLOGGED"],
        {"public.root"},
    ),
    "left where tables wants it": ("patterns", [P + "DROP TABLE t"], {"public.t"}),
    "dropped with its publication's row, made again": (
        "by hand",
        [P + "DROP TABLE root", P + "ADD TABLE root"],
        {"public.root"},
    ),
}
LOST = {
    "dropped": ["DROP PUBLICATION walstream"],
    "made again": [
        "DROP PUBLICATION walstream",
        f"CREATE PUBLICATION walstream FOR TABLE t, root, s.m {ROOT}",
    ],
    "fewer operations": [FEWER],
    "leaves as themselves": [P + "SET (publish_via_partition_root = false)"],
    "other name": [P + "RENAME TO other"],
}
HARMLESS: dict[str, tuple[str, list[str]]] = {
    "table renamed": ("patterns", ["ALTER TABLE t RENAME TO t2"]),
    "schema renamed": ("by hand", ["ALTER SCHEMA s RENAME TO s2"]),
    "other owner": ("patterns", [P + "OWNER TO pg_database_owner"]),
    "the same tables": ("by hand", [P + "SET TABLE t, root, TABLES IN SCHEMA s"]),
    "comment": ("patterns", ["COMMENT ON PUBLICATION walstream IS 'ours'"]),
    "catalogs rewritten": (
        "by hand",
        [
            "VACUUM FULL pg_publication",
            "VACUUM FULL pg_publication_rel",
            "VACUUM FULL pg_publication_namespace",
            "VACUUM FULL pg_depend",
            "VACUUM FULL pg_inherits",
            "VACUUM FULL pg_class",
        ],
    ),
    "catalogs frozen": (
        "by hand",
        ["VACUUM FREEZE", "VACUUM (FULL, FREEZE) pg_depend"],
    ),
    "catalogs' indexes made anew": ("patterns", ["REINDEX TABLE pg_publication_rel"]),
    "tables rewritten": (
        "all",
        ["VACUUM FULL", "CLUSTER s.m USING m_pkey", "TRUNCATE t", "ANALYZE"],
    ),
    "tables altered": (
        "by hand",
        [
            "ALTER TABLE s.m ADD COLUMN w int",
            "ALTER TABLE s.m ALTER id TYPE bigint",
            "CREATE INDEX ON s.m (w)",
            "GRANT SELECT ON s.m, t, root TO PUBLIC",
            "ALTER TABLE t REPLICA IDENTITY FULL",
            "ALTER TABLE s.m OWNER TO pg_database_owner",
        ],
    ),
    "partitions made, attached for the first time, and dropped": (
        "patterns",
        [
            "CREATE TABLE next PARTITION OF root FOR VALUES FROM (100) TO (200)",
            "ALTER TABLE away ADD PRIMARY KEY (id)",
            "ALTER TABLE root ATTACH PARTITION away FOR VALUES FROM (200) TO (300)",
            "DROP TABLE leaf",
        ],
    ),
    "table dropped": ("patterns", ["DROP TABLE t"]),
    "table made in a schema": (
        "by hand",
        ["CREATE TABLE s.later (id int PRIMARY KEY)"],
    ),
    "others' publications": (
        "patterns",
        ["CREATE PUBLICATION other FOR ALL TABLES", "DROP PUBLICATION other"],
    ),
    "rolled back": (
        "patterns",
        [f"BEGIN; {P}DROP TABLE t; {FEWER}; ROLLBACK", "SELECT 1"],
    ),
    "taken out on purpose": ("by hand", [P + "DROP TABLE t"]),
}


def execute(database: Database, statements: list[str]) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@contextmanager
def watching(
    database: Database, kind: str, **mending: Any
) -> Iterator[tuple[Connection, Capture, list[Any]]]:
    """Watch a publication since it was made; what is kept is given, too."""
    how, patterns = KINDS[kind]
    execute(database, [SCHEMA])
    if how:
        execute(database, [f"CREATE PUBLICATION walstream {how}"])
    kept: list[Any] = []
    with connect(database.dsn) as connection:
        made = capture(database, patterns, kept, **mending)
        made.establish(connection)
        kept.append(json.loads(json.dumps(made.remembered)))
        yield connection, made, kept


def capture(
    database: Database, patterns: list[str], kept: list[Any], **mending: Any
) -> Capture:
    grown = mending.pop("grown", lambda _: None)
    return Capture(
        database.dsn,
        "walstream",
        patterns,
        keep=lambda found: kept.append(json.loads(json.dumps(found))),
        grown=grown,
        mending=Mending(**mending),
    )


def both(database: Database, running: Capture, remembered: Any) -> Iterator[Capture]:
    """Give one that runs on, and one that begins with what the other kept."""
    yield running
    begun = capture(database, running.patterns, [])
    begun.recall(remembered)
    yield begun


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_may_keep_rows_out_is_noticed(
    database: Database, change: str
) -> None:
    kind, statements, tables = CHANGES[change]
    with watching(database, kind) as (connection, running, kept):
        running.check(connection)
        execute(database, statements)
        for one in both(database, running, kept[-1]):
            assert one.examine(connection).missed.keys() == tables
            with pytest.raises(
                PublicationLost, match="missing from the stream"
            ) as stop:
                one.check(connection)
            assert all(name in str(stop.value) for name in tables) or len(tables) > 3
            assert "--replace" in stop.value.repair.command
            # nor is it forgotten
            assert one.examine(connection).missed.keys() == tables
        assert len(kept) == 1


@pytest.mark.parametrize("change", LOST)
def test_a_publication_that_cannot_be_read_on_is_noticed(
    database: Database, change: str
) -> None:
    with watching(database, "patterns") as (connection, running, kept):
        execute(database, LOST[change])
        for one in both(database, running, kept[-1]):
            for _ in range(2):
                with pytest.raises(PublicationLost):
                    one.check(connection)


@pytest.mark.parametrize("change", HARMLESS)
def test_what_keeps_no_row_out_does_not_stop(database: Database, change: str) -> None:
    kind, statements = HARMLESS[change]
    with watching(database, kind) as (connection, running, kept):
        execute(database, statements)
        for one in both(database, running, kept[-1]):
            one.check(connection)
            one.extend(connection, catalog.tables(connection))
            one.check(connection)


def test_fewer_operations_are_noticed_behind_another_owner(database: Database) -> None:
    with watching(database, "patterns") as (connection, running, _):
        execute(database, [FEWER, EVERYTHING, P + "OWNER TO pg_database_owner"])
        assert running.examine(connection).missed.keys() == EACH


def test_a_table_that_left_and_came_back_is_noticed_after_any_number_of_looks(
    database: Database,
) -> None:
    with watching(database, "by hand") as (connection, running, kept):
        for out, back, table in (
            (P + "DROP TABLE t", P + "ADD TABLE t", "public.t"),
            ("ALTER TABLE s.m SET SCHEMA o", "ALTER TABLE o.m SET SCHEMA s", "s.m"),
            (
                "ALTER TABLE root DETACH PARTITION leaf",
                "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (1) TO (9)",
                "public.root",
            ),
        ):
            execute(database, [out])
            running.check(connection)
            running.check(connection)
            begun = capture(database, [], kept)
            begun.recall(kept[-1])
            begun.check(connection)
            execute(database, [back])
            for one in (running, begun):
                assert one.examine(connection).missed.keys() == {table}
            running.mending = running.watch.mending = Mending(elsewhere=True)
            running.check(connection)
            assert not running.examine(connection).missed


def test_what_was_missed_is_asked_for_before_it_is_forgotten(
    database: Database,
) -> None:
    order: list[Any] = []
    with watching(database, "patterns", reread=True, ask=order.append) as (
        connection,
        running,
        kept,
    ):
        execute(database, [P + "DROP TABLE t, root", P + "ADD TABLE t, root"])
        before = len(kept)
        running.check(connection)
        assert order == [["public.root", "public.t"]]
        assert len(kept) == before + 1
        running.check(connection)
        assert len(order) == 1
        # taken out where `tables` wants it: it is put in again, and read anew
        execute(database, [P + "DROP TABLE t"])
        running.check(connection)
        running.extend(connection, catalog.tables(connection))
        assert order[1:] == [["public.t"], ["public.t"]]
        running.check(connection)
        assert order[3:] == []


def test_a_table_without_a_row_key_is_not_read_anew_but_stops(
    database: Database,
) -> None:
    asked: list[Any] = []
    execute(
        database, ["CREATE TABLE bare (id int); ALTER TABLE bare REPLICA IDENTITY FULL"]
    )
    with watching(database, "all", reread=True, ask=asked.append) as (
        connection,
        one,
        _,
    ):
        execute(database, [FEWER, EVERYTHING])
        with pytest.raises(PublicationLost, match=r"public\.bare") as stop:
            one.check(connection)
        assert "without a row key" in stop.value.hint
        assert "public.bare" in stop.value.repair.command
        assert asked == []


def test_what_the_start_reads_anew_stops_it_no_more(database: Database) -> None:
    with watching(database, "patterns") as (connection, _, kept):
        execute(database, [P + "DROP TABLE t, root", P + "ADD TABLE t, root"])
        facts = catalog.tables(connection)
        some = capture(database, KINDS["patterns"][1], [], asked=lambda: {"public.t"})
        with pytest.raises(PublicationLost, match=r"'public\.root'"):
            some.resume(connection, kept[-1], facts)
        asked = {"public.t", "public.root"}
        begun = capture(database, KINDS["patterns"][1], kept, asked=lambda: asked)
        begun.resume(connection, kept[-1], facts)
        asked.clear()
        begun.check(connection)
        # what comes while it runs is not in what was asked for before
        asked |= {"public.t"}
        execute(database, [P + "DROP TABLE t", P + "ADD TABLE t"])
        with pytest.raises(PublicationLost):
            begun.check(connection)


OLD = ("oid", "operations", "via_root", "tables")


def test_the_state_of_an_older_walstream_is_compared_and_then_marked(
    database: Database,
) -> None:
    with watching(database, "patterns") as (connection, _, kept):
        patterns = KINDS["patterns"][1]
        old = {name: {key: seen[key] for key in OLD} for name, seen in kept[-1].items()}
        execute(database, [P + "DROP TABLE t"])
        begun = capture(database, patterns, [])
        with pytest.raises(PublicationLost, match=r"'public\.t' was taken out"):
            begun.resume(connection, old, catalog.tables(connection))
        execute(database, [P + "ADD TABLE t"])
        later: list[Any] = []
        begun = capture(database, patterns, later)
        begun.resume(connection, old, catalog.tables(connection))
        assert later[-1]["walstream"]["xmin"]
        execute(database, [P + "DROP TABLE t", P + "ADD TABLE t"])
        with pytest.raises(PublicationLost, match=r"'public\.t'"):
            begun.check(connection)
        execute(database, [FEWER])
        with pytest.raises(PublicationLost, match="no longer publishes"):
            capture(database, patterns, []).resume(connection, old, {})


@pytest.mark.parametrize("stranger", [False, True], ids=["alone", "stranger"])
@pytest.mark.parametrize("committed", [False, True], ids=["rolled-back", "committed"])
def test_a_change_of_our_own_that_was_cut_short_is_known(
    database: Database, stranger: bool, committed: bool
) -> None:
    """Cut after the note, as a crash does; its transaction ended either way."""
    patterns = ["public.t", "public.root", "s.m", "public.later"]
    grown: list[list[str]] = []
    with watching(database, "patterns") as (connection, first, kept):
        execute(database, ["CREATE TABLE later (id int PRIMARY KEY)"])
        first.patterns += ["public.later"]

        _die(first, after_commit=committed)
        with pytest.raises(Died):
            first.extend(connection, catalog.tables(connection))
        noted = json.loads(json.dumps(kept[-1]))
        assert noted["walstream"]["altered"]
        held = "SELECT FROM pg_publication_tables WHERE tablename = 'later'"
        assert bool(database.fetch(held)) is committed
        if stranger:
            execute(database, [P + "DROP TABLE t", P + "ADD TABLE t"])
        again = capture(database, patterns, kept, grown=grown.append)
        if stranger:
            with pytest.raises(PublicationLost, match=r"'public\.t'"):
                again.resume(connection, noted, catalog.tables(connection))
            assert again.examine(connection).missed.keys() == {"public.t"}
        else:
            again.resume(connection, noted, catalog.tables(connection))
            again.check(connection)
            assert "altered" not in kept[-1]["walstream"]
        if committed or not stranger:
            assert ["public.later"] in grown


class Died(Exception):
    pass


def _die(first: Capture, *, after_commit: bool) -> None:
    """Have it end behind the note, or where it would remember what it committed."""
    watch = first.watch

    class Dying:
        def __getattr__(self, name: str) -> Any:
            return getattr(watch, name)

        def note(self, *noted: Any) -> None:
            watch.note(*noted)
            if not after_commit:
                raise Died

        def remember(self, *_: Any, **__: Any) -> None:
            raise Died

    first.watch = cast("Watch", Dying())


def test_a_strangers_change_within_our_own_window_is_not_remembered(
    database: Database,
) -> None:
    with watching(database, "patterns") as (connection, first, kept):
        execute(database, ["CREATE TABLE later (id int PRIMARY KEY)"])
        first.patterns += ["public.later"]
        first.check(connection)
        execute(database, [P + "DROP TABLE t", P + "ADD TABLE t"])
        before = len(kept)
        first.extend(connection, catalog.tables(connection))
        assert len(kept) == before
        with pytest.raises(PublicationLost, match=r"'public\.t'"):
            first.check(connection)


def test_a_locked_table_is_added_later_and_keeps_no_other_out(
    database: Database,
) -> None:
    with watching(database, "patterns") as (connection, first, _):
        execute(
            database,
            [
                "CREATE TABLE a (id int PRIMARY KEY)",
                "CREATE TABLE b (id int PRIMARY KEY)",
            ],
        )
        first.patterns += ["public.a", "public.b"]
        held = (
            "SELECT tablename FROM pg_publication_tables WHERE tablename IN ('a', 'b')"
        )
        with psycopg.connect(database.dsn) as other:
            other.execute("LOCK a IN SHARE UPDATE EXCLUSIVE MODE")
            first.extend(connection, catalog.tables(connection))
            assert database.fetch(held) == [("b",)]
        first.extend(connection, catalog.tables(connection))
        assert len(database.fetch(held)) == 2
        first.check(connection)


def test_a_table_that_gains_a_key_is_told_to_be_read_anew(database: Database) -> None:
    asked: list[Any] = []
    grown: list[Any] = []
    execute(database, ["CREATE TABLE bare (id int)"])
    with watching(
        database, "patterns", reread=True, ask=asked.append, grown=grown.append
    ) as (connection, first, _):
        first.patterns += ["public.bare"]
        first.extend(connection, catalog.tables(connection))
        execute(database, ["ALTER TABLE bare ADD PRIMARY KEY (id)"])
        first.extend(connection, catalog.tables(connection))
        assert asked == [["public.bare"]]
        first.check(connection)
        execute(database, ["ALTER TABLE bare DROP CONSTRAINT bare_pkey"])
        first.extend(connection, catalog.tables(connection))
        first.check(connection)


def test_a_change_that_is_still_being_committed_is_waited_for(
    database: Database,
) -> None:
    with watching(database, "patterns") as (connection, first, kept):
        del first
        with psycopg.connect(database.dsn) as other:
            row = other.execute("SELECT pg_current_xact_id()::text").fetchone()
            assert row is not None
            after = json.loads(json.dumps(kept[-1]))
            kept[-1]["walstream"]["altered"] = {"xid": row[0], "after": after}
            begun = capture(database, KINDS["patterns"][1], [])
            with pytest.raises(Transient):
                begun.resume(connection, kept[-1], {})
        begun.resume(connection, kept[-1], catalog.tables(connection))
