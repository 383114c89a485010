"""The epoch is 0 until a reset counts it."""

from walstream.sources.epoch import EPOCH, EpochNumber, epoch_of
from walstream.testing import MemoryStore


def test_an_epoch_is_read_as_it_was_counted_and_begins_with_none() -> None:
    assert epoch_of(MemoryStore()) == 0
    assert epoch_of(MemoryStore(EPOCH.entry(EpochNumber(3)))) == 3
    assert epoch_of(MemoryStore({"epoch": {}})) == 0
