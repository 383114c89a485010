"""Identities and keys that change under walstream: the right key, or a clear stop."""

# ruff: noqa: S608 - SQL of constants

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from secrets import token_hex
from signal import SIGCONT, SIGSTOP

import orjson
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until, within
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.inspection import look, of, one, repair
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE
from tests.support.selection import shortened
from walstream.finding import Severity
from walstream.lsn import show
from walstream.op import Kind, Table
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.pgoutput import Begin, Insert, Relation, decode
from walstream.pipeline.row_key import KeyHistory
from walstream.row import OMITTED

pytestmark = pytest.mark.same_on_15

LONG = "0123456789" * 600  # toasted: its column is EXTERNAL
FULL = "REPLICA IDENTITY FULL"
NAME_ALONE = b'["public.t"]'  # the key of rows that have none


def rooted(root: str, leaf: str) -> str:
    """Write the SQL of a root and its two leaves, and of their identities."""
    return (
        "CREATE TABLE root (id int, code text NOT NULL, v text, PRIMARY KEY (id))"
        " PARTITION BY RANGE (id);"
        "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (100);"
        "CREATE TABLE other PARTITION OF root FOR VALUES FROM (100) TO (200);"
        "CREATE UNIQUE INDEX root_both ON root (id, code);"
        "CREATE UNIQUE INDEX leaf_code ON leaf (code);"
        "ALTER TABLE leaf ALTER v SET STORAGE EXTERNAL;"
        f"ALTER TABLE root REPLICA IDENTITY {root};"
        f"ALTER TABLE leaf REPLICA IDENTITY {leaf};"
    )


BY_CODE = "USING INDEX leaf_code"
MISMATCHES = {
    "default": rooted("DEFAULT", BY_CODE),
    "index": rooted("USING INDEX root_both", "DEFAULT"),
    "full": rooted("FULL", BY_CODE),
}
CHANGES = {
    "delete": "DELETE FROM root WHERE id = 1",
    "update": "UPDATE root SET code = 'b' WHERE id = 1",
    "key": "UPDATE root SET id = 2, v = 'w' WHERE id = 1",
}


@pytest.mark.parametrize(
    ("tables", "change"),
    [
        ("default", "delete"),
        ("default", "key"),
        ("index", "delete"),
        ("full", "update"),
    ],
)
def test_a_leaf_whose_identity_lacks_the_roots_key_stops_at_its_first_change(
    database: Database, runs: Runs, reader: Reader, tables: str, change: str
) -> None:
    database.execute(MISMATCHES[tables])
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO root VALUES (1, 'a', 'v')")
    assert [record.kind for record in reader.count(1)] == [Kind.INSERT]
    database.execute(CHANGES[change])
    walstream.ends_with(
        3, "public.root", 'ALTER TABLE \\"public\\".\\"leaf\\" REPLICA IDENTITY FULL;'
    )
    assert len(reader.read()) == 1


@pytest.mark.parametrize("tables", MISMATCHES.values(), ids=MISMATCHES)
def test_check_names_a_leaf_whose_identity_lacks_the_roots_key(
    database: Database, tables: str
) -> None:
    database.execute(tables)
    finding = one(look(database.dsn), "leaf-identity", Severity.WARNING)
    assert finding.subject == "table public.root"
    assert "public.leaf" in finding.what
    repair(database, finding.repair)
    assert not of(look(database.dsn), "leaf-identity")


