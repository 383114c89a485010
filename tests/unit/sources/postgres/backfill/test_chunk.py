"""The queries that read chunks, as SQL."""

from walstream.op import Table
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    KeyRange,
    PageRange,
    Span,
    statement,
)

TABLE = Table("s", "root", ('we"ird', "b"))
LEAF = ChunkRelation("s", "le{a}f", 5, TABLE)


def copy(span: Span, relation: ChunkRelation = LEAF) -> str:
    return statement(Chunk(1, relation, span)).as_string(None)


def test_pages_are_half_open_and_the_last_are_open_ended() -> None:
    assert copy(PageRange(0, 8)) == (
        'COPY (SELECT "we""ird", "b" FROM ONLY "s"."le{a}f"'
        " WHERE ctid >= '(0,0)'::tid AND ctid < '(8,0)'::tid) TO STDOUT"
    )
    assert copy(PageRange(8, None)).endswith(" WHERE ctid >= '(8,0)'::tid) TO STDOUT")


def test_key_ranges_are_half_open_and_in_order() -> None:
    columns = ("a", "b")
    first = copy(KeyRange(columns, None, ("1", "it's")))
    middle = copy(KeyRange(columns, ("1", "it's"), ("2", "")))
    last = copy(KeyRange(columns, ("2", ""), None))
    assert """ WHERE ("a", "b") < ('1', 'it''s') ORDER BY "a", "b") TO""" in first
    assert """("a", "b") >= ('1', 'it''s') AND ("a", "b") < ('2', '')""" in middle
    assert """ WHERE ("a", "b") >= ('2', '') ORDER BY""" in last
    assert " WHERE true ORDER BY" in copy(KeyRange(columns, None, None))


def test_a_row_filter_is_a_condition_of_its_own() -> None:
    filtered = ChunkRelation("s", "t", 5, TABLE, "(id > 1) OR (v = '{}')")
    assert copy(PageRange(0, None), filtered).endswith(
        "::tid AND ((id > 1) OR (v = '{}'))) TO STDOUT"
    )
    assert copy(None, filtered).endswith(" WHERE ((id > 1) OR (v = '{}'))) TO STDOUT")


def test_a_view_is_read_with_what_is_below_it() -> None:
    view = ChunkRelation("s", "v", 5, TABLE, alone=False)
    assert copy(None, view) == 'COPY (SELECT "we""ird", "b" FROM "s"."v") TO STDOUT'


def test_a_chunk_is_named_by_table_and_range_but_no_value() -> None:
    assert str(Chunk(3, LEAF, PageRange(4, None))) == (
        'chunk 3: table "s.le{a}f", pages 4 to the end'
    )
    keys = KeyRange(("a",), ("secret",), None, 2, 2)
    assert str(Chunk(3, LEAF, keys)).endswith("key range 2 of 2")
    assert "secret" not in repr(keys)


def test_chunks_are_numbered_in_the_upper_half_of_seq_id() -> None:
    assert Chunk(1, LEAF, None).first_seq_id == 4294967296
