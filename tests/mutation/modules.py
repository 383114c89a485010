"""The modules whose tests are tested, each with the tests of its own."""

from typing import Final

_PIPELINE: Final = "walstream/pipeline"
_STATE: Final = "walstream/state"
_CONSUMER: Final = "consumer/state"
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
    f"{_CONSUMER}/plan.py": (
        f"{_UNIT}/{_CONSUMER}/test_plan.py",
        f"{_PROPERTY}/test_consumer_batches.py",
    ),
    f"{_CONSUMER}/position.py": (f"{_UNIT}/{_CONSUMER}/test_position.py",),
    f"{_CONSUMER}/handler_pipeline.py": (
        f"{_UNIT}/{_CONSUMER}/test_handler_pipeline.py",
    ),
    f"{_CONSUMER}/batch.py": (
        f"{_UNIT}/{_CONSUMER}/test_batch.py",
        f"{_PROPERTY}/test_consumer_batches.py",
    ),
    f"{_CONSUMER}/source.py": (f"{_UNIT}/{_CONSUMER}/test_source.py",),
    f"{_CONSUMER}/topic_guard.py": (f"{_UNIT}/{_CONSUMER}/test_topic_guard.py",),
    f"{_CONSUMER}/barrier_wait.py": (f"{_UNIT}/{_CONSUMER}/test_barrier_wait.py",),
    f"{_CONSUMER}/truncate_barrier.py": (
        f"{_UNIT}/{_CONSUMER}/test_truncate_barrier.py",
    ),
    f"{_CONSUMER}/partition_state.py": (
        f"{_UNIT}/{_CONSUMER}/test_partition_state.py",
        f"{_UNIT}/{_CONSUMER}/test_truncate_barrier.py",
    ),
    f"{_CONSUMER}/session.py": (f"{_UNIT}/{_CONSUMER}/test_session.py",),
    f"{_CONSUMER}/partition.py": (f"{_UNIT}/{_CONSUMER}/test_partition.py",),
    f"{_CONSUMER}/advisory_lock.py": (f"{_UNIT}/{_CONSUMER}/test_advisory_lock.py",),
    f"{_CONSUMER}/row_fold.py": (
        f"{_UNIT}/{_CONSUMER}/test_row_fold.py",
        f"{_PROPERTY}/test_whole_rows.py",
    ),
    f"{_CONSUMER}/row_keys.py": (f"{_UNIT}/{_CONSUMER}/test_row_keys.py",),
    f"{_CONSUMER}/connection.py": (f"{_UNIT}/{_CONSUMER}/test_connection.py",),
    f"{_CONSUMER}/connection_pool.py": (
        f"{_UNIT}/{_CONSUMER}/test_connection_pool.py",
    ),
    "walstream/sources/kafka/offset_ledger.py": (
        f"{_UNIT}/sources/kafka/test_offset_ledger.py",
        f"{_PROPERTY}/test_offsets.py",
    ),
    "walstream/sources/kafka/offset_metadata.py": (
        f"{_UNIT}/sources/kafka/test_offset_metadata.py",
    ),
    f"{_PIPELINE}/interleave.py": (f"{_UNIT}/pipeline/test_interleave.py",),
    f"{_PIPELINE}/stream_end.py": (f"{_UNIT}/pipeline/test_stream_end.py",),
    f"{_PIPELINE}/relation_cache.py": (
        f"{_UNIT}/pipeline/test_relation_cache.py",
        f"{_UNIT}/pipeline/test_assembler.py",
        f"{_UNIT}/pipeline/test_old_row.py",
    ),
    f"{_PIPELINE}/fanout.py": (
        f"{_UNIT}/pipeline/test_fanout.py",
        f"{_UNIT}/pipeline/test_reattach.py",
        f"{_UNIT}/pipeline/test_loop.py",
        f"{_PROPERTY}/test_pipeline.py",
    ),
    f"{_PIPELINE}/loop.py": (
        f"{_UNIT}/pipeline/test_message_flow.py",
        f"{_UNIT}/pipeline/test_loop.py",
        f"{_PROPERTY}/test_pipeline.py",
    ),
    f"{_PIPELINE}/state_writer.py": (f"{_UNIT}/pipeline/test_state_writer.py",),
    f"{_PIPELINE}/state_document.py": (f"{_UNIT}/pipeline/test_state_document.py",),
    "walstream/records/router.py": (
        f"{_UNIT}/records/test_router.py",
        f"{_PROPERTY}/test_routing.py",
    ),
    "walstream/records/key.py": (f"{_UNIT}/records/test_key.py",),
    "walstream/formats/op.py": (
        f"{_UNIT}/formats/test_op.py",
        f"{_PROPERTY}/test_op.py",
    ),
    f"{_STATE}/store.py": (f"{_UNIT}/state/test_store.py",),
    f"{_STATE}/lmdb_environment.py": (f"{_UNIT}/state/test_lmdb_environment.py",),
    f"{_STATE}/lmdb_creation.py": (f"{_UNIT}/state/test_lmdb_creation.py",),
    f"{_STATE}/lmdb_check.py": (f"{_UNIT}/state/test_lmdb_check.py",),
    f"{_STATE}/lock.py": (f"{_UNIT}/state/test_lock.py",),
    f"{_STATE}/migration.py": (f"{_UNIT}/state/test_migration.py",),
}

# of these only what confirms: functions of the loop; what else it does, others drive
PARTS: Final[dict[str, tuple[str, ...]]] = {
    f"{_PIPELINE}/loop.py": tuple(
        f"Pipeline.{name}:"
        for name in (
            *("run", "_drain", "_process", "_begin", "_message", "_commit"),
            *("_keepalive", "_send", "_flush_ops", "_advance", "confirmed", "reached"),
        )
    )
}