def test_the_printed_alter_cures_what_comes_after_it(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(MISMATCHES["default"])
    repair(database, one(look(database.dsn), "leaf-identity", Severity.WARNING).repair)
    runs(database.dsn).start().streaming()
    database.execute("INSERT INTO root VALUES (1, 'a', 'v')")
    for change in CHANGES.values():
        if "DELETE" not in change:
            database.execute(change)
    database.execute("DELETE FROM root")
    records = reader.count(5)
    assert {record.key for record in records} == {b'["1"]', b'["2"]'}


def test_a_leaf_put_under_full_in_a_backlog_makes_no_false_null(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(rooted("FULL", "DEFAULT"))
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO root VALUES (1, 'a', 'x'), (3, 'c', %s)", LONG)
    reader.count(2)
    assert walstream.terminate() == 0
    database.execute("DELETE FROM root WHERE id = 1")
    database.execute("UPDATE root SET id = 33 WHERE id = 3")
    database.execute(f"ALTER TABLE leaf {FULL}; ALTER TABLE other {FULL}")
    database.execute("UPDATE root SET code = 'd', v = NULL WHERE id = 33")
    database.execute("DELETE FROM root WHERE id = 33")
    walstream.start().streaming()

    *_, deleted, left, came, updated, gone = by_name(reader.count(7))
    assert deleted.op.old == ["1", OMITTED, OMITTED]
    assert left.op.old == ["3", OMITTED, OMITTED]
    # read where the row was when walstream came by: it was gone
    assert came.op.new == ["33", "c", None]
    assert updated.op.old == ["33", "c", LONG]
    assert gone.op.old == ["33", "d", None]


def test_a_toasted_value_is_read_where_a_leaf_was_put_under_full_behind(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(rooted("FULL", "DEFAULT"))
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO root VALUES (3, 'c', %s)", LONG)
    reader.count(1)
    assert walstream.terminate() == 0
    database.execute("UPDATE root SET id = 33 WHERE id = 3")
    database.execute(f"ALTER TABLE leaf {FULL}; ALTER TABLE other {FULL}")
    walstream.start().streaming()
    _, _, came = by_name(reader.count(3))
    assert came.op.new == ["33", "c", LONG]


def by_name(records: Sequence[Record]) -> list[Record]:
    return sorted(records, key=lambda record: record.name)


KEYED = "CREATE TABLE {t} (id int PRIMARY KEY, code int NOT NULL);"
KEYLESS = "CREATE TABLE {t} (id int, code int NOT NULL);"
ROWS = "INSERT INTO {t} VALUES (1, 11), (2, 22)"


@dataclass(frozen=True)
class Change:
    """What becomes of a table under FULL, what is written behind it, and its keys."""

    table: str
    ddl: Sequence[str]  # {t} is the table
    behind: Sequence[str]
    keys: Sequence[str]
    in_backlog: Sequence[str] = ()  # the keys where nobody saw it; (): the same


CHANGED = {
    "renamed": Change(
        KEYED,
        ["ALTER TABLE {t} RENAME id TO uid"],
        [
            "INSERT INTO {t} VALUES (3, 33)",
            "UPDATE {t} SET code = 5 WHERE uid = 1",
            "DELETE FROM {t} WHERE uid = 2",
        ],
        ["3", "1", "2"],
    ),
    "swapped": Change(
        KEYED,
        [
            (
                "BEGIN; ALTER TABLE {t} RENAME id TO x;"
                "ALTER TABLE {t} RENAME code TO id;"
                "ALTER TABLE {t} RENAME x TO code; COMMIT"
            )
        ],
        ["INSERT INTO {t} VALUES (3, 33)", "DELETE FROM {t} WHERE code = 2"],
        ["3", "2"],
    ),
    "added": Change(
        KEYED,
        [
            (
                "ALTER TABLE {t} DROP CONSTRAINT {t}_pkey,"
                " ADD uid int GENERATED ALWAYS AS IDENTITY (START 7) PRIMARY KEY"
            )
        ],
        ["DELETE FROM {t} WHERE id = 2", "INSERT INTO {t} VALUES (3, 33)"],
        ["8", "9"],
    ),
    "dropped": Change(
        KEYED,
        ["ALTER TABLE {t} DROP id, ADD PRIMARY KEY (code)"],
        ["DELETE FROM {t} WHERE code = 22", "INSERT INTO {t} VALUES (33)"],
        ["22", "33"],
    ),
    "recreated": Change(
        KEYED,
        [
            (
                "DROP TABLE {t}; CREATE TABLE {t} (id int, code int PRIMARY KEY);"
                "ALTER TABLE {t} REPLICA IDENTITY FULL"
            )
        ],
        [
            "INSERT INTO {t} VALUES (3, 33)",
            "UPDATE {t} SET id = 5",
            "DELETE FROM {t}",
        ],
        ["33", "33", "33"],
    ),
    "gained": Change(
        KEYLESS,
        ["ALTER TABLE {t} ADD uid int GENERATED ALWAYS AS IDENTITY PRIMARY KEY"],
        ["DELETE FROM {t} WHERE id = 2", "INSERT INTO {t} VALUES (3, 33)"],
        ["2", "3"],
    ),
    # the same columns before and after: nothing in the stream tells. The first row
    # behind it has walstream look, and the key counts from there
    "replaced": Change(
        KEYED,
        ["ALTER TABLE {t} DROP CONSTRAINT {t}_pkey, ADD PRIMARY KEY (code)"],
        [
            "INSERT INTO {t} VALUES (3, 33)",
            "UPDATE {t} SET id = 5 WHERE id = 1",
            "DELETE FROM {t} WHERE id = 2",
        ],
        ["3", "11", "22"],
        in_backlog=["3", "1", "5", "2"],
    ),
    "declared": Change(
        KEYLESS,
        ["ALTER TABLE {t} ADD PRIMARY KEY (id)"],
        ["INSERT INTO {t} VALUES (3, 33)", "DELETE FROM {t} WHERE id = 2"],
        ["{t}", "2"],
        in_backlog=["{t}", "{t}"],
    ),
}
MOVED = (
    "CREATE TABLE {t} (id int PRIMARY KEY, n int, v text, note text);"
    "ALTER TABLE {t} ALTER v SET STORAGE EXTERNAL;"
)
# what becomes of a table before a value is read that its key change left out
READ = {
    "column": "ALTER TABLE {t} RENAME v TO w",
    "key": "ALTER TABLE {t} RENAME id TO uid",
    "table": "ALTER TABLE {t} RENAME TO {t}_now",
    "schema": "ALTER TABLE {t} SET SCHEMA elsewhere",
    "swap": (
        "BEGIN; ALTER TABLE {t} RENAME v TO x; ALTER TABLE {t} RENAME note TO v;"
        "ALTER TABLE {t} RENAME x TO note; COMMIT"
    ),
    "more": "ALTER TABLE {t} ADD c int",
    "replaced": "ALTER TABLE {t} RENAME v TO w; ALTER TABLE {t} ADD v text",
}
GONE = {
    "row": "DELETE FROM {t}",
    "long": "ALTER TABLE {t} DROP v",
    "all": "DROP TABLE {t}",
}
HOW = ["live", "backlog"]


def name_of(change: str, how: str) -> str:
    return f"{change}_{how}"


@dataclass(frozen=True)
class Seen:
    """What reached Kafka, and once more after a rewind, by name."""

    first: Sequence[Record]
    again: Sequence[Record]

    def of(self, table: str) -> list[Record]:
        return [one for one in self.first if one.op.table.name == table]


@pytest.fixture(scope="module")
def seen(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Seen]:
    """Make every change while it streams and while it is stopped; then rewind."""
    names = [(change, how) for change in CHANGED for how in HOW]
    before = (
        "CREATE SCHEMA elsewhere;"
        + "".join(
            CHANGED[change].table.format(t=name_of(change, how))
            + f"ALTER TABLE {name_of(change, how)} {FULL};"
            for change, how in names
        )
        + "".join(MOVED.format(t=f"{name}_moved") for name in [*READ, *GONE])
        + "CREATE PUBLICATION mine FOR ALL TABLES"
    )
    options = {"publication": "mine", "tables": [], "retain": "64MiB"}
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("keys"),
        before=before,
        source=options,
    ) as stream:
        execute = stream.database.execute
        for how in HOW:
            if how == "backlog":
                assert stream.walstream.terminate() == 0
            for change in CHANGED:
                execute(ROWS.format(t=name_of(change, how)))
            if how == "live":
                stream.reader.until(lambda found: len(found) >= 2 * len(CHANGED))
            for change, one in CHANGED.items():
                table = name_of(change, how)
                row, *rest = one.behind
                for statement in [*one.ddl, row]:
                    execute(statement.format(t=table))
                if how == "live":
                    until_rows(stream.reader, table, 3)
                for statement in rest:
                    execute(statement.format(t=table))
        for name, ddl in {**READ, **GONE}.items():
            table = f"{name}_moved"
            execute(f"INSERT INTO {table} VALUES (1, 1, %s, 'short')", LONG)
            execute(f"UPDATE {table} SET id = 2")
            execute(ddl.format(t=table))
        execute("CREATE TABLE last (id int PRIMARY KEY); INSERT INTO last VALUES (1)")
        stream.walstream.start().streaming()
        first = until_last(stream, 1)
        assert stream.walstream.terminate() == 0
        to = show(first[0].op.lsn)
        configuration = stream.walstream.configuration
        verb(configuration, "positions", "rewind", SOURCE, "--to", to, "--yes")
        stream.walstream.start().streaming()
        both = until_last(stream, 2)
        yield Seen(both[::2], both[1::2])


def until_rows(reader: Reader, table: str, count: int) -> None:
    reader.until(lambda _: len(reader.of(table)) >= count)


def until_last(stream: Stream, times: int) -> list[Record]:
    """Read up to the row that was written last, whose topic is another one."""
    reader = stream.reader
    reader.until(lambda _: len(reader.of("last")) == times)
    return by_name(reader.read())


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("change", CHANGED)
def test_a_key_that_changes_under_full_counts_from_its_first_row_on(
    seen: Seen, change: str, how: str
) -> None:
    table, one = name_of(change, how), CHANGED[change]
    whole = f"public.{table}"
    first = ["1", "2"] if one.table == KEYED else [whole] * 2
    behind = one.in_backlog if how == "backlog" and one.in_backlog else one.keys
    keys = [*first, *(key.format(t=whole) for key in behind)]
    assert [orjson.loads(record.key) for record in seen.of(table)] == [
        [key] for key in keys
    ]


def test_a_replay_names_and_keys_and_splits_as_the_first_time(seen: Seen) -> None:
    assert len(seen.first) > 8 * len(CHANGED)
    for first, again in zip(seen.first, seen.again, strict=True):
        assert (first.name, first.key) == (again.name, again.key)
        if not first.op.table.name.endswith("_moved"):
            assert first.value == again.value


@pytest.mark.parametrize("rename", READ)
def test_a_toasted_value_is_read_from_what_was_renamed_since(
    seen: Seen, rename: str
) -> None:
    _, deleted, came = seen.of(f"{rename}_moved")
    assert (deleted.kind, came.kind) == (Kind.DELETE, Kind.INSERT)
    assert came.op.new == ["2", "1", LONG, "short"]


@pytest.mark.parametrize("gone", GONE)
def test_a_toasted_value_that_is_gone_is_null(seen: Seen, gone: str) -> None:
    _, _, came, *_ = seen.of(f"{gone}_moved")
    assert came.op.new == ["2", "1", None, "short"]


FULL_TABLE = f"{KEYED} ALTER TABLE {{t}} {FULL};".format(t="t")


def test_a_key_that_was_renamed_twice_behind_walstream_stops_until_it_is_named_so(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(FULL_TABLE)
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    database.execute("ALTER TABLE t RENAME id TO uid")
    database.execute(ROWS.format(t="t"))
    database.execute("ALTER TABLE t RENAME uid TO key")
    walstream.start().ends_with(3, "public.t", "uid, code", "positions reset")
    database.execute("ALTER TABLE t RENAME key TO uid")
    walstream.start().streaming()
    assert [record.key for record in reader.count(2)] == [b'["1"]', b'["2"]']


UPDATED = "UPDATE t SET code = 7 WHERE id = 1"
REPLACED = "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (code)"


@pytest.mark.parametrize(
    ("statements", "kind"),
    [
        ([f"BEGIN; DELETE FROM t WHERE id = 1; {REPLACED}; COMMIT"], Kind.DELETE),
        (["DELETE FROM t WHERE id = 1", REPLACED], Kind.DELETE),
        (
            ["DELETE FROM t WHERE id = 1", "ALTER TABLE t DROP CONSTRAINT t_pkey"],
            Kind.DELETE,
        ),
        (
            [f"BEGIN; {UPDATED}; ALTER TABLE t RENAME id TO uid; COMMIT"],
            Kind.UPDATE,
        ),
    ],
    ids=["replaced in it", "replaced behind", "dropped behind", "renamed in it"],
)
def test_a_key_that_changes_behind_a_row_is_not_that_rows(
    database: Database,
    runs: Runs,
    reader: Reader,
    statements: Sequence[str],
    kind: Kind,
) -> None:
    database.execute(FULL_TABLE)
    walstream = runs(database.dsn).start().streaming()
    database.execute(ROWS.format(t="t"))
    reader.count(2)
    worker = walstream.worker_pid()
    os.kill(worker, SIGSTOP)
    try:
        database.execute("ANALYZE t")  # has the table described again
        for statement in statements:
            database.execute(statement)
    finally:
        os.kill(worker, SIGCONT)
    *_, changed = by_name(reader.count(3))
    assert (changed.kind, changed.key) == (kind, b'["1"]')


@contextmanager
def role_of(database: Database) -> Iterator[str]:
    """Make a role that may stream, and no superuser."""
    role = f"streams_{token_hex(4)}"
    database.execute(
        f"CREATE ROLE {role} LOGIN REPLICATION;"
        f'GRANT CREATE ON DATABASE "{database.name}" TO {role};'
        f"GRANT USAGE, CREATE ON SCHEMA public TO {role}"
    )
    try:
        yield role
    finally:
        database.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


def test_a_key_that_the_stream_told_counts_under_full_in_a_backlog(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """Nobody looked it up: under DEFAULT the stream itself tells the key."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, code int NOT NULL)")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 10)")
    database.execute(
        "ALTER TABLE t DROP CONSTRAINT t_pkey; ALTER TABLE t ADD PRIMARY KEY (code)"
    )
    database.execute("INSERT INTO t VALUES (2, 20)")
    reader.count(2)
    walstream.kill()
    database.execute(f"ALTER TABLE t {FULL}")
    database.execute("INSERT INTO t VALUES (3, 30); DELETE FROM t WHERE code = 20")
    walstream.start().streaming()
    records = reader.until(lambda found: any(one.kind is Kind.DELETE for one in found))
    keys = [orjson.loads(one.key) for one in records]
    assert keys[0] == ["1"]
    assert {tuple(key) for key in keys[1:]} <= {("1",), ("20",), ("30",)}
    assert keys[-2:] == [["30"], ["20"]]


def test_rows_behind_a_key_that_the_stream_told_is_gone_have_none(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """Equal values of what was the key are rows of their own: no reader folds them."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, code int)")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 10)")
    database.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
    database.execute("INSERT INTO t VALUES (1, 20)")
    reader.count(2)
    walstream.kill()
    database.execute(f"ALTER TABLE t {FULL}")
    database.execute("INSERT INTO t VALUES (1, 30)")
    walstream.start().streaming()
    records = reader.until(lambda found: len({one.name for one in found}) == 3)
    keys = [key for _, key in sorted({(one.name, one.key) for one in records})]
    assert keys == [b'["1"]', NAME_ALONE, NAME_ALONE]
    walstream.close()


@pytest.mark.parametrize(
    "end", shortened(["another key", "the table goes"], "another key")
)
def test_rows_between_a_dropped_key_column_and_the_next_key_have_none(
    database: Database, runs: Runs, reader: Reader, end: str
) -> None:
    """All of it while walstream is down: the catalog knows the columns' numbers."""
    database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, code int); ALTER TABLE t {FULL}"
    )
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 10)")
    reader.count(1)
    walstream.close()
    database.execute("ALTER TABLE t DROP COLUMN id")
    database.execute("INSERT INTO t VALUES (20)")
    if end == "another key":
        database.execute("ALTER TABLE t ADD COLUMN n serial PRIMARY KEY")
    else:
        database.execute("DROP TABLE t")
    walstream.start().streaming()
    # behind the kill the first may come again
    records = reader.until(lambda found: len({one.name for one in found}) == 2)
    keys = [key for _, key in sorted({(one.name, one.key) for one in records})]
    assert keys == [b'["1"]', NAME_ALONE]
    walstream.close()


