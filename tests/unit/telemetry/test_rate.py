"""A rate is that of the last ten seconds, whatever came before."""

from walstream.telemetry.rate import Rate


def test_one_look_knows_no_rate() -> None:
    assert Rate().of(5.0, 1000) == 0


def test_it_is_the_growth_a_second() -> None:
    rate = Rate()
    rate.of(100.0, 7)
    assert rate.of(102.0, 27) == 10
    assert rate.of(102.0, 27) == 10  # twice at one moment


def test_what_is_long_ago_does_not_count() -> None:
    rate = Rate()
    rate.of(0.0, 0)
    rate.of(10.0, 1000)
    assert rate.of(20.0, 1000) == 0
    assert rate.of(60.0, 5000) == 0  # nobody looked meanwhile: it is not known
