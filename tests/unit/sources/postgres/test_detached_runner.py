"""Where a detached sink's slot is lost, what is said concerns that sink alone."""

import pytest

from walstream.errors import RESET, SINK_AGAIN, Repair, SlotLost
from walstream.sources.postgres.detached_runner import lost_alone


@pytest.mark.parametrize("repair", [RESET, RESET.of_source("shop")])
def test_a_reset_of_its_source_is_not_advised(repair: Repair) -> None:
    """It would drop the slot and the position of the sinks that stream on."""
    with pytest.raises(SlotLost, match="is gone") as found, lost_alone("b", "shop"):
        raise SlotLost("slot 's_b' is gone", hint="a gap", repair=repair)
    assert found.value.repair == SINK_AGAIN
    assert "reset" not in found.value.hint
    assert "--replace" in found.value.hint


def test_another_reader_is_to_be_found() -> None:
    other = Repair(command="walstream slots", then="remove this instance")
    with pytest.raises(SlotLost) as found, lost_alone("b", "shop"):
        raise SlotLost("another instance reads it", repair=other)
    assert found.value.repair == other
