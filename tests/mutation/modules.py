"""The modules whose tests are tested, each with the tests of its own."""

from typing import Final

_PIPELINE: Final = "walstream/pipeline"
_UNIT: Final = "tests/unit"
_PROPERTY: Final = "tests/property"

MODULES: Final[dict[str, tuple[str, ...]]] = {
    f"{_PIPELINE}/ledger.py": (
        f"{_UNIT}/pipeline/test_ledger.py",
        f"{_PROPERTY}/test_ledger.py",
    ),
    f"{_PIPELINE}/checkpoint.py": (f"{_UNIT}/pipeline/test_checkpoint.py",),
    f"{_PIPELINE}/assembler.py": (
        f"{_UNIT}/pipeline/test_assembler.py",
        f"{_UNIT}/pipeline/test_old_row.py",
        f"{_UNIT}/pipeline/test_relation_cache.py",
    ),
    f"{_PIPELINE}/pgoutput/cursor.py": (
        f"{_UNIT}/pipeline/pgoutput/test_cursor.py",
        f"{_UNIT}/pipeline/pgoutput/test_decode.py",
        f"{_PROPERTY}/test_pgoutput.py",
    ),
    f"{_PIPELINE}/pgoutput/decode.py": (
        f"{_UNIT}/pipeline/pgoutput/test_decode.py",
        f"{_UNIT}/pipeline/pgoutput/test_golden.py",
        f"{_PROPERTY}/test_pgoutput.py",
    ),
    f"{_PIPELINE}/pgoutput/frame.py": (f"{_UNIT}/pipeline/pgoutput/test_frame.py",),
    f"{_PIPELINE}/pgoutput/large_value.py": (
        f"{_UNIT}/pipeline/pgoutput/test_large_value.py",
        f"{_PROPERTY}/test_large.py",
    ),
    f"{_PIPELINE}/pgoutput/messages.py": (
        f"{_UNIT}/pipeline/pgoutput/test_messages.py",
        f"{_UNIT}/pipeline/pgoutput/test_decode.py",
    ),
    "walstream/postgres/start_table.py": (f"{_UNIT}/postgres/test_start_table.py",),
    "walstream/records/partitioner.py": (
        f"{_UNIT}/records/test_partitioner.py",
        f"{_PROPERTY}/test_partitioner.py",
    ),
    "walstream/sources/sql/gap_ledger.py": (
        f"{_UNIT}/sources/sql/test_gap_ledger.py",
        f"{_PROPERTY}/test_gaps.py",
    ),
    "walstream/sources/sql/gap_clock.py": (f"{_UNIT}/sources/sql/test_gap_clock.py",),
    "walstream/sources/sql/intervals.py": (f"{_UNIT}/sources/sql/test_intervals.py",),
    "consumer/state/plan.py": (
        f"{_UNIT}/consumer/state/test_plan.py",
        f"{_PROPERTY}/test_consumer_batches.py",
    ),
    "consumer/state/position.py": (f"{_UNIT}/consumer/state/test_position.py",),
    "consumer/state/batch.py": (
        f"{_UNIT}/consumer/state/test_batch.py",
        f"{_PROPERTY}/test_consumer_batches.py",
    ),
    "consumer/state/source.py": (f"{_UNIT}/consumer/state/test_source.py",),
    "consumer/state/topic_guard.py": (f"{_UNIT}/consumer/state/test_topic_guard.py",),
    "consumer/state/truncate_barrier.py": (
        f"{_UNIT}/consumer/state/test_truncate_barrier.py",
    ),
}