@pytest.mark.parametrize("key", shortened(["in no list", "generated"], "generated"))
def test_a_key_that_is_not_sent_is_no_key_and_stops_nothing(
    database: Database, runs: Runs, reader: Reader, key: str
) -> None:
    generated = " GENERATED ALWAYS AS (code * 2) STORED" if key == "generated" else ""
    database.execute(
        f"CREATE TABLE t (id int{generated}, code int); ALTER TABLE t {FULL};"
        "ALTER TABLE t ADD PRIMARY KEY (id);"
        "CREATE PUBLICATION walstream FOR TABLE t"
    )
    columns, row = "code", "10"
    if key == "in no list":
        database.execute(
            "ALTER PUBLICATION walstream SET TABLE t (code);"
            "ALTER PUBLICATION walstream SET (publish = 'insert')"
        )
        columns, row = "id, code", "20, 10"
    walstream = runs(database.dsn).start().streaming()
    database.execute(f"INSERT INTO t ({columns}) VALUES ({row})")
    assert [one.key for one in reader.count(1)] == [NAME_ALONE]
    walstream.close()


def test_a_policy_that_hides_the_row_of_a_key_change_stops(
    database: Database, runs: Runs, reader: Reader
) -> None:
    with role_of(database) as role:
        database.execute(
            f"{MOVED.format(t='t')} ALTER TABLE t OWNER TO {role};"
            "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
        )
        dsn = make_conninfo(database.dsn, user=role)
        walstream = runs(dsn).start().streaming()
        database.execute("INSERT INTO t VALUES (1, 1, %s, '')", LONG)
        reader.count(1)
        database.execute("UPDATE t SET id = 2")
        cure = f"ALTER ROLE {role} BYPASSRLS;"
        walstream.ends_with(4, "public.t", "row-level security", cure)
        database.execute(cure)
        walstream.start().streaming()
        *_, came = by_name(reader.count(3))
        assert came.op.new == ["2", "1", LONG, ""]
        walstream.close()


