"""The mirror's SQL; that it does what it says: tests/integration/test_mirror_ops.py."""

from consumer.mirror import statement
from consumer.mirror.table_shape import TargetTable
from consumer.pg_catalog import IS

KEYED = TargetTable("s", "t", ("id", "n", "note"), key=("id",))
LOOSE = TargetTable("s", "t", ("a", "b"), key=(), indexed=frozenset({"a"}))


def test_an_insert_gives_way_to_an_update_on_the_key() -> None:
    assert statement.upsert(KEYED, ("id", "n")) == (
        'INSERT INTO "s"."t" AS t ("id", "n") OVERRIDING SYSTEM VALUE VALUES (%s, %s)'
        ' ON CONFLICT ("id") DO UPDATE SET "n" = EXCLUDED."n"'
    )


def test_a_row_that_is_all_key_has_nothing_to_update() -> None:
    assert statement.upsert(KEYED, ("id",)).endswith('ON CONFLICT ("id") DO NOTHING')


def test_without_a_key_an_insert_is_plain() -> None:
    assert "CONFLICT" not in statement.upsert(LOOSE, ("a", "b"))


def test_an_always_identity_is_inserted_but_never_set() -> None:
    shape = TargetTable("s", "t", ("id", "n"), key=("id",), always=frozenset({"n"}))
    assert statement.upsert(shape, ("id", "n")).endswith("DO NOTHING")


def test_a_row_without_columns_can_be_inserted() -> None:
    assert statement.upsert(LOOSE, ()) == 'INSERT INTO "s"."t" DEFAULT VALUES'


def test_what_looks_alike_is_compared_by_text_and_found_by_an_index() -> None:
    where, parameters = statement.matching(LOOSE, [("a", "1"), ("b", None)])
    assert parameters == ["1", "1"]
    text = statement.delete_one(LOOSE, where)
    assert (
        f"""WHERE "a" {IS} %s AND pg_catalog.format('%%s', "a") {IS} %s"""
        ' AND "b" IS NULL' in text
    )
    assert "LIMIT 1 FOR UPDATE" in text


def test_names_cannot_leave_their_quotes() -> None:
    shape = TargetTable('s"', 't"; DROP', ('%s"',), key=('%s"',))
    assert statement.delete_by_key(shape) == (
        'DELETE FROM "s"""."t""; DROP" WHERE "%%s""" OPERATOR(pg_catalog.=) %s'
    )


def test_a_table_is_emptied_alone() -> None:
    assert statement.empty(KEYED) == 'TRUNCATE ONLY "s"."t"'
    parts = TargetTable("s", "t", (), key=(), partitioned=True)
    assert statement.empty(parts) == 'TRUNCATE "s"."t"'
    parent = TargetTable("s", "t", (), key=(), referenced=True)
    assert statement.empty(parent) == 'DELETE FROM ONLY "s"."t"'
