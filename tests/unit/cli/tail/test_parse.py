"""Every format is known by its shape; what is of none is text, or bytes."""

import pytest

from tests.support.oracles import vectors
from walstream.cli.tail.content import Content, ContentKind, Format, Json
from walstream.cli.tail.parse import read
from walstream.row import OMITTED

LSN = 28318112
MORE = {
    "Host": "127.0.0.1",
    "Database": "test",
    "Timestamp": "2026-11-21T06:28:02.019132519Z",
    "UUID": "5bdc360e-91a6-4062-9c7d-94cceabcc7ec",
}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "insert",
            Content(
                Format.OP,
                ContentKind.INSERT,
                "public",
                "stock",
                LSN,
                0,
                new={"id": "1", "n": "9", "note": None},
            ),
        ),
        (
            "update",
            Content(
                Format.OP,
                ContentKind.UPDATE,
                "public",
                "stock",
                LSN,
                1,
                old={"id": "1", "n": "9", "note": None},
                new={"id": "1", "n": "9", "note": 'hé"llo\n'},
            ),
        ),
        (
            "delete",
            Content(
                Format.OP,
                ContentKind.DELETE,
                "public",
                "stock",
                LSN,
                2,
                old={"id": "1", "n": "9", "note": "t"},
            ),
        ),
        (
            "toast",
            Content(
                Format.OP,
                ContentKind.UPDATE,
                "public",
                "t",
                LSN,
                0,
                new={"id": "1", "n": "1", "v": OMITTED},
            ),
        ),
        (
            "key only",
            Content(
                Format.OP,
                ContentKind.DELETE,
                "public",
                "t",
                LSN,
                1,
                old={"id": "1", "n": OMITTED, "v": OMITTED},
            ),
        ),
        (
            "truncate",
            Content(
                Format.OP,
                ContentKind.TRUNCATE,
                "s",
                "t",
                LSN,
                2,
                more={"partitions": Json("4")},
            ),
        ),
        (
            "snapshot",
            Content(
                Format.OP,
                ContentKind.INSERT,
                "s",
                "t",
                28318000,
                4294967303,
                new={"id": "1", "n": "1", "v": "x"},
                snapshot=True,
            ),
        ),
    ],
)
def test_ops(name: str, content: Content) -> None:
    assert read(vectors.OPS[name]) == content


def test_event_insert_and_update_have_the_new_row() -> None:
    for action in ("insert", "update"):
        value = vectors.EVENT % (action.encode(), b'{"a":369223,"b":"a"}')
        assert read(value) == Content(
            Format.EVENT,
            ContentKind(action),
            table="test",
            lsn=28317656,
            new={"a": Json("369223"), "b": "a"},
            more=MORE,
        )


def test_event_delete_has_the_old_row_and_truncate_none() -> None:
    deleted = read(vectors.EVENT % (b"delete", b'{"a":1,"b":null}'))
    assert (deleted.old, deleted.new) == ({"a": Json("1"), "b": None}, None)
    truncated = read(vectors.EVENT % (b"truncate", b"{}"))
    assert (truncated.kind, truncated.old, truncated.new) == (
        ContentKind.TRUNCATE,
        None,
        None,
    )


def test_event_needs_no_uuid() -> None:
    value = vectors.EVENT % (b"insert", b"{}")
    without = value.replace(b'"UUID":"5bdc360e-91a6-4062-9c7d-94cceabcc7ec",', b"")
    assert read(without).format is Format.EVENT


def test_values_of_an_event_are_as_they_were_written() -> None:
    columns = (
        b'{"i":9007199254740993,"f":12.50,"big":123456789012345678901234567890.10,'
        b'"t":true,"j":{"a":[1.0,null,"\\u00e9"]},"l":["x",-0]}'
    )
    content = read(vectors.EVENT % (b"insert", columns))
    assert content.new == {
        "i": Json("9007199254740993"),
        "f": Json("12.50"),
        "big": Json("123456789012345678901234567890.10"),
        "t": Json("true"),
        "j": Json('{"a":[1.0,null,"é"]}'),
        "l": Json('["x",-0]'),
    }


def test_tungsten_has_its_row_on_the_side_of_its_kind() -> None:
    row = {"msg": "Hello Kafka", "id": "2384726"}
    for kind in ("INSERT", "UPDATE", "DELETE"):
        deleted = kind == "DELETE"
        assert read(vectors.TUNGSTEN % kind.encode()) == Content(
            Format.TUNGSTEN,
            ContentKind(kind.lower()),
            "test",
            "msg",
            4865,
            old=row if deleted else None,
            new=None if deleted else row,
            more={"_committime": "2017-07-13 15:30:37.0"},
        )


