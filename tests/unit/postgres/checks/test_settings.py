"""Settings of the server that a stream will be sorry for."""

import pytest

from walstream.finding import Severity
from walstream.postgres.checks.settings import of_idleness, of_limit

GIB = 1 << 30


def test_no_limit_is_a_note_and_a_roomy_one_is_none() -> None:
    (finding,) = of_limit(-1 << 20, 10 * GIB, GIB)
    assert finding.severity is Severity.NOTE
    assert "max_slot_wal_keep_size = '51200MB'" in finding.repair.sql
    assert not list(of_limit(50 * GIB, 10 * GIB, 0))
    assert not list(of_limit(10 * GIB + 1, 10 * GIB, 0))


@pytest.mark.parametrize("limit", [0, GIB, 10 * GIB])
def test_limit_below_the_alarm_is_a_warning(limit: int) -> None:
    (finding,) = of_limit(limit, 10 * GIB, 0)
    assert finding.severity is Severity.WARNING
    assert "10.0 GiB" in finding.what


def test_least_alarm_gives_a_limit_that_the_server_takes() -> None:
    (finding,) = of_limit(-1, 1, 0)
    assert "= '1MB'" in finding.repair.sql


def test_new_limit_takes_no_slot_what_it_holds_now() -> None:
    (finding,) = of_limit(-1, 1 << 20, 3 * GIB)
    assert "= '6144MB'" in finding.repair.sql


def test_any_idle_timeout_is_a_warning() -> None:
    assert not list(of_idleness(0))
    (finding,) = of_idleness(60)
    assert "60 s" in finding.what
    assert finding.severity is Severity.WARNING
