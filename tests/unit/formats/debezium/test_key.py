"""Keys of records, whose bytes decide the partition."""

import json
from typing import Any

import pytest

from walstream.errors import HistoryError, WalstreamError
from walstream.formats.debezium import DebeziumKey, DebeziumOptions, TableColumns
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED

_TABLE = Table("public", "pk2", ("a", "B c", "v"), (0, 1), (23, 25, 25))
_OPTIONS = DebeziumOptions("app")


def key(
    table: Table = _TABLE,
    options: DebeziumOptions = _OPTIONS,
    indexes: tuple[int, ...] | None = None,
) -> DebeziumKey:
    chosen = table.key if indexes is None else indexes
    return DebeziumKey(TableColumns(table, options), options, chosen)


def insert(*row: str | None) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, _TABLE, 5, 0, new=row)


def test_a_key_is_an_object_of_its_columns() -> None:
    assert key().render(insert("1", "x y", "v")) == b'{"a":1,"B c":"x y"}'
    delete = ReplicationOp(
        Kind.DELETE, _TABLE, 5, 0, old=["1", "x y", OMITTED], absent=True
    )
    assert key().render(delete) == b'{"a":1,"B c":"x y"}'


def test_control_characters_and_others_are_escaped_as_by_jackson() -> None:
    found = key().render(insert("1", "\x1f\x0b\U0001f600é", None))
    assert found == '{"a":1,"B c":"\\u001F\\u000B\\uD83D\\uDE00é"}'.encode()


def test_with_schemas_it_has_its_own() -> None:
    found = key(options=DebeziumOptions("app", schemas=True)).render(
        insert("1", "x", "v")
    )
    assert found == (
        b'{"schema":{"type":"struct","fields":[{"type":"int32","optional":false,'
        b'"field":"a"},{"type":"string","optional":false,"field":"B c"}],'
        b'"optional":false,"name":"app.public.pk2.Key"},"payload":{"a":1,"B c":"x"}}'
    )


def test_without_columns_it_is_null_and_so_is_a_truncates() -> None:
    assert key(indexes=()).render(insert("1", "x", "v")) is None
    assert key().render(ReplicationOp(Kind.TRUNCATE, _TABLE, 5, 0)) is None


def test_other_columns_may_be_null() -> None:
    assert key(indexes=(2,)).render(insert("1", "x", None)) == b'{"v":null}'
    schema = key(indexes=(2,)).schema
    assert schema.fields[0][1].optional


def test_an_update_that_is_not_split_has_the_key_of_its_new_row() -> None:
    update = ReplicationOp(Kind.UPDATE, _TABLE, 5, 0, ["1", "x", "v"], ["2", "x", "v"])
    assert key().render(update) == b'{"a":2,"B c":"x"}'


def test_a_moved_key_names_the_other_one_in_a_header() -> None:
    update = ReplicationOp(
        Kind.UPDATE, _TABLE, 5, 0, ["1", "x y", OMITTED], ["10", "x y", "v"], True, True
    )
    deleted, inserted = key().change_headers(update)
    assert deleted == ("__debezium.newkey", b'{"a":10,"B c":"x y"}')
    assert inserted == ("__debezium.oldkey", b'{"a":1,"B c":"x y"}')


def test_fields_are_adjusted_in_keys_too() -> None:
    options = DebeziumOptions("a-pp", schemas=True, adjust="avro", adjust_fields="avro")
    found = json.loads(key(options=options).render(insert("1", "x", "v")) or b"")
    assert found["payload"] == {"a": 1, "B_c": "x"}
    assert found["schema"]["name"] == "a_pp.public.pk2.Key"


def test_a_column_that_was_not_sent_stops_with_its_name() -> None:
    delete = ReplicationOp(
        Kind.DELETE, _TABLE, 5, 2, old=["1", "x", OMITTED], absent=True
    )
    with pytest.raises(HistoryError, match=r"delete at \(0/5, 2\): column 'v'"):
        key(indexes=(2,)).render(delete)


def test_a_text_of_another_type_is_refused_as_in_a_row() -> None:
    with pytest.raises(WalstreamError, match=r"'a' of table 'public\.pk2'"):
        key().render(insert("x", "y", "z"))


def test_a_column_without_a_form_can_be_no_key() -> None:
    table = Table("s", "t", ("l",), (0,), (628,))
    with pytest.raises(HistoryError, match=r"'l' of the key of table 's\.t'"):
        key(table)
    assert key(table, DebeziumOptions("app", unknown=True)) is not None


def test_what_is_not_a_text_is_refused_by_its_column() -> None:
    row: list[Any] = [5]  # a handler's
    table = Table("s", "t", ("id",), (0,), (23,))
    columns = TableColumns(table, DebeziumOptions("app"))
    key = DebeziumKey(columns, DebeziumOptions("app"), (0,))
    with pytest.raises(WalstreamError, match=r"column 'id'.*: no text"):
        key.render(ReplicationOp(Kind.INSERT, table, 5, 0, None, row))
