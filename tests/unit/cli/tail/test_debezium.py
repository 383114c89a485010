"""Records of Debezium's formats, as `tail` shows them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.loads.envelope import envelope, with_schema
from tests.support.oracles.debezium import golden
from walstream.cli.tail.content import Content, ContentKind, Format, Json
from walstream.cli.tail.debezium import named
from walstream.cli.tail.parse import read

POSITION = {"walstream-position": b"99/3"}


def shown(
    value: Any, key: Any = None, headers: Mapping[str, bytes] | None = None
) -> Content:
    raw = None if value is None else json.dumps(value).encode()
    return read(raw, None if key is None else json.dumps(key).encode(), headers or {})


@pytest.mark.parametrize("wrapped", [True, False])
def test_an_envelope_has_its_row_and_walstreams_position(wrapped: bool) -> None:
    found = envelope("u", before={"id": 1}, after={"id": 1}, lsn=77, snapshot="true")
    found = with_schema(found, {"id": "int32"}) if wrapped else found
    content = shown(found, headers=POSITION)
    assert (content.format, content.kind) == (Format.DEBEZIUM, ContentKind.UPDATE)
    assert (content.lsn, content.seq_id, content.snapshot) == (99, 3, True)
    assert (content.old, content.new) == ({"id": Json("1")}, {"id": Json("1")})
    assert content.full_table == "public.t"


def test_the_block_of_walstream_tells_it_too() -> None:
    found = envelope(
        "c", after={"id": 1}, order=4, version="walstream 1", sequence='["88","77"]'
    )
    content = shown(found)
    assert (content.lsn, content.seq_id) == (88, 3)


def test_debeziums_own_has_the_rows_lsn() -> None:
    content = shown(envelope("c", after={"id": 1}, order=4, lsn=77))
    assert (content.lsn, content.seq_id) == (77, None)
    none = shown(envelope("r", after={"id": 1}, lsn=None, snapshot="incremental"))
    assert none.lsn is None


def test_a_tombstone_has_the_position_of_its_delete() -> None:
    content = shown(None, {"id": 1}, POSITION)
    assert (content.kind, content.lsn, content.seq_id) == (
        ContentKind.TOMBSTONE,
        99,
        3,
    )


@pytest.mark.parametrize(
    ("topic", "kind", "columns"),
    [
        ("dbz.transaction", ContentKind.TRANSACTION, {"status", "id", "event_count"}),
        ("dbz.message", ContentKind.MESSAGE, {"prefix", "content"}),
        ("__debezium-heartbeat.dbz", ContentKind.HEARTBEAT, {"ts_ms"}),
    ],
)
def test_what_has_no_row_shows_what_it_says(
    topic: str, kind: ContentKind, columns: set[str]
) -> None:
    for record in golden()[topic]:
        key = (record.key or "").encode()
        content = read((record.value or "").encode(), key, {})
        assert (content.format, content.kind) == (Format.DEBEZIUM, kind)
        assert columns <= content.more.keys()


def test_a_row_alone_is_known_by_the_header() -> None:
    row = {"id": 1, "op": "x", "source": "web", "before": None, "after": None}
    content = shown(row, headers=POSITION)
    assert (content.format, content.kind) == (Format.DEBEZIUM_ROW, None)
    assert (content.lsn, content.seq_id) == (99, 3)
    assert content.new is not None
    assert content.new["source"] == "web"
    assert shown({"id": 1}).format is Format.TEXT


@pytest.mark.parametrize(
    ("added", "kind"),
    [
        ({"__op": "c"}, ContentKind.INSERT),
        ({"__op": "d", "__deleted": "true"}, ContentKind.DELETE),
        ({"__deleted": "false"}, None),
    ],
)
def test_added_fields_tell_a_rows_operation(
    added: dict[str, str], kind: ContentKind | None
) -> None:
    content = shown({"id": 1, **added}, headers=POSITION)
    assert content.kind is kind
    assert (content.old is None) is (kind is not ContentKind.DELETE)


def test_a_row_alone_is_known_by_its_schema() -> None:
    payload: dict[str, Any] = {
        "schema": {"type": "struct", "name": "a.s.t.Value"},
        "payload": {"a": 1},
    }
    assert shown(payload).format is Format.DEBEZIUM_ROW
    payload["schema"] = {"type": "struct", "name": "another"}
    assert shown(payload).format is Format.TEXT


def test_columns_of_another_formats_names_do_not_make_a_row_that() -> None:
    row = {"table_name": "t", "col_names": [], "lsn": 1, "seq_id": 2, "op": "Truncate"}
    assert shown(row, headers=POSITION).format is Format.DEBEZIUM_ROW


def test_a_header_that_is_no_position_counts_as_none() -> None:
    assert shown({"id": 1}, headers={"walstream-position": b"x"}).format is Format.TEXT
    with pytest.raises(ValueError, match="no position"):
        named({"walstream-position": b"x"})
