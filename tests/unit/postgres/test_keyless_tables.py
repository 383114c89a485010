"""Which tables went out without a key is kept until somebody is told."""

from walstream.postgres.keyless_tables import KeylessTables
from walstream.testing import MemoryStore


def test_a_table_that_has_its_key_is_not_kept() -> None:
    positions = MemoryStore()
    keyless = KeylessTables(positions)
    assert keyless.knows(7, keyed=True)
    assert not keyless.knows(7, keyed=False)
    keyless.meet(7, keyed=True)
    assert keyless.regained() == []
    assert positions.names("keyless/") == []


def test_one_that_gets_its_key_again_is_told_of_once() -> None:
    positions = MemoryStore()
    keyless = KeylessTables(positions)
    keyless.meet(7, keyed=False)
    keyless.meet(8, keyed=False)
    assert keyless.knows(7, keyed=False)
    assert keyless.regained() == []
    again = KeylessTables(positions)  # after a crash
    assert not again.knows(7, keyed=True)
    again.meet(7, keyed=True)
    assert KeylessTables(positions).regained() == again.regained() == [7]
    again.told(7)
    assert KeylessTables(positions).regained() == again.regained() == []
    assert positions.names("keyless/") == ["keyless/8"]


def test_one_whose_key_goes_once_more_is_kept_though_it_was_told() -> None:
    keyless = KeylessTables(MemoryStore())
    for keyed in (False, True, False):
        keyless.meet(7, keyed=keyed)
    keyless.told(7)
    assert keyless.regained() == []
    keyless.meet(7, keyed=True)
    assert keyless.regained() == [7]
