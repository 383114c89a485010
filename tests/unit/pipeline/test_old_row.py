"""What the stream tells of a root's leaves."""

from walstream.pipeline.old_row import Blind, Leaves, unidentified, unknown_key
from walstream.pipeline.pgoutput import Column, Relation
from walstream.records.key import identify_full


def relation(oid: int, name: str, identity: str, *columns: str) -> Relation:
    made = [
        Column(text.endswith("*") or identity == "f", text.rstrip("*"), 25, -1)
        for text in columns
    ]
    return Relation(oid, "public", name, identity, made)


ROOT = relation(1, "root", "d", "id*", "code")


def test_a_root_is_whole_while_all_its_leaves_are() -> None:
    leaves = Leaves()
    assert leaves.whole(1)
    leaves.meet(1, relation(2, "a", "f", "id", "code"))
    leaves.meet(1, relation(3, "b", "d", "id*", "code"))
    assert not leaves.whole(1)
    leaves.meet(1, relation(3, "b", "f", "id", "code"))
    assert leaves.whole(1)


def test_who_lacks_what_is_needed_is_named() -> None:
    leaves = Leaves()
    leaves.meet(1, relation(2, "by_code", "i", "id", "code*"))
    leaves.meet(1, relation(3, "whole", "f", "id", "code"))
    leaves.meet(1, relation(4, "nothing", "n", "id", "code"))
    found = leaves.blind(ROOT, ["id"], ["id"])
    assert list(found) == [Blind("public", "by_code", ("id",))]
    assert [one.name for one in leaves.blind(ROOT, ["code"], ["id"])] == ["root"]


def test_the_error_names_table_op_column_and_each_alter() -> None:
    blind = [Blind("public", "a", ("id",)), Blind("odd", 'b"c', ("id", "org"))]
    error = unidentified("update at (0/10, 3)", ROOT, blind, None)
    assert error.exit_code == 3
    for text in ("'public.root'", "update at (0/10, 3)", "['id', 'org']", "public.a"):
        assert text in str(error)
    assert error.repair.sql.splitlines() == [
        'ALTER TABLE "public"."a" REPLICA IDENTITY FULL;',
        'ALTER TABLE "odd"."b""c" REPLICA IDENTITY FULL;',
    ]
    assert "positions reset" in error.repair.then


def test_without_a_culprit_the_table_itself_is_named() -> None:
    error = unidentified("delete at (0/10, 3)", ROOT, (), "id")
    assert error.repair.sql == identify_full("public", "root")
    assert "column 'id' of its key was not sent" in str(error)


def test_the_error_of_an_unknown_key_names_the_columns_of_then() -> None:
    error = unknown_key(ROOT, 16)
    assert "'public.root'" in str(error)
    assert "id, code" in error.hint
