"""What could not be stored is stored with what comes next."""

import pytest

from walstream.errors import Transient
from walstream.pipeline.state_writer import StateWriter
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty

LOST = Transient("cannot write: ENOSPC")


@pytest.mark.parametrize("fault", [Reject, FailAfterWrite])
def test_the_next_write_makes_up_for_one_that_failed(
    fault: type[Reject | FailAfterWrite],
) -> None:
    store = MemoryStore()
    writer = StateWriter(faulty(store, write=[fault(LOST)]))
    with pytest.raises(Transient):
        writer.write({"a": 1, "b": 1})
    writer.write({"b": 2})
    assert [store.read(name) for name in "ab"] == [1, 2]


def test_nothing_is_written_where_nothing_is_new() -> None:
    store = MemoryStore()
    writer = StateWriter(faulty(store, write=[None, Reject(LOST), None]))
    writer.write({"a": 1})
    writer.write({})
    with pytest.raises(Transient):  # it is the first that is written since
        writer.write({"a": 2})
    writer.write({})
    assert store.read("a") == 2
