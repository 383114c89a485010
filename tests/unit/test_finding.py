"""A finding made of an error says what the error says, and ends as it would."""

from walstream.errors import RESET, PermissionLacking, SlotLost, Transient
from walstream.finding import Finding, Severity, note, warning


def test_an_error_is_a_stop_with_its_exit_code_and_repair() -> None:
    error = SlotLost("slot is gone", hint="changes are lost", repair=RESET)
    found = Finding.of(error, "slot-gone", "slot walstream")
    assert found.severity is Severity.STOP
    assert (found.what, found.why) == ("slot is gone", "changes are lost")
    assert found.repair == RESET
    assert found.repair.then == "walstream run, unless it runs"
    assert found.exit_code == 3


def test_a_reason_of_its_own_stands_for_the_hint() -> None:
    error = PermissionLacking("no right", hint="grant it")
    found = Finding.of(error, "role", "role", "because")
    assert found.why == "because"
    assert found.exit_code == 4


def test_what_run_waits_for_says_its_cure_where_one_is_known() -> None:
    error = Transient("it has expired", hint="renew it")
    found = Finding.waits(error, "brokers", "brokers", "run would wait")
    assert (found.why, found.repair.then) == ("run would wait", "renew it")
    error = Transient("no answer", hint="walstream tries again by itself")
    assert not Finding.waits(error, "brokers", "brokers", "run would wait").repair


def test_what_run_bears_ends_nothing() -> None:
    assert warning("a", "b", "c", "d").exit_code == 0
    assert warning("a", "b", "c", "d").severity is Severity.WARNING
    assert note("a", "b", "c", "d").severity is Severity.NOTE
