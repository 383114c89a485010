"""Whether and when a worker is started again."""

import signal
from itertools import pairwise

import pytest

from walstream.config.run_options import ALL_DONE
from walstream.service.reload_grace import ReloadGrace
from walstream.service.restart_schedule import RestartSchedule

NOW = 1000.0


def schedule(grace_s: float = 60.0, *, of_sink: bool = False) -> RestartSchedule:
    return RestartSchedule(ReloadGrace(grace_s, lambda: NOW), of_sink=of_sink)


@pytest.mark.parametrize(
    ("code", "lived_s", "of_sink", "stopping", "final"),
    [
        (ALL_DONE, 1.0, False, False, 0),
        (1, 1.0, False, False, None),
        (2, 1.0, False, False, 2),
        (5, 1.0, False, False, 5),
        (3, 1.0, True, False, None),  # a detached sink is tried for ever
        (3, 1.0, True, True, 3),
        (0, 1.0, False, True, 0),
        (1, 1.0, False, True, 1),
        (-signal.SIGKILL, 1.0, False, False, None),
        (-signal.SIGKILL, 1.0, False, True, 1),
        (-signal.SIGBUS, 29.0, False, False, 3),  # its state folder is damaged
        (-signal.SIGBUS, 29.0, True, False, None),
        (-signal.SIGBUS, 30.0, False, False, None),
    ],
)
def test_an_end_is_final_where_no_other_try_would_end_better(
    code: int, lived_s: float, final: int | None, *, of_sink: bool, stopping: bool
) -> None:
    restarts = schedule(of_sink=of_sink)
    wait_s = restarts.end(code, lived_s, NOW, stopping=stopping)
    assert restarts.exit_code == final
    assert (wait_s is None) == (final is not None)
    assert restarts.deaths == (0 if wait_s is None else 1)
    assert restarts.died_with == (None if wait_s is None else code)
    assert not restarts.is_due(NOW)
    assert restarts.is_due(NOW + 1) == (final is None)


def waits(restarts: RestartSchedule, count: int, lived_s: float) -> list[float]:
    found = [restarts.end(1, lived_s, NOW, stopping=False) for _ in range(count)]
    return [wait_s for wait_s in found if wait_s is not None]


def test_who_dies_again_and_again_waits_longer_up_to_half_a_minute() -> None:
    found = waits(schedule(), 12, lived_s=1.0)
    assert len(found) == 12
    assert found[0] <= 0.2
    assert all(one < two for one, two in pairwise(found[:8]))
    assert all(22.5 <= one <= 30.0 for one in found[9:])


def test_who_lived_for_long_begins_with_short_waits_again() -> None:
    restarts = schedule()
    waits(restarts, 8, lived_s=1.0)
    assert waits(restarts, 3, lived_s=31.0) == pytest.approx([0.2] * 3, rel=0.3)


def test_who_is_hurried_waits_no_longer() -> None:
    restarts = schedule()
    waits(restarts, 8, lived_s=1.0)
    assert not restarts.is_due(NOW + 10)
    restarts.hurry()
    assert restarts.is_due(NOW)
    assert restarts.put_off(NOW) <= 0.2


def test_who_was_refused_is_tried_again_while_its_grace_lasts() -> None:
    now = [NOW]
    restarts = RestartSchedule(ReloadGrace(60.0, lambda: now[0]), of_sink=False)
    restarts.renewal.flows()
    waits(restarts, 8, lived_s=1.0)
    restarts.end(4, 1.0, NOW, stopping=False)
    assert restarts.needs_operator
    wait_s = restarts.renew(NOW)
    assert wait_s is not None
    assert wait_s <= 0.2  # whatever it waited for before
    assert (restarts.exit_code, restarts.died_with) == (None, 4)
    restarts.end(4, 1.0, NOW, stopping=False)
    now[0] += 60
    assert restarts.renew(NOW) is None
    assert restarts.exit_code == 4
    assert restarts.deaths == 8


def test_who_never_streamed_is_not_tried_again() -> None:
    restarts = schedule()
    restarts.end(4, 1.0, NOW, stopping=False)
    assert restarts.renew(NOW) is None
    assert restarts.exit_code == 4
