"""The plan of a destroy: what counts as a change of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.slot_facts import IDLE
from walstream.admin.known_source import Kept
from walstream.admin.teardown import Teardown

PLAN = Teardown("app", origin="7/d", slot=IDLE, copies=["s_x"], folder=Path("app"))


def test_wal_that_a_slot_holds_is_no_change() -> None:
    later = replace(PLAN, slot=replace(IDLE, held_bytes=9, lag_bytes=9))
    assert later.changes(PLAN) == []


@pytest.mark.parametrize(
    ("later", "what"),
    [
        (replace(PLAN, origin="8/d"), "server"),
        (replace(PLAN, slot=None), "slot"),
        (replace(PLAN, copies=[]), "slots of detached sinks"),
        (replace(PLAN, publications=["p"]), "publications"),
        (replace(PLAN, position=9), "position"),
        (replace(PLAN, folder=None), "state"),
        (replace(PLAN, stays=[Kept("slot o", "why")]), "what stays"),
    ],
)
def test_what_changed_is_named(later: Teardown, what: str) -> None:
    assert later.changes(PLAN) == [what]
