"""The alarm is said once, and when it is over."""

import structlog
from structlog.testing import capture_logs

from walstream.alarm import Alarm
from walstream.postgres.health import Health


def test_the_alarm_is_said_once_in_ten_minutes_and_when_it_is_over() -> None:
    now = [0.0]
    alarm = Alarm("s", 100, lambda: now[0])
    structlog.reset_defaults()
    with capture_logs() as said:
        for at, held in ((0, 200), (10, 300), (600, 300), (610, 50), (620, 50)):
            now[0] = at
            alarm.see(Health(held, "reserved", None, 1000))
    assert [entry["log_level"] for entry in said] == ["error", "error", "info"]
    assert alarm.text == ""


def test_commits_that_wait_are_said_as_often_unless_that_is_meant() -> None:
    now = [0.0]
    alarms = [
        Alarm("s", 100, lambda: now[0], may_be_synchronous=meant)
        for meant in (False, True)
    ]
    structlog.reset_defaults()
    with capture_logs() as said:
        for at, text in (
            (0, "wait"),
            (10, "wait"),
            (600, "wait"),
            (610, ""),
            (620, ""),
        ):
            now[0] = at
            for alarm in alarms:
                alarm.see(Health(50, "reserved", None, 1000, synchronous=text))
    assert [entry["log_level"] for entry in said] == ["error", "error", "info"]
