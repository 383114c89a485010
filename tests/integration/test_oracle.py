"""Two independent readers of one WAL see the same changes in the same order."""

import os
import secrets
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.mixed import SCHEMA, loading
from tests.support.oracles.slot_text import Change, Transaction, open_slot, transactions
from tests.support.oracles.topic_reader import Reader, Record, in_order
from walstream.row import OMITTED

STEPS = 600


@dataclass(frozen=True)
class Expected:
    seq_id: int
    table: str
    kind: str
    key: str
    old: dict[str, str | None] | None  # as far as sent, without nulls
    new: dict[str, str | None] | None


def test_the_topics_hold_what_test_decoding_reads(
    database: Database, runs: Runs, reader: Reader
) -> None:
    seed = int(os.environ.get("WALSTREAM_TEST_SEED") or secrets.randbelow(10**9))
    print(f"WALSTREAM_TEST_SEED={seed}")  # noqa: T201 - to repeat a failure
    database.execute(SCHEMA)
    oracle = f"{database.name}_oracle"
    open_slot(database, oracle)
    walstream = runs(database.dsn, sink={"topic_partitions": 4}).start().streaming()
    with loading(database, seed) as load:
        load.write(STEPS)
        # a drain and a start under open transactions leave no trace
        assert walstream.terminate() == 0
        load.write(STEPS)
        walstream.start().streaming()
        load.write(STEPS)
        load.finish()

    read = transactions(database, oracle)
    wanted = [expected(transaction) for transaction in read]
    ops = [op for transaction in wanted for op in transaction]
    assert {op.kind for op in ops} == {"Insert", "Update", "Delete"}
    assert any(len(more) > len(t.changes) for t, more in zip(read, wanted, strict=True))
    reader.count(len(ops))
    by_lsn = defaultdict(list)
    for record in in_order(reader.records):
        by_lsn[record.op.lsn].append(record)

    assert len(by_lsn) == len(read)
    end_lsn = 0
    for transaction, numbered, (lsn, records) in zip(
        read, wanted, by_lsn.items(), strict=True
    ):
        assert end_lsn <= lsn < transaction.end_lsn
        end_lsn = transaction.end_lsn
        assert [shown(record) for record in records] == numbered
    assert len({record.partition for record in reader.records}) == 4
    in_partition_order(reader.records)


def expected(transaction: Transaction) -> list[Expected]:
    """Give the ops of these changes: one that moves a key is two."""
    ops: list[Expected] = []

    def add(change: Change, kind: str, *, old: Any = None, new: Any = None) -> None:
        key = f'["{(new or old)["id"]}"]'
        ops.append(Expected(len(ops), change.table, kind, key, old, new))

    for change in transaction.changes:
        old, new = change.old, change.new
        if old and new and old["id"] != new["id"]:
            add(change, "Delete", old=old)
            add(change, "Insert", new=new)
        else:
            add(change, change.kind.capitalize(), old=old, new=new)
    return ops


def shown(record: Record) -> Expected:
    sent = {
        name: text for name, text in record.old.items() if text not in (None, OMITTED)
    }
    return Expected(
        record.op.seq_id,
        record.op.table.full_name,
        record.kind.value,
        record.key.decode(),
        sent if record.op.old is not None else None,
        record.new if record.op.new is not None else None,
    )


def in_partition_order(records: list[Record]) -> None:
    """Claim the stream's order in each partition, and one partition a key."""
    last: dict[tuple[str, int], tuple[int, int]] = {}
    home: dict[tuple[str, bytes], int] = {}
    for record in records:
        place = record.topic, record.partition
        assert record.name > last.get(place, (0, -1))
        last[place] = record.name
        assert home.setdefault((record.topic, record.key), record.partition) == (
            record.partition
        )
