"""Rules of a consumer group's members, as `rules` takes them out of the library."""

from typing import Any

from consumer.group.assigned_partition import Place
from consumer.mirror import application
from consumer.mirror.write_order import WriteOrder
from consumer.state.partition_state import PartitionState
from consumer.state.session import PartitionSession
from consumer.state.topic_guard import TopicGuard
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


def deleted_passed_over() -> Patch:
    check = TopicGuard.check

    def patched(self: TopicGuard, place: Place, _: object, *given: Any) -> str | None:
        return check(self, place, None, *given)

    return TopicGuard, "check", patched
