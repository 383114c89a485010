"""For whom a worker drains, and for how long it may."""

from walstream.service.drain import WorkerDrain

NOW = 1000.0


def test_who_drains_for_nobody_is_never_late() -> None:
    assert not WorkerDrain(1.0).is_late(NOW)


def test_who_is_lent_may_drain_as_long_as_any_other() -> None:
    drain = WorkerDrain(60.0)
    drain.lend(NOW)
    assert not drain.is_late(NOW + 60)
    assert drain.is_late(NOW + 61)
    drain.lent = False  # taken back before it had ended
    assert not drain.is_late(NOW + 61)


def test_a_drain_is_counted_from_the_first_renewal() -> None:
    drain = WorkerDrain(60.0)
    assert drain.renew(NOW)
    assert not drain.renew(NOW + 50)
    assert drain.is_late(NOW + 61)


def test_who_is_lent_while_it_is_renewed_has_the_whole_time_again() -> None:
    drain = WorkerDrain(60.0)
    drain.renew(NOW)
    drain.lend(NOW + 30)
    assert not drain.is_late(NOW + 61)
    assert drain.is_late(NOW + 91)


def test_a_renewal_is_over_with_the_process() -> None:
    drain = WorkerDrain(60.0)
    assert not drain.end()
    drain.renew(NOW)
    assert drain.end()
    assert not drain.end()
    assert not drain.is_late(NOW + 100)
