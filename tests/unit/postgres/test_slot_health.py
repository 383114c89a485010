"""The alarm is said once, and when it is over."""

import pytest
import structlog
from structlog.testing import capture_logs

from walstream.postgres.slot_health import (
    Alarm,
    SlotHealth,
    spill_text,
)


def test_the_alarm_is_said_once_in_ten_minutes_and_when_it_is_over() -> None:
    now = [0.0]
    alarm = Alarm("s", 100, lambda: now[0])
    structlog.reset_defaults()
    with capture_logs() as said:
        for at, held in ((0, 200), (10, 300), (600, 300), (610, 50), (620, 50)):
            now[0] = at
            alarm.see(SlotHealth(held, "reserved", None, 1000))
    assert [entry["log_level"] for entry in said] == ["error", "error", "info"]
    assert alarm.text == ""


def test_large_transactions_are_said_as_often_with_what_to_do() -> None:
    now = [0.0]
    alarm = Alarm("s", 100, lambda: now[0], spill_limit=1 << 20)
    structlog.reset_defaults()
    with capture_logs() as said:
        for at, spilled in (
            (0, 1 << 20),
            (1, 3 << 20),
            (10, 4 << 20),
            (601, 3 << 20),
            (610, 0),
            (620, None),
        ):
            now[0] = at
            alarm.see(SlotHealth(50, "reserved", None, 1000, spilled=spilled))
    assert [entry["log_level"] for entry in said] == ["error", "error", "info"]
    text = said[0]["event"]
    assert "3.0 MiB" in text
    assert "slot 's'" in text
    assert "alarm_spill (1.0 MiB)" in text
    assert "pg_stat_activity" in text
    assert "logical_decoding_work_mem" in text
    assert "pg_stat_activity" in said[0]["hint"]
    assert alarm.text == ""  # that of held WAL is another


@pytest.mark.parametrize(
    ("spilled", "limit"), [(None, 100), (0, 100), (100, 100), (1 << 40, 0)]
)
def test_no_limit_and_no_right_to_see_are_no_alarm(
    spilled: int | None, limit: int
) -> None:
    assert spill_text("s", SlotHealth(0, None, None, 0, spilled=spilled), limit) == ""
    assert spill_text("s", None, limit) == ""


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
                alarm.see(SlotHealth(50, "reserved", None, 1000, synchronous=text))
    assert [entry["log_level"] for entry in said] == ["error", "error", "info"]
