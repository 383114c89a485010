"""Who is late: behind the others for too long, or in their way."""

from walstream.pipeline.lag import LagPolicy, SinkLag

LIMIT_S = 10.0


def sight(
    resume: int, *, idle: bool = False, full: bool = False, roomy: bool = True
) -> SinkLag:
    return SinkLag(resume, idle, full, roomy)


def late_at(*looks: tuple[float, dict[str, SinkLag]]) -> set[str]:
    """Look again and again; give who is late at the last look."""
    laggards = LagPolicy[str](LIMIT_S)
    late: dict[str, float] = {}
    for now, sights in looks:
        late = laggards.look(now, sights)
    return set(late)


def test_one_that_stays_where_it_is_while_another_gets_on_is_late() -> None:
    looks = [
        (float(now), {"a": sight(100 + now), "b": sight(100)}) for now in range(12)
    ]
    assert late_at(*looks[:11]) == set()
    assert late_at(*looks) == {"b"}


def test_one_that_follows_the_others_closely_is_never_late() -> None:
    looks = [
        (float(now), {"a": sight(100 + now), "b": sight(99 + now)})
        for now in range(100)
    ]
    assert late_at(*looks) == set()


def test_a_lane_without_work_is_where_the_others_are() -> None:
    looks = [
        (float(now), {"a": sight(100, idle=True), "b": sight(100, idle=True)})
        for now in range(100)
    ]
    assert late_at(*looks) == set()


def test_while_nobody_gets_on_nobody_is_late() -> None:
    """All write to one Kafka, which went away when one was a little ahead."""
    looks = [(float(now), {"a": sight(101), "b": sight(100)}) for now in range(100)]
    assert late_at(*looks) == set()


def test_one_that_got_on_to_the_end_shows_that_the_other_is_late() -> None:
    looks = [
        (float(now), {"a": sight(101, idle=True), "b": sight(100)}) for now in range(12)
    ]
    assert late_at(*looks) == {"b"}


def test_one_whose_room_the_others_wait_for_is_late_though_they_are_level() -> None:
    looks = [
        (
            float(now),
            {
                "a": sight(100 + now, idle=True),
                "b": sight(100 + now, full=True, roomy=False),
            },
        )
        for now in range(12)
    ]
    assert late_at(*looks[:10]) == set()
    assert late_at(*looks) == {"b"}
    looks[5] = (5.0, {"a": sight(105, idle=True), "b": sight(105)})
    assert late_at(*looks) == set()  # it had room for a while


def test_a_sink_that_is_only_the_slowest_of_all_stays() -> None:
    """Its room is waited for again and again, and it gets on."""
    looks = [
        (
            float(now),
            {"a": sight(100 + now, idle=True), "b": sight(100 + now, full=True)},
        )
        for now in range(100)
    ]
    assert late_at(*looks) == set()


def test_after_an_outage_of_all_each_has_time_to_get_on_again() -> None:
    outage = [(float(now), {"a": sight(101), "b": sight(100)}) for now in range(300)]
    after = [
        (float(now), {"a": sight(101, idle=True), "b": sight(100)})
        for now in range(300, 310)
    ]
    assert late_at(*outage, *after[:-1]) == set()
    assert late_at(*outage, *after) == {"b"}


def test_one_that_is_gone_is_forgotten() -> None:
    laggards = LagPolicy[str](LIMIT_S)
    laggards.look(0.0, {"a": sight(101, idle=True), "b": sight(100)})
    laggards.look(20.0, {"a": sight(101, idle=True)})
    assert not laggards.look(21.0, {"a": sight(101, idle=True), "b": sight(101)})


def test_one_that_comes_back_has_time_to_get_to_where_the_others_are() -> None:
    looks = [(float(now), {"a": sight(100 + now)}) for now in range(30)]
    both = [
        (float(now), {"a": sight(100 + now), "b": sight(110)}) for now in range(30, 41)
    ]
    assert late_at(*looks, *both[:-1]) == set()
    assert late_at(*looks, *both) == {"b"}
