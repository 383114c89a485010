"""What a batch takes: against a model of what took effect."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from consumer.decoder import Decoder
from consumer.errors import SchemasAway, SchemasRefused
from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.state.partition_state import NEVER
from consumer.state.plan import BatchPlan, Planner
from consumer.state.position import NOTHING, AppliedPosition, SnapshotChunk
from tests.support.loads.envelope import Document, envelope
from tests.support.loads.op_record import ITEM, backfilled, insert, truncate
from tests.support.oracles.debezium import golden
from walstream.errors import WalstreamError
from walstream.formats.op import OpEncoder
from walstream.op import ReplicationOp

_PLACE = Place("t", 0)


def messages(
    ops: Sequence[ReplicationOp | bytes | None],
    sources: dict[int, bytes] | None = None,
) -> list[Message]:
    found = []
    for offset, op in enumerate(ops):
        value = (
            op if op is None or isinstance(op, bytes) else OpEncoder(ITEM).encode(op)
        )
        source = (sources or {}).get(offset)
        found.append(
            Message(
                topic="t",
                partition=0,
                offset=offset,
                value=value,
                headers=[("walstream-source", source)] if source else [],
                timestamp=(1, 5),
            )
        )
    return found


def planner(
    position: AppliedPosition = NOTHING,
    chunks: dict[SnapshotChunk, int] | None = None,
    alone: range = range(0),
) -> Planner:
    known = chunks or {}
    return Planner(
        _PLACE, position, "1/db/0", lambda chunk: known.get(chunk, NEVER), alone
    )


def seqs(plan: BatchPlan) -> list[tuple[int, int]]:
    return [(op.lsn, op.seq_id) for op in plan.ops]


def row(lsn: int, seq_id: int = 0) -> ReplicationOp:
    return insert(lsn, seq_id, ["1", "1"])


_STREAMED = st.builds(row, st.integers(1, 9), st.integers(0, 3))
_SNAPSHOT = st.builds(
    lambda chunk, index: backfilled(5, chunk, index, ["1", "1"]),
    st.integers(1, 2),
    st.integers(0, 4),
)
_OPS = st.lists(_STREAMED | _SNAPSHOT | st.none(), max_size=30)


@given(_OPS, st.integers(1, 10))
def test_batches_take_what_a_model_would_take(
    ops: list[ReplicationOp | None], limit: int
) -> None:
    last = (0, 0)
    indexes: dict[int, int] = {}
    expected = []
    for op in ops:
        if op is None:
            continue
        if op.snapshot:
            chunk, index = divmod(op.seq_id, 2**32)
            if index <= indexes.get(chunk, -1):
                continue
            indexes[chunk] = index
        elif (op.lsn, op.seq_id) <= last:
            continue
        else:
            last = (op.lsn, op.seq_id)
        expected.append((op.lsn, op.seq_id))
    taken: list[tuple[int, int]] = []
    found = planner()
    start = skipped = 0
    read = messages(ops)
    while start < len(read):
        plan = found.plan(read, start, limit)
        assert plan.taken
        assert len(plan.ops) <= limit
        taken += seqs(plan)
        skipped += plan.skipped
        start += plan.taken
        assert plan.next_offset == start
    assert taken == expected
    assert skipped == len(ops) - len(expected)


@pytest.mark.parametrize("newer", [row(2 << 30), backfilled(2 << 30, 9, 0, ["1", "1"])])
def test_rows_of_a_snapshot_that_is_long_past_come_again_in_vain(
    newer: ReplicationOp,
) -> None:
    old, late = (backfilled(5, chunk, 0, ["1", "1"]) for chunk in (1, 2))
    near = backfilled(1 << 30, 3, 0, ["1", "1"])
    found = planner()
    found.reach = newer.lsn if newer.snapshot else 0
    taken = seqs(found.plan(messages([newer, old, near, late]), 0, 9))
    assert taken == [(one.lsn, one.seq_id) for one in (newer, near)]


def test_a_truncate_is_a_batch_of_its_own() -> None:
    read = messages([row(1), truncate(2, 4), row(3)])
    found = planner()
    assert seqs(found.plan(read, 0, 9)) == [(1, 0)]
    assert seqs(found.plan(read, 1, 9)) == [(2, 0)]
    assert seqs(found.plan(read, 2, 9)) == [(3, 0)]


def test_an_op_that_is_to_be_alone_shares_no_batch() -> None:
    read = messages([row(1), row(2), row(3), row(4)])
    found = planner(alone=range(1, 3))
    starts = (0, 1, 2, 3)
    assert [seqs(found.plan(read, start, 9)) for start in starts] == [
        [(1, 0)],
        [(2, 0)],
        [(3, 0)],
        [(4, 0)],
    ]


def test_others_share_a_batch_where_one_is_to_be_alone() -> None:
    found = planner(alone=range(2, 3))
    read = messages([row(lsn) for lsn in range(1, 6)])
    starts = (0, 2, 3)
    assert [len(seqs(found.plan(read, start, 9))) for start in starts] == [2, 1, 2]


def test_no_op_is_alone_without_need() -> None:
    found = Planner(_PLACE, NOTHING, "1/db/0", lambda _: NEVER)
    assert len(seqs(found.plan(messages([row(1), row(2)]), 0, 9))) == 2


def test_poison_ends_a_batch_and_is_one() -> None:
    read = messages([row(1), b"no op", row(2)])
    found = planner()
    assert found.plan(read, 0, 9).taken == 1
    plan = found.plan(read, 1, 9)
    assert plan.poison is not None
    assert plan.poison[0].value == b"no op"
    assert (plan.taken, plan.next_offset, plan.ops) == (1, 2, [])


def test_a_foreign_source_ends_a_batch_and_is_not_taken() -> None:
    read = messages([row(1), row(2)], {0: b"1/db/0", 1: b"1/db/1"})
    found = planner()
    assert found.plan(read, 0, 9).taken == 1
    plan = found.plan(read, 1, 9)
    assert plan.foreign == "1/db/1"
    assert plan.taken == 0


def test_what_took_effect_is_skipped() -> None:
    read = messages([row(1), backfilled(5, 1, 3, ["1", "1"]), row(2)])
    found = planner(AppliedPosition(1, 0), {SnapshotChunk(5, 1): 3})
    plan = found.plan(read, 0, 9)
    assert seqs(plan) == [(2, 0)]
    assert plan.skipped == 2


def rows_of(*records: Document | bytes, headers: Any = ()) -> list[Message]:
    return [
        Message(
            topic="t",
            partition=0,
            offset=offset,
            value=one if isinstance(one, bytes) else json.dumps(one).encode(),
            headers=list(headers),
            timestamp=(1, 5),
        )
        for offset, one in enumerate(records)
    ]


def taken(plan: BatchPlan) -> list[int]:
    return [op.record.offset for op in plan.ops]


def of(lsn: int, order: int | None = None, **source: Any) -> Document:
    return envelope("c", after={"id": 1}, lsn=lsn, order=order, **source)


def test_rows_of_one_wal_record_of_debezium_are_all_taken() -> None:
    copied = rows_of(of(50), of(50), of(50))
    assert taken(planner(AppliedPosition(50, 0)).plan(copied, 0, 9)) == [0, 1, 2]


def test_a_long_transaction_of_debezium_is_taken_behind_later_rows() -> None:
    """It was committed last, and its row was written first."""
    plan = planner(AppliedPosition(200, 0)).plan(rows_of(of(90, 1), of(50, 1)), 0, 9)
    assert taken(plan) == [0, 1]


def test_rows_that_debezium_read_are_all_taken() -> None:
    read = [of(70, snapshot=word) for word in ("first", "true", "last")]
    beside = of(70, snapshot="incremental") | {"op": "r"}
    beside["source"]["lsn"] = None
    plan = planner(AppliedPosition(1 << 40, 0)).plan(rows_of(*read, beside), 0, 9)
    assert taken(plan) == [0, 1, 2, 3]


def test_of_debeziums_records_the_offset_tells_which_were_taken() -> None:
    known = planner()
    known.next_offset = 2
    plan = known.plan(rows_of(of(90), of(91), of(50)), 0, 9)
    assert (taken(plan), plan.skipped) == ([2], 2)


def test_debeziums_positions_are_none_of_walstreams() -> None:
    """Whoever wrote the topic before or behind, nothing is compared between them."""
    known = planner()
    mixed = rows_of(of(5000), OpEncoder(ITEM).encode(row(100)), of(50))
    assert taken(known.plan(mixed, 0, 9)) == [0, 1, 2]
    assert known.position == (100, 0)


def test_envelopes_of_walstream_are_taken_once() -> None:
    position = [("walstream-position", b"100/2")]
    known = planner(AppliedPosition(100, 1))
    assert taken(known.plan(rows_of(of(90), of(90), headers=position), 0, 9)) == [0]


def test_a_chunk_of_walstreams_envelopes_is_taken_once() -> None:
    index = (1 << 32) + 3
    read = of(70, snapshot="true") | {"op": "r"}
    position = [("walstream-position", b"70/%d" % index)]
    for known, expected in ((2, [0]), (3, [])):
        plan = planner(chunks={SnapshotChunk(70, 1): known}).plan(
            rows_of(read, headers=position), 0, 9
        )
        assert taken(plan) == expected


def test_what_holds_no_op_is_skipped() -> None:
    boundary, message = (
        (golden()[topic][0].value or "").encode()
        for topic in ("dbz.transaction", "dbz.message")
    )
    plan = planner().plan(rows_of(boundary, of(5), message), 0, 9)
    assert (taken(plan), plan.skipped, plan.next_offset) == ([1], 2, 3)


@pytest.mark.parametrize("error", [SchemasAway("away"), SchemasRefused("refused")])
def test_schemas_that_cannot_be_had_are_no_fault_of_the_record(
    error: WalstreamError,
) -> None:
    """It is met once it is the first: what stands before takes effect."""

    class Away(Decoder):
        def op_of(self, record: ConsumerRecord) -> Op | None:
            if record.offset == 1:
                raise error
            return super().op_of(record)

    planner = Planner(_PLACE, NOTHING, "1/db/0", lambda _: NEVER, decoder=Away())
    read = messages([insert(4, 0, ["1", "1"]), insert(5, 0, ["1", "1"])])
    assert len(planner.plan(read, 0, 9).ops) == 1
    with pytest.raises(type(error)):
        planner.plan(read[1:], 0, 9)
