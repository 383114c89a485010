"""Records of a transaction topic, as walstream writes them."""

import pytest

from consumer.group.assigned_partition import Place
from consumer.whole.told import ResolvedMark, ToldTransaction, read_told
from walstream.errors import WalstreamError
from walstream.formats.txinfo import RowCounts, TxinfoRecords, resolved_record
from walstream.op import EPOCH_S, Table


def test_what_walstream_tells_is_read() -> None:
    counts = RowCounts()
    counts.add(Table("public", "t", ()), 3)
    for partition in (0, 3, 3):
        counts.send("app.t", partition)
    counts.parked = 2
    written = TxinfoRecords().end(771, (4865, 4900), 7, counts)
    assert written is not None
    assert read_told(written[1]) == ToldTransaction(
        lsn=4865,
        end_lsn=4900,
        xid=771,
        commit_time=EPOCH_S * 1_000_000 + 7,
        counts={Place("app.t", 0): 1, Place("app.t", 3): 2},
        parked=2,
    )


def test_a_mark_is_read() -> None:
    _, value = resolved_record(4900, 7, {"app.t": [120, 0]})
    ends = {Place("app.t", 0): 120, Place("app.t", 1): 0}
    assert read_told(value) == ResolvedMark(4900, ends)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"status":"BEGIN","id":"7:8"}', "Debezium's form"),
        (b'{"schema":{},"payload":{"status":"END","id":"7:8"}}', "Debezium's form"),
        (b'{"table_name":"t"}', "tells of no transaction"),
        (b'{"lsn":1,"end_lsn":2,"xid":"x"}', "tells of no transaction"),
        (b"[1]", "tells of no transaction"),
        (b"7", "tells of no transaction"),
        (b"\xff", "tells of no transaction"),
    ],
)
def test_another_record_is_refused(value: bytes, said: str) -> None:
    with pytest.raises(WalstreamError, match=said):
        read_told(value)