def test_a_toasted_value_whose_column_cannot_be_told_stops_until_it_can(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(MOVED.format(t="t") + "ALTER TABLE t DROP n, DROP note")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1, %s)", LONG)
    reader.count(1)
    assert walstream.terminate() == 0
    database.execute("UPDATE t SET id = 2")
    database.execute("ALTER TABLE t RENAME v TO w")
    walstream.start().ends_with(3, "public.t", "did not send v", "id, w")
    database.execute("ALTER TABLE t RENAME w TO v")
    walstream.start().streaming()
    *_, came = by_name(reader.count(3))
    assert came.op.new == ["2", LONG]


FILTERED = "CREATE PUBLICATION mine FOR TABLE t WHERE (id > 1)"


def test_a_toasted_value_of_a_row_that_a_filter_lets_in_is_read(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """PostgreSQL makes an Insert of the update, and leaves the value out of it."""
    database.execute(MOVED.format(t="t") + FILTERED)
    source = {"publication": "mine", "tables": []}
    walstream = runs(database.dsn, source=source).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 1, %s, 'short')", LONG)
    database.execute("UPDATE t SET id = 2")
    (came,) = reader.count(1)
    assert came.kind == Kind.INSERT
    assert came.op.new == ["2", "1", LONG, "short"]
    assert walstream.terminate() == 0


