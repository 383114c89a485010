"""What sinks may have been given is bounded on disk before they are given it."""

from walstream.pipeline.sent_position import (
    GIVEN,
    GIVEN_ELSEWHERE,
    Given,
    Reach,
    sent_so_far,
)
from walstream.testing import MemoryStore

STEP = 16 << 20


def kept(reach: Reach, resume: int = 0) -> Given:
    given = reach.ahead(resume)
    reach.keep(given)
    return given


def test_nothing_is_given_before_its_bound_is_kept() -> None:
    reach = Reach(None, 1)
    assert not reach.admits(100)
    assert reach.exact() == Given(1, 0, 1)
    assert kept(reach) == Given(1, 0, 101 + STEP)
    assert reach.admits(100)
    assert reach.exact() == Given(1, 100, 101)


def test_the_bound_rides_ahead_in_steps() -> None:
    reach = Reach(None, 1)
    reach.admits(100)
    below = kept(reach).below
    assert reach.admits(below - 1)
    assert not reach.admits(below)
    assert kept(reach) == Given(1, below - 1, below + 1 + STEP)
    assert reach.admits(below)


def test_what_comes_again_lowers_nothing() -> None:
    reach = Reach(Given(1, 500, 501), 1)
    assert reach.admits(100)
    assert reach.exact() == Given(1, 500, 501)
    assert kept(reach).below == 501 + STEP


def test_what_a_kill_left_unknown_stays_so_until_it_has_come_again() -> None:
    reach = Reach(Given(1, 500, 900), 1)
    assert reach.admits(600)
    assert reach.exact() == Given(1, 600, 900)
    kept(reach, 899)
    assert reach.exact() == Given(1, 600, 900)
    kept(reach, 900)
    assert reach.exact() == Given(1, 600, 601)


def test_another_timeline_is_kept_before_anything_of_it_is_given() -> None:
    reach = Reach(Given(1, 500, 900), 2)
    assert not reach.admits(600)
    assert kept(reach).timeline == 2
    assert reach.admits(600)
    assert reach.exact() == Given(2, 600, 601)


def test_a_document_is_read_as_it_was_written() -> None:
    given = Given(3, 7, 9)
    assert GIVEN.read(MemoryStore(GIVEN.entry(given))) == given
    assert not given.sure
    assert given.believed().sure
    assert GIVEN.read(MemoryStore()) is None


def test_a_sink_that_came_back_may_have_had_more_than_the_stream() -> None:
    store = MemoryStore()
    assert sent_so_far(store) is None
    store.write(GIVEN.entry(Given(2, 100, 150)))
    assert sent_so_far(store) == Given(2, 100, 150)
    store.write(GIVEN_ELSEWHERE.of("a").entry(Given(2, 900, 901)))
    store.write(GIVEN_ELSEWHERE.of("b").entry(Given(2, 50, 60)))
    assert sent_so_far(store) == Given(2, 900, 901)
    # what was sent of an older timeline was looked at when the newer one began
    store.write(GIVEN_ELSEWHERE.of("a").entry(Given(1, 900, 901)))
    assert sent_so_far(store) == Given(2, 100, 150)


def test_what_is_not_sure_of_one_is_not_of_both() -> None:
    joined = Given(1, 900, 901).joined(Given(1, 100, 2000))
    assert joined == Given(1, 900, 2000)
    assert not joined.sure
