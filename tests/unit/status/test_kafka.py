"""The nearest cause is said first; who runs knows better than what was kept."""

import pytest

from walstream.errors import HistoryError, PermissionLacking, StateDamaged, Transient
from walstream.kafka.offsets import GroupOffset, OffsetBounds, Partition
from walstream.sources.figures import RelayFigures
from walstream.sources.report import ErrorReport, RelayReport, WorkerReport
from walstream.status.kafka import ChainedState, GroupSight, StoredRelay
from walstream.status.worker_state import WorkerState

GROUP = GroupSight(
    {
        Partition("a", 0): GroupOffset(3, OffsetBounds(0, 10)),
        Partition("a", 1): GroupOffset(None, OffsetBounds(5, 9)),
    }
)
RUNNING = WorkerState(report=WorkerReport(state="streaming"), pid=7)


def test_what_waits_is_counted_from_where_the_group_is() -> None:
    assert ChainedState(StoredRelay(), None, GROUP).behind == 7 + 4


def test_a_group_that_was_not_asked_is_told_of_by_its_worker() -> None:
    unasked = GroupSight(asked=False)
    assert unasked.behind is None
    told = WorkerState(report=WorkerReport(source=RelayReport(lag_records=12)))
    assert ChainedState(StoredRelay(), told, unasked).behind == 12


@pytest.mark.parametrize(
    ("stored", "gap"), [(None, False), (4, True), (5, False), (9, False), (10, True)]
)
def test_a_gap_is_an_offset_that_is_not_there(stored: int | None, gap: bool) -> None:
    assert GroupOffset(stored, OffsetBounds(5, 9)).gap is gap


@pytest.mark.parametrize(
    ("kept", "group", "expected"),
    [
        (StoredRelay(), GroupSight(), ("new", 0)),
        (StoredRelay(RelayFigures(ops=1)), GroupSight(), ("stopped", 0)),
        (
            StoredRelay(problem=StateDamaged("torn")),
            GroupSight(unreachable=Transient("away")),
            ("failed", StateDamaged.exit_code),
        ),
        (
            StoredRelay(error=ErrorReport(final=True, exit_code=4)),
            GroupSight(),
            ("failed", PermissionLacking.exit_code),
        ),
        (StoredRelay(), GroupSight(unreachable=Transient("away")), ("stopped", 5)),
        (StoredRelay(), GroupSight(lost=HistoryError("deleted")), ("stopped", 3)),
    ],
)
def test_at_rest_the_worst_is_told(
    kept: StoredRelay, group: GroupSight, expected: tuple[str, int]
) -> None:
    assert ChainedState(kept, None, group).state() == expected


@pytest.mark.parametrize(("told", "said"), [(None, ["deleted"]), (RUNNING, [])])
def test_who_runs_meets_a_gap_itself(told: WorkerState | None, said: list[str]) -> None:
    seen = ChainedState(StoredRelay(), told, GroupSight(lost=HistoryError("deleted")))
    state, _ = seen.state()
    assert list(seen.problems(state)) == said
