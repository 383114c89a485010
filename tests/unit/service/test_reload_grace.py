"""How long a refused source is tried again."""

from walstream.service.reload_grace import ReloadGrace


def test_what_never_flowed_has_no_grace() -> None:
    assert not ReloadGrace(600.0).goes_on()


def test_the_grace_counts_from_the_first_refusal() -> None:
    now = [5.0]
    renewal = ReloadGrace(60.0, lambda: now[0])
    renewal.flows()
    now[0] = 1000.0
    assert renewal.goes_on()
    now[0] = 1059.9
    assert renewal.goes_on()
    now[0] = 1060.0
    assert not renewal.goes_on()


def test_what_flows_again_has_the_whole_grace_again() -> None:
    now = [0.0]
    renewal = ReloadGrace(60.0, lambda: now[0])
    renewal.flows()
    assert renewal.is_first()
    assert renewal.goes_on()
    assert not renewal.is_first()
    now[0] = 59.0
    renewal.flows()
    now[0] = 100.0
    assert renewal.goes_on()
    now[0] = 159.0
    assert renewal.goes_on()
