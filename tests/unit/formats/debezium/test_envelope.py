"""Envelopes of each kind of change."""

import json

import pytest

from walstream.formats.debezium import (
    BACKFILL,
    DebeziumOptions,
    EnvelopeEncoder,
    SinkTurn,
)
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table, snapshot_truncate

_TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
_OPTIONS = DebeziumOptions("app", "db")


def encoder(options: DebeziumOptions = _OPTIONS, *how: str) -> EnvelopeEncoder:
    turn = SinkTurn()
    turn.begin(1795404370543577046)
    return EnvelopeEncoder(_TABLE, options, turn, *how)


def op(kind: Kind, lsn: int = 99, seq_id: int = 0, **rows: object) -> ReplicationOp:
    made = ReplicationOp(kind, _TABLE, lsn, seq_id, row_lsn=77, xid=760)
    made.old, made.new = rows.get("old"), rows.get("new")  # type: ignore[assignment]
    return made


INSERT = op(Kind.INSERT, new=["1", "x"])


def test_an_envelope_is_written_byte_for_byte() -> None:
    assert encoder().encode(INSERT) == (
        b'{"before":null,"after":{"id":1,"v":"x"},"source":{"version":"walstream",'
        b'"connector":"postgresql","name":"app","ts_ms":946684800000,'
        b'"snapshot":"false","db":"db","sequence":"[\\"99\\",\\"77\\"]",'
        b'"ts_us":946684800000000,"ts_ns":946684800000000000,"schema":"public",'
        b'"table":"t","txId":760,"lsn":77,"xmin":null,"origin":null,"origin_lsn":null},'
        b'"transaction":null,"op":"c","ts_ms":1795404370543,"ts_us":1795404370543577,'
        b'"ts_ns":1795404370543577046}'
    )


@pytest.mark.parametrize(
    ("one", "letter", "before", "after"),
    [
        (
            op(Kind.UPDATE, old=["1", "w"], new=["1", "x"]),
            "u",
            {"id": 1, "v": "w"},
            {"id": 1, "v": "x"},
        ),
        (op(Kind.UPDATE, new=["1", "x"]), "u", None, {"id": 1, "v": "x"}),
        (op(Kind.DELETE, old=["1", None]), "d", {"id": 1, "v": None}, None),
        (op(Kind.TRUNCATE), "t", None, None),
    ],
)
def test_each_change_has_its_letter_and_rows(
    one: ReplicationOp, letter: str, before: object, after: object
) -> None:
    found = json.loads(encoder().encode(one))
    assert (found["op"], found["before"], found["after"]) == (letter, before, after)


def test_a_delete_is_followed_by_a_tombstone() -> None:
    delete = op(Kind.DELETE, old=["1", None])
    assert encoder().values(delete) == [encoder().encode(delete), None]
    assert encoder().values(INSERT) == [encoder().encode(INSERT)]


def test_the_block_names_the_op_in_its_transaction() -> None:
    found = encoder(DebeziumOptions("app", transaction_block=True))
    blocks = [
        json.loads(found.encode(op(Kind.INSERT, lsn, seq_id, new=["1", "x"])))[
            "transaction"
        ]
        for lsn, seq_id in ((99, 0), (99, 4), (100, 2))
    ]
    assert [(one["total_order"], one["data_collection_order"]) for one in blocks] == [
        (1, 1), (5, 2), (3, 1),
    ]  # fmt: skip
    assert {one["id"] for one in blocks} == {"760:77"}


def test_a_new_transaction_has_a_head_of_its_own() -> None:
    found = encoder()
    for lsn, time, xid in ((99, 0, 1), (100, 0, 2), (100, 1_000_000, 3)):
        one = op(Kind.INSERT, lsn, new=["1", "x"])
        one.commit_time, one.xid = time, xid
        source = json.loads(found.encode(one))["source"]
        assert json.loads(source["sequence"]) == [str(lsn), "77"]
        assert source["ts_ms"] == 946684800000 + time // 1000


def test_a_row_that_was_read_says_how() -> None:
    row = op(Kind.INSERT, 99, 1 << 32, new=["1", "x"])
    row.snapshot = True
    read, beside = (
        json.loads(encoder(_OPTIONS, *how).encode(row)) for how in ((BACKFILL,), ())
    )
    assert (read["op"], beside["op"]) == ("r", "r")
    assert (read["source"]["snapshot"], read["source"]["lsn"]) == ("true", 99)
    assert beside["source"]["snapshot"] == "incremental"
    assert [beside["source"][name] for name in ("lsn", "txId", "xmin")] == [None] * 3


def test_a_backfills_truncate_is_one() -> None:
    truncate = snapshot_truncate(_TABLE, 99, 1, 0)
    found = json.loads(encoder(_OPTIONS, BACKFILL).encode(truncate))
    assert (found["op"], found["before"], found["after"]) == ("t", None, None)
    assert found["source"]["snapshot"] == "true"


def test_the_origin_is_that_of_the_transaction() -> None:
    turn = SinkTurn()
    turn.come_from("east", 55)
    source = json.loads(EnvelopeEncoder(_TABLE, _OPTIONS, turn).encode(INSERT))[
        "source"
    ]
    assert (source["origin"], source["origin_lsn"]) == ("east", 55)


def test_the_clock_alone_differs_in_a_replay() -> None:
    turn = SinkTurn()
    found = EnvelopeEncoder(_TABLE, _OPTIONS, turn)
    rests = []
    for nanoseconds in (1_000_000, 2_000_000):
        turn.begin(nanoseconds)
        value = found.encode(INSERT).decode()
        assert value.endswith(turn.ending)
        rests.append(value.removesuffix(turn.ending))
    assert rests[0] == rests[1]


def test_with_schemas_the_payload_is_the_same() -> None:
    found = json.loads(
        encoder(DebeziumOptions("app", "db", schemas=True)).encode(INSERT)
    )
    assert found["payload"] == json.loads(encoder().encode(INSERT))
    assert found["schema"]["name"] == "app.public.t.Envelope"
    names = [field["field"] for field in found["schema"]["fields"]]
    assert names == list(found["payload"])


def test_each_value_fits_its_schema() -> None:
    """A reader that checks types, as Connect's does, finds those that it was told."""
    facts = (
        ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
        ColumnFacts(type_oid=25, type_name="text"),
    )
    table = Table("public", "t", ("id", "v"), (0,), facts=facts)
    found = EnvelopeEncoder(table, _OPTIONS, SinkTurn())
    fields = dict(dict(found.schema.fields)["after"].fields)
    assert (fields["id"].type, fields["id"].optional) == ("int32", False)
    assert (fields["v"].type, fields["v"].optional) == ("string", True)
