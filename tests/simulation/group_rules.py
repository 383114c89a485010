"""Rules of a consumer group's members, as `rules` takes them out of the library."""

from typing import Any

from consumer.mirror import application
from consumer.mirror.write_order import WriteOrder
from consumer.state.partition_state import PartitionState
from consumer.state.session import PartitionSession
from walstream.op import Kind

Patch = tuple[Any, str, object]


def lost_sessions_fail() -> Patch:
    return PartitionSession, "passes", lambda *_: False


def rolled_back_counts() -> Patch:
    return PartitionState, "committed", lambda *_: True


def older_rows_written() -> Patch:
    return WriteOrder, "newest", lambda *_: True


def truncations_passed() -> Patch:
    return application, "_APPLY", {**application._APPLY, Kind.TRUNCATE: lambda *_: None}
