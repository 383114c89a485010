"""What is warned of is said once."""

from structlog.testing import capture_logs

from walstream.errors import Repair
from walstream.postgres.warning_once import WarningOnce


def test_each_remark_on_a_table_is_said_once() -> None:
    teller = WarningOnce()
    with capture_logs() as said:
        for _ in range(2):
            teller.warn("public.t", "it is locked")
            teller.warn("public.t", "it has no key", repair=Repair(sql="ALTER …;"))
    assert [entry["event"] for entry in said] == ["it is locked", "it has no key"]
    assert said[1]["repair"] == "ALTER …;"
