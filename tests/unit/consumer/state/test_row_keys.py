"""What names a row, and keys that name none."""

import pytest

from consumer.state.row_keys import RowKeys, RowName, WholeRowsError, rows_of
from tests.support.loads.envelope import envelope, read, record
from tests.support.loads.op import make
from walstream.op import Kind

T = "shop.docs"
COLUMNS = ["id", "region", "body"]


def test_a_table_has_a_schema_and_a_key() -> None:
    assert RowKeys({T: "id"}).of(T) == ("id",)
    assert RowKeys({T: ["id", "region"]}).of(T) == ("id", "region")
    assert not RowKeys(None)
    with pytest.raises(ValueError, match=r"schema\.table"):
        RowKeys({"docs": "id"})
    with pytest.raises(ValueError, match="no key of"):
        RowKeys({T: []})


def test_an_update_of_a_key_has_two_rows() -> None:
    op = make(Kind.UPDATE, T, old={"id": "1"}, new={"id": "2"}, columns=COLUMNS)
    assert rows_of(op, ("id",)) == (RowName(T, '["1"]'), RowName(T, '["2"]'))


def test_texts_that_look_alike_are_other_keys() -> None:
    one, other = (
        rows_of(make(Kind.INSERT, T, new=row), ("id", "region")).after
        for row in ({"id": "1", "region": "23"}, {"id": "12", "region": "3"})
    )
    assert one != other


def test_a_long_key_has_a_digest() -> None:
    one, other = (
        rows_of(make(Kind.INSERT, T, new={"id": "x" * 3000 + end}), ("id",)).after
        for end in "ab"
    )
    assert one is not None
    assert len(one.key) < 100
    assert one != other


@pytest.mark.parametrize("key", [("id",), ("id", "region", "body"), ("body",)])
def test_a_key_that_is_not_the_replica_identity_is_refused(
    key: tuple[str, ...],
) -> None:
    op = make(Kind.DELETE, T, old={"id": "1", "region": "eu"}, columns=COLUMNS)
    with pytest.raises(WholeRowsError, match="id, region"):
        rows_of(op, key)
    assert rows_of(op, ("id", "region")).after is None


def test_an_unknown_column_is_refused() -> None:
    op = make(Kind.INSERT, T, new={"id": "1"})
    with pytest.raises(WholeRowsError, match="no column nr"):
        rows_of(op, ("nr",))


def test_debeziums_key_names_its_columns() -> None:
    op = read(record(envelope("u", after={"id": 1, "body": "b"}), {"id": 1}))
    table = op.table.full_name
    assert rows_of(op, ("id",)) == (RowName(table, '["1"]'), RowName(table, '["1"]'))
    with pytest.raises(WholeRowsError, match="have id"):
        rows_of(op, ("body",))


def test_an_old_row_of_debezium_names_no_row() -> None:
    """What was not sent of it may be null, or empty."""
    before = {"id": 0, "body": ""}
    value = envelope("u", before=before, after={"id": 1, "body": "b"})
    op = read(record(value, {"id": 1}))
    rows = rows_of(op, ("id",))
    assert rows.before == rows.after


def test_which_tables_are_kept_is_told() -> None:
    assert RowKeys({T: "id"}).tables == {T: ("id",)}


def test_a_truncate_is_of_no_row() -> None:
    assert rows_of(make(Kind.TRUNCATE, T, columns=COLUMNS), ("id",)) == (None, None)


def test_a_row_without_its_key_is_refused() -> None:
    op = make(Kind.INSERT, T, new={"id": "1"}, columns=COLUMNS)
    with pytest.raises(WholeRowsError, match="no value of region") as refused:
        rows_of(op, ("region",))
    assert "replica identity" in refused.value.hint


@pytest.mark.parametrize(("length", "whole"), [(196, True), (197, False)])
def test_a_key_is_itself_up_to_two_hundred_characters(
    length: int, *, whole: bool
) -> None:
    text = "ä" * length
    after = rows_of(make(Kind.INSERT, T, new={"id": text}), ("id",)).after
    assert after is not None
    assert (after.key == f'["{text}"]') is whole