def test_a_row_that_a_filter_lets_in_without_its_toasted_value_may_stop(
    database: Database, runs: Runs
) -> None:
    database.execute(MOVED.format(t="t") + FILTERED)
    source = {"publication": "mine", "tables": [], "toast_on_key_change": "stop"}
    walstream = runs(database.dsn, source=source).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 1, %s, 'short')", LONG)
    database.execute("UPDATE t SET id = 2")
    walstream.ends_with(3, "public.t", "came past the row filter", "v")


@pytest.mark.parametrize("key", ["json", "concat"])
def test_a_key_column_that_was_not_sent_stops(
    database: Database, runs: Runs, reader: Reader, key: str, topic_prefix: str
) -> None:
    database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, org int NOT NULL);ALTER TABLE t {FULL}"
    )
    mapping = {"public.t": {"name": f"{topic_prefix}t", "partition_key": ["org"]}}
    sink = {"topics": mapping, "key": key}
    walstream = runs(database.dsn, sink=sink).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 1)")
    reader.count(1)
    database.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    database.execute("DELETE FROM t")
    cure = f'ALTER TABLE \\"public\\".\\"t\\" {FULL};'
    walstream.ends_with(3, "public.t", "delete at", "org", cure)
    database.execute(f"ALTER TABLE t {FULL}")
    walstream.start().ends_with(3, "public.t", "delete at", "org", "positions reset")
    assert len(reader.read()) == 1


