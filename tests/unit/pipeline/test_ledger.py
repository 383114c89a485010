"""Which LSN may be confirmed."""

from walstream.pipeline.ledger import Ledger


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
