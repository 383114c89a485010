"""Which LSN may be confirmed."""

from walstream.lsn import Lsn
from walstream.pipeline.ledger import (
    MESSAGES_ALONE,
    NO_ORIGIN,
    Ledger,
    Shares,
    Transaction,
    alone,
)
from walstream.telemetry.meter import TableMeter


def test_undelivered_record_holds_the_position() -> None:
    ledger = Ledger(10)
    transaction = ledger.begin(20)
    transaction.undelivered = 2
    ledger.commit(25)
    assert ledger.advance() == 10
    transaction.undelivered = 1
    assert ledger.advance() == 10
    transaction.undelivered = 0
    assert ledger.advance() == 25


def test_later_transaction_waits_for_the_front_of_the_queue() -> None:
    ledger = Ledger(10)
    first = ledger.begin(20)
    first.undelivered = 1
    ledger.commit(25)
    ledger.begin(30)
    ledger.commit(35)
    assert ledger.advance() == 10
    first.undelivered = 0
    assert ledger.advance() == 35


def test_open_transaction_holds_the_position() -> None:
    ledger = Ledger(10)
    ledger.begin(20)
    assert ledger.advance() == 10
    assert not ledger.idle


def test_keepalive_counts_while_nothing_is_in_flight() -> None:
    ledger = Ledger(10)
    ledger.keepalive(40)
    assert ledger.advance() == 40


def test_keepalive_below_the_position_changes_nothing() -> None:
    ledger = Ledger(10)
    ledger.keepalive(5)
    assert ledger.advance() == 10


def test_keepalive_counts_not_while_a_record_is_undelivered() -> None:
    ledger = Ledger(10)
    transaction = ledger.begin(20)
    transaction.undelivered = 1
    ledger.commit(25)
    ledger.keepalive(40)
    transaction.undelivered = 0
    assert ledger.advance() == 25


def test_keepalive_counts_not_within_a_transaction() -> None:
    ledger = Ledger(10)
    ledger.begin(20)
    ledger.keepalive(40)
    ledger.commit(25)
    assert ledger.advance() == 25


def test_empty_transaction_moves_the_position() -> None:
    ledger = Ledger(10)
    ledger.begin(20)
    ledger.commit(25)
    assert ledger.advance() == 25
    assert ledger.idle


def test_undelivered_records_are_counted_over_all_transactions() -> None:
    ledger = Ledger(10)
    for lsn in (20, 30):
        ledger.begin(lsn).undelivered = 2
        ledger.commit(lsn + 5)
    assert ledger.undelivered == 4


def test_transactions_without_records_take_no_room_behind_one_that_is_stuck() -> None:
    heard: list[tuple[int | None, int]] = []
    ledger = Ledger(10, lambda one: heard.append((one.end_lsn, one.ops)))
    first = ledger.begin(20)
    first.undelivered = 1
    ledger.commit(25, 1)
    for lsn in range(30, 3000, 10):
        ledger.begin(lsn)
        ledger.commit(lsn + 5, 2)
    assert ledger.advance() == 10
    first.undelivered = 0
    assert ledger.advance() == 2995
    assert heard == [(2995, 1 + 2 * 297)]
    assert ledger.delivered_ops == 1 + 2 * 297


def test_keepalive_counts_what_was_delivered_since() -> None:
    ledger = Ledger(10)
    transaction = ledger.begin(20)
    transaction.undelivered = 1
    ledger.commit(25)
    transaction.undelivered = 0
    ledger.keepalive(40)
    assert ledger.advance() == 40


def test_transaction_begins_with_what_is_known_of_it() -> None:
    transaction = Ledger(10).begin(20, 7)
    assert (transaction.lsn, transaction.commit_time) == (20, 7)
    assert (transaction.ops, transaction.undelivered, transaction.began) == (0, 0, 0.0)
    assert transaction.end_lsn is None
    assert transaction.origin == NO_ORIGIN == ("", 0)
    assert Ledger(10).begin(20).commit_time == Transaction(20).commit_time == 0


def test_oldest_commit_time_is_that_of_the_front() -> None:
    ledger = Ledger(10)
    assert ledger.oldest_commit_time is None
    ledger.begin(20, 7).undelivered = 1
    ledger.commit(25)
    ledger.begin(30, 8)
    assert ledger.oldest_commit_time == 7


def test_what_waits_for_the_commit_hears_its_end_and_may_still_add_records() -> None:
    heard: list[Lsn] = []

    def add(transaction: Transaction, end_lsn: Lsn) -> None:
        assert transaction.end_lsn is None
        transaction.undelivered += 1
        heard.append(end_lsn)

    ledger = Ledger(10)
    transaction = ledger.begin(20)
    transaction.at_end = (add,)
    ledger.commit(25)
    assert heard == [25]
    assert transaction.ops == 0
    assert ledger.advance() == 10


def test_merged_transaction_keeps_the_table_of_its_last_row() -> None:
    first, second = TableMeter("a"), TableMeter("b")
    ledger = Ledger(10)
    before = ledger.begin(20)
    before.undelivered = 1
    before.table = first
    ledger.commit(25, 1)
    ledger.begin(30)
    ledger.commit(35)
    assert before.table is first
    ledger.begin(40).table = second
    ledger.commit(45)
    assert before.table is second


def test_shares_are_delivered_when_each_part_is() -> None:
    assert Shares([Transaction(20)]).lsn == 20
    parts = [Transaction(20), Transaction(20)]
    shares = Shares(parts)
    assert shares.lsn == 20
    assert shares.end_lsn is None
    parts[0].end_lsn = 25
    assert shares.end_lsn is None
    parts[1].end_lsn = 25
    parts[0].undelivered, parts[1].undelivered = 2, 3
    assert shares.undelivered == 5
    assert Shares(parts).end_lsn == 25
    assert Shares(parts[:1]).end_lsn == 25


def test_one_that_is_alone_is_ended_and_lies_below_what_has_messages_alone() -> None:
    transaction = alone(20)
    assert (transaction.lsn, transaction.end_lsn) == (20, 20)
    # a first op has number 0; no op and no message: nothing is named
    assert transaction.last_seq_id < MESSAGES_ALONE < 0