def test_a_look_up_without_a_free_session_waits_and_is_told_once(
    database: Database, runs: Runs, reader: Reader
) -> None:
    with role_of(database) as role:
        database.execute(f"{FULL_TABLE} ALTER TABLE t OWNER TO {role}")
        walstream = runs(make_conninfo(database.dsn, user=role)).start().streaming()
        database.execute("INSERT INTO t VALUES (1, 1)")
        reader.count(1)
        open_now = (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
            f"'client backend' AND usename = '{role}'"
        )
        wait_until(lambda: database.fetch(open_now) == [(0,)], 10, "none is kept")
        database.execute(f"ALTER ROLE {role} CONNECTION LIMIT 0")
        database.execute("ANALYZE t")
        database.execute("INSERT INTO t VALUES (2, 2)")
        waited = "the keys of a table cannot be read now"
        walstream.until(waited)
        again = f"SELECT count(*) FROM pg_stat_replication WHERE usename = '{role}'"
        # three askings later it still streams
        assert not within(lambda: database.fetch(again) != [(1,)], 4)
        database.execute(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        assert [record.key for record in reader.count(2)] == [b'["1"]', b'["2"]']
        assert len(walstream.said(waited)) == 1
        assert walstream.starts == 1
        assert walstream.terminate() == 0


def test_many_look_ups_share_a_session_that_ends_soon(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """Each TRUNCATE describes its table anew, and under FULL its key is looked up."""
    rounds = 60
    database.execute(FULL_TABLE)
    walstream = runs(database.dsn).start().streaming()
    walstream.terminate()
    for number in range(rounds):
        row = f"INSERT INTO t VALUES ({number}, 1)"
        database.execute(f"BEGIN; TRUNCATE t; {row}; COMMIT")
    opened = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"
    before = database.fetch(opened)[0][0]
    with walstream:
        reader.until(lambda some: len(some) >= 2 * rounds)
        assert walstream.terminate() == 0
    # those of the start and of the test's own look are among them
    assert 0 < database.fetch(opened)[0][0] - before < rounds


def test_analyze_has_a_table_described_again_and_no_target_grows(
    database: Database,
) -> None:
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, v text);CREATE PUBLICATION p FOR TABLE t"
    )
    slot = f"described_{token_hex(4)}"
    database.fetch("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", slot)
    for number in range(30):
        database.execute("INSERT INTO t VALUES (%s, 'v')", number)
        database.execute("ANALYZE t")
    frames = database.fetch(
        "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'p')",
        slot,
    )
    tables: set[Table] = set()  # what sinks keep is by these
    assembler, described, rows = Assembler(0), 0, 0
    for (frame,) in frames:
        message = decode(frame)
        if isinstance(message, Begin):
            assembler.begin(message)
        elif isinstance(message, Relation):
            described += 1
            assembler.describe(message, KeyHistory([]))
        elif isinstance(message, Insert):
            rows += 1
            tables.add(assembler.row(message, 0).table)
    assert (described, rows) == (30, 30)
    assert len(tables) == 1


