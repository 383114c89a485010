"""What a failover would find is named before it."""

import pytest

from walstream.postgres.checks.standby import of_standbys


@pytest.mark.parametrize("setting", ["a", "a, b", '"a",b'])
def test_named_slots_that_are_there_are_enough(setting: str) -> None:
    assert not list(of_standbys(setting, ["a", "b", "c"]))


def test_no_name_is_a_warning_with_what_could_be_named() -> None:
    (finding,) = of_standbys("", ["a", "b"])
    assert "is empty" in finding.what
    assert "synchronized_standby_slots = 'a,b'" in finding.repair.sql
    (bare,) = of_standbys(" ", [])
    assert not bare.repair.sql
    assert "primary_slot_name" in bare.repair.then


def test_a_name_without_a_slot_is_a_warning() -> None:
    (finding,) = of_standbys("a,gone", ["a"])
    assert "names gone" in finding.what
