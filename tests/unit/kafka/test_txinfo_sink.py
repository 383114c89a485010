"""What is said of a transaction covers its records, and none of them is lost for it."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
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
        self.places: Counter[tuple[str, int]] = Counter()  # no tombstones

    def put(self, topic: Topic, value: bytes | None, key: bytes, *rest: Any) -> None:
        said = None if value is None else json.loads(value)
        self.records.append((topic.name, key, said or {}))
        self.places[topic.name, rest[0]] += value is not None
        transaction = rest[2]
        transaction.undelivered += 1

    def hold(self, attempt: Callable[[], bool]) -> None:
        self.held.append(attempt)

    def of(self, _topic: str) -> "Outbox":
        return self


class Running:
    """A sink without Kafka, and the ledger of its transactions."""

    def __init__(
        self,
        *,
        fmt: str = "tungsten",
        known: str = "tu",
        rules: Mapping[str, Any] | None = None,
        partitions: int = 1,
        **informs: Any,
    ) -> None:
        self.known = {
            name: Topic(name, name, partitions, 1 << 20) for name in [*known, "large"]
        }
        self.known["info"] = Topic("info", "info", 1, 1 << 20)
        topics: Any = SimpleNamespace(
            known=self.known,
            have=lambda names: all(name in self.known for name in names),
            limits=(1 << 20, 1 << 20),
            disown=lambda: None,
        )
        mappings = {name: TopicMapping(name) for name in "tu"}
        info = TransactionInfo(**informs)
        made = SinkRules("k", fmt, "murmur2", "send", True, b"", Context(), txinfo=info)
        self.sink = TxinfoSink(
            replace(made, **(rules or {})),
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
    ((topic, key, value),) = live.outbox.records[3:]
    assert (topic, key, value["_seqno"]) == ("info", b"4865", "4865")
    assert value["txinfo"] == counts(3, t=3)
    assert value["rows"] == {"t": {"0": 3}}
    assert transaction.undelivered == 4  # the position waits for it too
    empty = live.begin(5000)
    live.row(empty, DROPPED)
    live.ledger.commit(5100)
    assert len(live.outbox.records) == 4


def test_backfilled_rows_belong_to_no_transaction() -> None:
    for live in (Running(), Running(topic="info")):
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


def told_rows(live: Running) -> list[dict[str, dict[str, int]]]:
    """Return the counts by topic and partition, of each transaction."""
    return [said["rows"] for name, _, said in live.outbox.records if name == "info"]


def test_what_is_told_is_what_each_partition_got() -> None:
    live = Running(
        fmt="op",
        partitions=7,
        topic="info",
        rules={"tombstones": True, "parking": "large"},
    )
    transaction = live.begin()
    for number in range(20):
        live.row(transaction, new=[str(number), "x"])
    live.row(
        transaction, kind=Kind.UPDATE, old=["2", "x"], new=["3", "x"], key_changed=True
    )
    live.row(transaction, kind=Kind.DELETE, old=["5", None], new=None)
    live.row(transaction, U, kind=Kind.TRUNCATE, new=None)
    live.row(transaction, DROPPED)
    live.row(transaction, new=["9", "x" * (1 << 20)])
    live.row(transaction, new=["10", "x"], snapshot=True)
    before = Counter(live.outbox.places)
    live.ledger.commit(4900)
    (rows,) = told_rows(live)
    told = Counter(
        {(name, int(part)): n for name, of in rows.items() for part, n in of.items()}
    )
    beside = before - told
    assert told["u", 6] == 1
    assert sum(told.values()) == 20 + 2 + 1 + 7
    assert sorted(name for name, _ in beside.elements()) == ["large", "t"]
    assert told <= before
    (said,) = [said for name, _, said in live.outbox.records if name == "info"]
    assert said["parked"] == 1


def test_an_op_that_waits_for_its_topic_is_told_where_it_went() -> None:
    live = Running(fmt="op", known="u", topic="info")
    for lsn, table in ((4865, T), (5000, U)):
        transaction = live.begin(lsn)
        live.row(transaction, table)
        live.ledger.commit(lsn + 50)
    assert told_rows(live) == []
    live.known["t"] = Topic("t", "t", 1, 1 << 20)
    assert all(attempt() for attempt in live.outbox.held)
    assert told_rows(live) == [{"t": {"0": 1}}, {"u": {"0": 1}}]


def test_one_that_does_not_count_is_not_waited_for() -> None:
    live = Running(fmt="op", known="u", topic="info")
    transaction = live.begin()
    live.row(transaction, snapshot=True)
    live.row(transaction)
    live.ledger.commit(4900)
    live.known["t"] = Topic("t", "t", 1, 1 << 20)
    assert all(attempt() for attempt in live.outbox.held)
    assert told_rows(live) == [{"t": {"0": 1}}]
