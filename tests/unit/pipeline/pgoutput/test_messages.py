"""Messages are what the manual names, and nothing more."""

import dataclasses

import pytest

from walstream.pipeline import pgoutput
from walstream.pipeline.pgoutput import messages

KINDS = [
    messages.Begin,
    messages.Commit,
    messages.Origin,
    messages.Relation,
    messages.Type,
    messages.Insert,
    messages.Update,
    messages.Delete,
    messages.Truncate,
    messages.LogicalMessage,
]


@pytest.mark.parametrize("kind", KINDS)
def test_message_has_slots_and_compares_by_value(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    # slots, written or compiled
    assert all(
        hasattr(vars(kind)[one.name], "__set__") for one in dataclasses.fields(kind)
    )
    assert kind.__eq__ is not object.__eq__


def test_package_offers_every_message() -> None:
    assert {kind.__name__ for kind in KINDS} <= set(pgoutput.__all__)