AWAY = (
    "ALTER TABLE t DROP CONSTRAINT t_pkey; INSERT INTO t VALUES (2, 'b');"
    "ALTER TABLE t ADD PRIMARY KEY (id)"
)


@pytest.mark.parametrize("rule", shortened(["stop", "reread"], "reread"))
def test_rows_that_came_while_the_key_was_away_are_to_be_read_anew(
    database: Database, runs: Runs, reader: Reader, rule: str
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source = {"on_publication_change": rule}
    walstream = runs(database.dsn, source=source).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 'a')")
    database.execute(AWAY)
    assert [one.key for one in reader.count(2)] == [b'["1"]', b'["public.t"]']
    database.execute("DELETE FROM t WHERE id = 2")
    database.execute("INSERT INTO t VALUES (3, 'c')")
    if rule == "reread":
        reader.until(lambda records: len(records) == 7, 30)
        emptied, *read = reader.records[4:]
        assert emptied.kind is Kind.TRUNCATE
        assert [one.key for one in read] == [b'["1"]', b'["3"]']
        return
    walstream.until("rows sent before have none")
    (said,) = walstream.said("rows sent before have none")
    assert said["repair"] == f"walstream backfill public.t --replace --source {SOURCE}"
    assert reader.count(4)[2].key == b'["2"]'
    assert walstream.terminate() == 0
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (4, 'd')")
    reader.count(5)
    assert not walstream.said("rows sent before have none")


