"""Where the state is after a batch; the batch itself asks real servers."""

import uuid

from consumer.group.assigned_partition import Place
from consumer.state.batch import reached
from consumer.state.partition_state import NEVER, StateRow
from consumer.state.plan import Planner
from consumer.state.position import AppliedPosition, SnapshotChunk
from tests.support.loads.op_record import backfilled, insert
from tests.unit.consumer.state.test_plan import messages

_ROW = ["1", "1"]
_BEFORE = StateRow(uuid.UUID(int=1), AppliedPosition(3, 1), 0, "topic", "1/db/0")


def test_the_state_is_where_the_handled_ops_end() -> None:
    read = messages(
        [
            insert(4, 0, _ROW),
            backfilled(9, 2, 5, _ROW),
            insert(2, 0, _ROW),
            None,
            insert(5, 0, _ROW),
            backfilled(9, 2, 6, _ROW),
        ]
    )
    plan = Planner(Place("t", 0), _BEFORE.position, "1/db/0", lambda _: NEVER).plan(
        read, 0, 9
    )
    cut = reached(plan, _BEFORE, 2)
    assert not cut.complete
    assert cut.kept.position == (4, 0)
    assert cut.kept.next_offset == 4  # what lies between was skipped
    assert cut.chunks == {SnapshotChunk(9, 2): 5}
    whole = reached(plan, _BEFORE, 4)
    assert whole.complete
    assert whole.kept.position == (5, 0)
    assert whole.kept.next_offset == 6
    assert whole.chunks == {SnapshotChunk(9, 2): 6}
    assert whole.kept.source == _BEFORE.source
