"""A record's key, in each form, with the vectors of docs/formats.md."""

from typing import Any

import pytest

from walstream.errors import HistoryError
from walstream.formats.context import SourceOrigin
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.key import KEY_FORMS, KeyForm, identify_full
from walstream.records.partitioner import crc32, fnv1a
from walstream.row import OMITTED, UNCHANGED, NotSent, Row

ORIGIN = SourceOrigin("127.0.0.1", "test")


def form(name: str, indexes: tuple[int, ...], table: str = "t") -> KeyForm:
    return KEY_FORMS[name](Table("s", table, ("a", "b", "c")), indexes, ORIGIN)


def key(keys: KeyForm, row: Row, kind: Kind = Kind.INSERT) -> bytes:
    op = ReplicationOp(kind, Table("s", "t", ()), 4865, 0)
    if kind is Kind.DELETE:
        op.old = row
    else:
        op.new = row
    return keys.render(op)


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("json", '["1"]', '["1","é\\""]'),
        ("concat", "1", '1é"'),
        ("pkey", "1", '1é"'),
        ("pkeyus", "1", '1_é"'),
        ("tspkey", "st1", 'st1é"'),
        ("tspkeyus", "s_t_1", 's_t_1_é"'),
        ("event", "127.0.0.1:test:t:insert", "127.0.0.1:test:t:insert"),
    ],
)
def test_a_key_is_made_of_the_key_columns(name: str, one: str, two: str) -> None:
    row = ["1", 'é"', None]
    assert key(form(name, (0,)), row) == one.encode()
    assert key(form(name, (0, 1)), row) == two.encode()
    if name != "event":
        assert key(form(name, (0, 1)), row, Kind.DELETE) == two.encode()


@pytest.mark.parametrize("name", sorted(set(KEY_FORMS) - {"event"}))
@pytest.mark.parametrize("indexes", [(0,), (0, 1), (2, 0, 1)])
def test_texts_without_an_escape_are_a_key_with_what_is_around_them(
    name: str, indexes: tuple[int, ...]
) -> None:
    """Rows that are copied as text have their keys made so."""
    made, row = form(name, indexes), ["1", "x", "z"]
    before, between, behind = (text.decode() for text in made.around)
    joined = before + between.join(row[index] for index in indexes) + behind
    assert key(made, row) == joined.encode()
    assert made.columns == indexes
    assert not made.null


def test_a_column_that_was_not_sent_has_the_name_that_the_database_knows() -> None:
    renamed = Table("s", "t", ("a", "b"), (0,), (), ("c", "d"))
    made = KEY_FORMS["json"](renamed, (0,), ORIGIN)
    with pytest.raises(HistoryError, match=r"\['c'\]"):
        key(made, [OMITTED, "x"], Kind.DELETE)


@pytest.mark.parametrize("indexes", [(0,), (0, 1)])
def test_a_value_that_json_cannot_write_is_refused(indexes: tuple[int, ...]) -> None:
    row: list[Any] = [object(), "x", None]
    with pytest.raises(TypeError):
        key(form("json", indexes), row)


def test_an_update_has_the_key_of_its_new_row() -> None:
    op = ReplicationOp(Kind.UPDATE, Table("s", "t", ()), 1, 0, old=["1"], new=["2"])
    assert form("json", (0,)).render(op) == b'["2"]'
    assert form("pkey", (0,)).render(op) == b"2"


@pytest.mark.parametrize("name", ["concat", "pkey"])
def test_a_null_adds_nothing_to_joined_texts(name: str) -> None:
    assert key(form(name, (0, 2)), ["1", "x", None]) == b"1"


@pytest.mark.parametrize("absent", [OMITTED, UNCHANGED])
@pytest.mark.parametrize("name", sorted(set(KEY_FORMS) - {"event"}))
@pytest.mark.parametrize("indexes", [(0,), (1, 0)])
def test_a_key_column_that_was_not_sent_is_told_and_never_written(
    name: str, indexes: tuple[int, ...], absent: NotSent
) -> None:
    with pytest.raises(HistoryError, match=r"table 's\.t', delete at") as error:
        key(form(name, indexes), [absent, "x", None], Kind.DELETE)
    assert "['a']" in str(error.value)
    assert "(0/1301, 0)" in str(error.value)
    assert error.value.repair.sql == 'ALTER TABLE "s"."t" REPLICA IDENTITY FULL;'


def test_a_value_that_a_handler_made_no_text_is_written_as_one() -> None:
    row: list[Any] = [5, "x", None]
    assert key(form("pkeyus", (0, 1)), row) == b"5_x"
    assert key(form("json", (0, 1)), row) == b'[5,"x"]'
    assert key(form("json", (0,)), row) == b"[5]"


@pytest.mark.parametrize(
    ("name", "keyless", "table_key"),
    [
        ("json", '["s.t"]', '["s.t"]'),
        ("concat", "s.t", "s.t"),
        ("pkey", "4865", "s.t"),
        ("pkeyus", "4865", "s.t"),
        ("tspkey", "4865", "s.t"),
        ("tspkeyus", "4865", "s.t"),
        ("event", "127.0.0.1:test:t:insert", "127.0.0.1:test:t:truncate"),
    ],
)
def test_what_has_no_key_columns_has_a_key_of_its_own(
    name: str, keyless: str, table_key: str
) -> None:
    assert key(form(name, ()), ["1", "x", None]) == keyless.encode()
    assert form(name, ()).table_key == table_key.encode()
    assert form(name, (0,)).table_key == table_key.encode()


@pytest.mark.parametrize(
    ("table", "kind", "text", "partition"),
    [
        ("test", Kind.INSERT, b"127.0.0.1:test:test:insert", 3),
        ("test", Kind.UPDATE, b"127.0.0.1:test:test:update", 1),
        ("test", Kind.DELETE, b"127.0.0.1:test:test:delete", 3),
        ("Mixed", Kind.INSERT, b"127.0.0.1:test:Mixed:insert", 0),
        ("types", Kind.INSERT, b"127.0.0.1:test:types:insert", 2),
    ],
)
def test_an_event_key_goes_where_the_older_tool_sent_it(
    table: str, kind: Kind, text: bytes, partition: int
) -> None:
    found = key(form("event", (0,), table), ["1"], kind)
    assert found == text
    assert fnv1a(found, 4) == partition


@pytest.mark.parametrize(("text", "partition"), [("9", 1), ("abc", 2)])
def test_a_joined_key_goes_where_crc32_sends_it(text: str, partition: int) -> None:
    assert crc32(key(form("concat", (0,)), [text]), 4) == partition


def test_a_name_with_a_quote_stays_one_name() -> None:
    written = identify_full('a"b', "t; DROP TABLE x")
    assert written == 'ALTER TABLE "a""b"."t; DROP TABLE x" REPLICA IDENTITY FULL;'
