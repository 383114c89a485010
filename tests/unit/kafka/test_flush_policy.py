"""A producer is flushed for the few, not for a backlog, and not over and over."""

from walstream.kafka.flush_policy import FlushPolicy


def policy(sent: int, reported: int = 0, *, hurries: bool = True) -> FlushPolicy:
    made = FlushPolicy(hurries=hurries)
    made.sent, made.reported = sent, reported
    return made


def test_what_none_follows_is_due_at_once() -> None:
    assert policy(1).is_due(0.0, quiet=True)
    assert policy(100_000).is_due(0.0, quiet=True)


def test_where_all_is_answered_nothing_is_due() -> None:
    assert not policy(7, 7).is_due(9.0, quiet=True)
    assert not policy(7, 7).is_due(9.0, quiet=False)


def test_an_operators_linger_decides_alone() -> None:
    assert not policy(1, hurries=False).is_due(9.0, quiet=True)


def test_a_few_that_others_follow_wait_a_little() -> None:
    made = policy(1)
    made.flush(1.0)
    made.sent, made.reported = 900, 1
    assert not made.is_due(1.009, quiet=False)
    assert made.is_due(1.011, quiet=False)


def test_a_backlog_fills_its_batches() -> None:
    made = policy(1)
    made.flush(1.0)
    made.sent, made.reported = 1001, 1
    assert not made.is_due(1.1, quiet=False)
    assert made.is_due(1.1, quiet=True)


def test_the_first_of_a_transaction_is_flushed_again_soon() -> None:
    """Its coordinator is told of each partition before a broker is sent anything."""
    made = policy(1)
    made.begin()
    made.flush(1.0)
    found = []
    for at_ms in range(60):
        now = 1.0 + at_ms / 1000 + 1e-6
        if made.is_due(now, quiet=True):
            made.flush(now)
            found.append(at_ms)
    assert found == [2, 6, 14, 30, 50]
    made.reported = 1
    made.sent = 2
    made.flush(2.0)
    made.begin()
    assert made.is_due(2.0021, quiet=True)


def test_nothing_is_flushed_before_the_last_is_answered_or_late() -> None:
    made = policy(10)
    made.flush(1.0)
    made.sent, made.reported = 12, 9
    assert not made.is_due(1.019, quiet=True)
    assert made.is_due(1.021, quiet=True)
    made.flush(1.021)
    assert not made.is_due(1.04, quiet=True)
    made.reported = 12
    made.sent = 13
    assert made.is_due(1.022, quiet=True)
