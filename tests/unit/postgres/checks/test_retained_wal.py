"""WAL that slots hold, from when on somebody should know."""

from dataclasses import replace

import pytest

from tests.support.slot_facts import IDLE
from walstream.finding import Severity
from walstream.postgres.checks.retained_wal import (
    of_another,
    of_copy,
    of_danger,
    of_ours,
)
from walstream.postgres.slot_inventory import SlotFacts, SlotReader

GIB = 1 << 30
SLOT = replace(IDLE, held_bytes=2 * GIB)
READ = replace(SLOT, reader=SlotReader(7, "walstream", "app", None))
LOST = replace(SLOT, invalidation="wal_removed", held_bytes=0)


def test_our_slot_may_hold_what_the_alarm_allows() -> None:
    assert not list(of_ours(SLOT, 2 * GIB))
    (idle,) = of_ours(SLOT, GIB)
    assert "2.0 GiB" in idle.what
    assert "no client reads" in idle.why
    assert idle.repair.command == "walstream run"
    (read,) = of_ours(READ, GIB)
    assert "no client reads" not in read.why
    assert read.repair.command == "walstream status"


@pytest.mark.parametrize(
    ("slot", "limit"),
    [
        (SLOT, -1),  # no limit
        (replace(SLOT, safe_wal_size=GIB), 4 * GIB),
        (replace(LOST, safe_wal_size=0), 4 * GIB),  # too late
    ],
)
def test_slot_that_is_not_about_to_be_lost(slot: SlotFacts, limit: int) -> None:
    assert not list(of_danger(slot, limit))


@pytest.mark.parametrize(
    "slot",
    [
        replace(SLOT, safe_wal_size=GIB // 2),
        replace(SLOT, safe_wal_size=-5, wal_status="unreserved"),
    ],
)
def test_slot_near_its_limit_is_in_danger(slot: SlotFacts) -> None:
    (finding,) = of_danger(slot, 4 * GIB)
    assert finding.severity is Severity.WARNING
    assert "max_slot_wal_keep_size = '8192MB'" in finding.repair.sql


def test_a_lost_copy_of_ours_is_not_to_be_dropped_alone() -> None:
    lost = of_copy(LOST, "wal_removed")
    assert lost.code == "lost-slot"
    assert "stream on" in lost.why
    assert not lost.repair.command
    assert "--replace" in lost.repair.then


def test_slots_of_others_are_named_where_they_endanger_the_server() -> None:
    assert not list(of_another(SLOT, 2 * GIB))
    (idle,) = of_another(SLOT, GIB)
    assert (idle.code, idle.severity) == ("idle-slot", Severity.WARNING)
    (read,) = of_another(READ, GIB)
    assert (read.code, read.severity) == ("slow-slot", Severity.NOTE)
    assert not read.repair.command  # who reads it may need it
    (lost,) = of_another(LOST, GIB)
    assert (lost.code, lost.severity) == ("lost-slot", Severity.WARNING)
    command = lost.repair.of_source("app").command
    assert command == "walstream slots drop s --source app"
    assert not idle.repair.command  # its reader may only be down
    assert "start its reader" in idle.repair.then
    assert "walstream slots drop s" in idle.repair.then