def test_tungsten_without_what_can_be_switched_off_is_known() -> None:
    content = read(b'{"_seqno":"1","record":{"id":null},"_optype":"INSERT"}')
    assert (content.format, content.full_table) == (Format.TUNGSTEN, None)
    assert content.new == {"id": None}


def test_tungsten_tells_of_transactions() -> None:
    content = read(vectors.TXINFO)
    assert (content.format, content.kind) == (Format.TUNGSTEN, ContentKind.TRANSACTION)
    assert content.more["txinfo_rowcount_msg.msgsub"] == "2"


def test_polled_row_is_an_insert() -> None:
    content = read(vectors.ROW)
    assert (content.format, content.kind) == (Format.ROW, ContentKind.INSERT)
    assert (content.table, content.lsn, content.seq_id) == ("processes", None, None)
    assert content.new == {
        "id": Json("3"),
        "pid": Json("30"),
        "name": "n3",
        "user": "root",
        "command": "/bin/é",
    }
    assert content.more["timestamp"] == Json("1795242889.1057744")


def test_null_is_a_tombstone() -> None:
    assert read(None) == Content(None, ContentKind.TOMBSTONE)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"hello",
        b"null",
        b"[1]",
        b'{"a":1}',
        b'{"op":',
        b"[" * 5000,
        # nearly an op
        vectors.OPS["insert"].replace(b"28318112", b'"28318112"'),
        vectors.OPS["insert"].replace(b'"9",null', b'"9"'),
        vectors.OPS["insert"].replace(b'"9"', b"9"),
        vectors.OPS["insert"].replace(b'"n"', b"1"),
        vectors.OPS["insert"].replace(b'"n"', b'"id"'),  # one would hide the other
        vectors.OPS["insert"].replace(b'"stock"', b"null"),
        vectors.OPS["truncate"].replace(b'"s"', b"7"),
        # nearly an event
        vectors.EVENT % (b"upsert", b"{}"),
        vectors.EVENT % (b"insert", b"[]"),
        vectors.EVENT % (b"insert", b'{"a":1,"a":2}'),
        vectors.EVENT.replace(b"28317656", b'"1"') % (b"insert", b"{}"),
        vectors.EVENT.replace(b"28317656", b"1.5") % (b"insert", b"{}"),
        vectors.EVENT.replace(b"28317656", b"1" * 30) % (b"insert", b"{}"),
        vectors.EVENT % (b"insert", b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}"),
        # nearly the others
        vectors.TUNGSTEN % b"UPSERT",
        vectors.TUNGSTEN.replace(b'"4865"', b'"4_865"') % b"INSERT",
        vectors.TXINFO.replace(b"{", b"[", 0).replace(b'"4865"', b"4865"),
        vectors.ROW.replace(b'"data":{', b'"data":3,"x":{'),
    ],
)
def test_what_is_of_no_known_format_is_text(value: bytes) -> None:
    assert read(value) == Content(Format.TEXT)


def test_what_is_no_text_is_bytes() -> None:
    assert read(b"\xff\x00") == Content(Format.BYTES)


ENVELOPE = (
    '{"before":null,"after":{"id":1,"n":8.50},"source":{"version":"walstream 1",'
    '"connector":"postgresql","name":"app","ts_ms":5,"snapshot":"%s","db":"shop",'
    '"sequence":"[null,\\"9\\"]","ts_us":5000,"ts_ns":5000000,"schema":"public",'
    '"table":"t","txId":771,"lsn":%s,"xmin":null,"origin":null,"origin_lsn":null},'
    '"transaction":null,"op":"%s","ts_ms":6,"ts_us":6000,"ts_ns":6000000}'
)


@pytest.mark.parametrize("head", ["%s", '{"schema":{"type":"struct"},"payload":%s}'])
def test_an_envelope_of_debezium_is_read_with_its_schema_or_without(head: str) -> None:
    found = read((head % (ENVELOPE % ("false", "28317656", "c"))).encode())
    assert found == Content(
        Format.DEBEZIUM,
        ContentKind.INSERT,
        "public",
        "t",
        28317656,
        new={"id": Json("1"), "n": Json("8.50")},
        more={"ts_ms": Json("5"), "txId": Json("771")},
    )


def test_a_backfilled_envelope_may_have_no_lsn() -> None:
    found = read((ENVELOPE % ("incremental", "null", "r")).encode())
    assert (found.kind, found.lsn, found.snapshot) == (ContentKind.INSERT, None, True)