TWO_KEYS = f"""
CREATE TABLE t (id int PRIMARY KEY, code text NOT NULL UNIQUE, doc text NOT NULL);
ALTER TABLE t ALTER doc SET STORAGE EXTERNAL;
INSERT INTO t VALUES (1, 'a', '{LONG}');
"""


@pytest.mark.parametrize("key", ["(code)", "(code) INCLUDE (id)"])
def test_a_toasted_value_is_found_by_the_key_that_replaced_the_former(
    database: Database, runs: Runs, reader: Reader, key: str
) -> None:
    """No Delete of the row follows: what was its key changes as any column does."""
    database.execute(TWO_KEYS)
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    database.execute("UPDATE t SET id = 2")
    database.execute(f"ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY {key}")
    database.execute("UPDATE t SET id = 3")
    walstream.start().streaming()
    records = reader.until(lambda found: len(found) >= 3)
    inserted = next(one for one in records if one.kind is Kind.INSERT)
    assert inserted.new == {"id": "2", "code": "a", "doc": LONG}


_BY_CODE = "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (code)"


@pytest.mark.parametrize(
    ("statements", "told_apart"),
    [
        # the former key's value went to another row, then the present one's
        (
            [_BY_CODE, "UPDATE t SET id = 3", "INSERT INTO t VALUES (2, 'b', 'other')"],
            "id = 20",
        ),
        (
            [
                "UPDATE t SET code = 'c'",
                "INSERT INTO t VALUES (9, 'a', 'other')",
                _BY_CODE,
            ],
            "code = 'z'",
        ),
    ],
)
def test_a_toasted_value_of_one_of_two_rows_stops_until_it_can_be_told(
    database: Database,
    runs: Runs,
    reader: Reader,
    statements: Sequence[str],
    told_apart: str,
) -> None:
    database.execute(TWO_KEYS)
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    for statement in ("UPDATE t SET id = 2", *statements):
        database.execute(statement)
    walstream.start().ends_with(3, "several rows have its (id) or (code)")
    assert not [one for one in reader.read() if one.kind is Kind.INSERT]
    database.execute(f"UPDATE t SET {told_apart} WHERE doc = 'other'")
    walstream.start().streaming()
    records = reader.until(lambda found: len(found) >= 3)
    inserted = next(one for one in records if one.kind is Kind.INSERT)
    assert inserted.new == {"id": "2", "code": "a", "doc": LONG}


@pytest.mark.parametrize("of", ["apart.pair", "apart.paired", "apart.pair[]"])
def test_a_toasted_value_is_found_by_a_key_of_a_composite_type(
    database: Database, runs: Runs, reader: Reader, of: str
) -> None:
    value = "ROW({}, 'y,')::apart.pair"
    if of.endswith("[]"):
        value = f"ARRAY[{value}]"
    database.execute(
        "CREATE SCHEMA apart; CREATE TYPE apart.pair AS (a int, b text);"
        "CREATE DOMAIN apart.paired AS apart.pair;"
        f"CREATE TABLE t (id {of} PRIMARY KEY, doc text);"
        "ALTER TABLE t ALTER doc SET STORAGE EXTERNAL;"
        f"INSERT INTO t VALUES ({value.format(1)}, '{LONG}')"
    )
    runs(database.dsn).start().streaming()
    database.execute(f"UPDATE t SET id = {value.format(2)}")
    records = reader.until(lambda found: len(found) >= 2)
    (inserted,) = [one for one in records if one.kind is Kind.INSERT]
    assert (inserted.new or {})["doc"] == LONG
