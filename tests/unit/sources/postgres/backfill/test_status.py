"""What `status` says of a backfill."""

import pytest

from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.backfill.status import backfill_status, problems
from walstream.sources.report import BackfillReport

PROGRESS = BackfillReport(
    rows_before=20,
    tables=1,
    chunks=2,
    chunks_done=1,
    rows=50,
    bytes=1000,
    rows_per_s=5.0,
    share=0.5,
    left_s=10.0,
)


def test_a_source_that_never_had_one_says_nothing() -> None:
    assert backfill_status(None, None) is None
    assert problems("app", None) == []


@pytest.mark.parametrize(
    ("record", "told", "state"),
    [
        (BackfillProgress(9, ("public.a",)), PROGRESS, "running"),
        (BackfillProgress(9, ("public.a",)), None, "waiting"),
        (BackfillProgress(9, (), rows=70), None, "done"),
        (BackfillProgress(9, (), failed={"public.a": "broken"}), None, "incomplete"),
    ],
)
def test_its_state_is_told(
    record: BackfillProgress, told: BackfillReport | None, state: str
) -> None:
    found = backfill_status(record, told)
    assert found is not None
    assert found.state == state
    assert found.rows == (70 if told else record.rows)
    assert found.left_s == (10.0 if told else None)


def test_a_table_that_was_given_up_comes_with_the_command() -> None:
    record = BackfillProgress(9, (), failed={"public.a": "chunk 2: broken"})
    (said,) = problems("app", record)
    assert "chunk 2: broken" in said
    assert said.endswith("walstream backfill --source app public.a")
