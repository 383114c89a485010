"""Ops of open transactions, in memory and on disk."""

import sqlite3

import pytest

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.whole.pile import Piles
from tests.support.loads.op_record import ITEM, insert, truncate
from walstream.errors import WalstreamError
from walstream.formats.op import OpEncoder, decode


def op(lsn: int, seq_id: int, partition: int = 0, offset: int = 0) -> Op:
    value = OpEncoder(ITEM).encode(insert(lsn, seq_id, ["1", "x" * 500]))
    headers = (("name", b"\x00\xff"), ("none", None))
    record = ConsumerRecord("t", partition, offset, b"k", value, 7, headers)
    return Op(decode(value), record)


def piles(memory: int) -> Piles:
    return Piles(memory, lambda record: Op(decode(record.value or b""), record))


def test_what_lies_on_disk_comes_back_as_it_was() -> None:
    found = piles(1)
    records = [op(10, seq_id, offset=seq_id) for seq_id in (2, 0, 1)]
    for one in records:
        found.add(Place("t", 0), one)
    pile = found.get(10)
    assert pile is not None
    ops = pile.ops()
    assert len(ops) == 3
    for _ in range(2):  # they may be looked at again
        assert [one.record for one in ops] == [records[n].record for n in (1, 2, 0)]
    assert found.bytes == 0
    found.pop(10)
    assert len(ops) == 3
    assert [*ops] == []


def test_the_largest_go_to_disk_until_half_of_the_memory_is_free() -> None:
    found = piles(20_000)
    for seq_id in range(6):
        found.add(Place("t", 0), op(10, seq_id))
    found.add(Place("t", 0), op(20, 0))
    before = found.bytes
    assert before > 10_000
    for seq_id in range(6, 12):
        found.add(Place("t", 0), op(10, seq_id))
    assert found.bytes < 10_000
    kinds = [type(pile.ops()).__name__ for n in (10, 20) if (pile := found.get(n))]
    assert kinds == ["SpilledOps", "tuple"]


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_a_record_counts_once_and_an_op_of_several_partitions_too(memory: int) -> None:
    found = piles(memory)
    for _ in range(2):
        found.add(Place("t", 0), op(10, 0))
        found.add(Place("t", 1), op(10, 0, partition=1))
    found.add(Place("t", 0), op(10, 1))
    value = OpEncoder(ITEM).encode(truncate(10, 2))
    emptied = decode(value)
    emptied.seq_id = 2
    for number in range(2):
        record = ConsumerRecord("t", number, 9, b"k", value)
        found.add(Place("t", number), Op(emptied, record))
    pile = found.get(10)
    assert pile is not None
    assert pile.counts == {Place("t", 0): 3, Place("t", 1): 2}
    assert pile.records == 4  # of op 0, of op 1, and the two of the Truncate
    assert len(pile.ops()) == 3


def test_a_full_disk_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("consumer.whole.pile.sqlite3.connect", refuse)
    with pytest.raises(WalstreamError, match="TMPDIR"):
        piles(1).add(Place("t", 0), op(10, 0))
