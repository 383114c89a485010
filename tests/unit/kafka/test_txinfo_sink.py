"""What is said of a transaction covers its records, and none of them is lost for it."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from walstream.formats.context import Context
from walstream.kafka import txinfo_sink
from walstream.kafka.topic import Topic
from walstream.kafka.txinfo_sink import TxinfoSink
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.records.encoding import SinkRules, TransactionInfo
from walstream.records.router import Router, RoutingRules, TopicMapping

T = Table("public", "t", ("id", "v"), (0,))
U = Table("public", "u", ("id", "v"), (0,))
DROPPED = Table("public", "dropped", ("id", "v"), (0,))


class Outbox:
    """Takes records, and attempts to be made later."""

    has_room = True

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes, dict[str, Any]]] = []
        self.held: list[Callable[[], bool]] = []

    def put(self, topic: str, value: bytes, key: bytes, *rest: Any) -> None:
        self.records.append((topic, key, json.loads(value)))
        transaction = rest[2]
        transaction.undelivered += 1

    def hold(self, attempt: Callable[[], bool]) -> None:
        self.held.append(attempt)

    def of(self, _topic: str) -> "Outbox":
        return self


class Running:
    """A sink without Kafka, and the ledger of its transactions."""

    def __init__(
        self, *, fmt: str = "tungsten", known: str = "tu", **informs: Any
    ) -> None:
        self.known = {name: Topic(name, name, 1, 1 << 20) for name in [*known, "info"]}
        topics: Any = SimpleNamespace(
            known=self.known,
            have=lambda names: all(name in self.known for name in names),
            limits=(1 << 20, 1 << 20),
        )
        mappings = {name: TopicMapping(name) for name in "tu"}
        info = TransactionInfo(**informs)
        rules = SinkRules(
            "k", fmt, "murmur2", "send", True, b"", Context(), txinfo=info
        )
        self.sink = TxinfoSink(
            rules,
            Router("app", RoutingRules(mappings, "", "")),
            topics,
            producer={},
        )
        self.outbox = Outbox()
        vars(self.sink)["_outboxes"] = self.outbox
        vars(vars(self.sink)["_fit"])["_limits"] = topics.limits
        self.ledger = Ledger(0)

    def begin(self, lsn: int = 4865) -> Transaction:
        return self.ledger.begin(lsn, 7)

    def row(self, transaction: Transaction, table: Table = T, **fields: Any) -> None:
        op = ReplicationOp(
            fields.pop("kind", Kind.INSERT),
            table,
            transaction.lsn,
            0,
            **{"new": ["1", "x"], **fields},
        )
        self.sink.send(op, transaction)

    @property
    def infos(self) -> list[dict[str, str] | None]:
        return [record[2].get("txinfo") for record in self.outbox.records]


def counts(total: int, **tables: int) -> dict[str, str]:
    each = {f"txinfo_rowcount_public.{name}": str(n) for name, n in tables.items()}
    return {"txinfo_rowcount": str(total), **each}


def test_each_record_waits_for_the_commit_and_says_all() -> None:
    live = Running()
    transaction = live.begin()
    live.row(transaction)
    live.row(transaction, DROPPED)
    live.row(transaction, U)
    live.row(transaction, T)
    live.row(transaction, T, kind=Kind.TRUNCATE, new=None)
    assert not live.outbox.records
    live.ledger.commit(4900)
    assert live.infos == [counts(3, t=2, u=1)] * 3
    assert [record[0] for record in live.outbox.records] == ["t", "u", "t"]
    assert transaction.undelivered == 3
    following = live.begin(5000)
    live.row(following, U)
    live.ledger.commit(5100)
    assert live.infos[3:] == [counts(1, u=1)]


def test_a_larger_transaction_goes_out_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    live = Running(max_rows=2)
    transaction = live.begin()
    for wanted in (0, 0, 3, 4):
        live.row(transaction)
        assert len(live.outbox.records) == wanted
    live.ledger.commit(4900)
    assert live.infos == [None] * 4

    monkeypatch.setattr(txinfo_sink, "_HELD_BYTES", 10)
    transaction = live.begin(5000)
    live.row(transaction, new=["1", "x" * 8])
    assert len(live.outbox.records) == 4
    live.row(transaction)
    live.ledger.commit(5100)
    assert live.infos[4:] == [None, None]


def test_a_topic_of_its_own_has_one_record_behind_those_of_the_transaction() -> None:
    live = Running(fmt="op", topic="info")
    transaction = live.begin()
    live.row(transaction)
    live.row(transaction, kind=Kind.UPDATE, old=["2", "x"], key_changed=True)
    assert len(live.outbox.records) == 3  # none waits
    live.row(transaction, DROPPED)
    live.ledger.commit(4900)
    assert live.outbox.records[3:] == [
        ("info", b"4865", {"_seqno": "4865", "txinfo": counts(3, t=3)})
    ]
    assert transaction.undelivered == 4  # the position waits for it too
    empty = live.begin(5000)
    live.row(empty, DROPPED)
    live.ledger.commit(5100)
    assert len(live.outbox.records) == 4


def test_backfilled_rows_belong_to_no_transaction() -> None:
    for informs in ({}, {"topic": "info"}):
        live = Running(**informs)
        live.row(live.begin(), snapshot=True)
        live.ledger.commit(4900)
        assert live.infos == [None]


def test_records_of_a_topic_that_is_looked_for_say_the_same() -> None:
    live = Running(known="u")
    for lsn, rows in ((4865, 2), (5000, 1)):
        transaction = live.begin(lsn)
        for _ in range(rows):
            live.row(transaction)
        live.ledger.commit(lsn + 50)
    assert (live.infos, live.ledger.undelivered) == ([], 3)
    live.known["t"] = Topic("t", "t", 1, 1 << 20)
    assert all(attempt() for attempt in live.outbox.held)
    assert live.infos == [counts(2, t=2)] * 2 + [counts(1, t=1)]
