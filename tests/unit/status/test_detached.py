"""What a detached sink holds, and why, is said in a line."""

from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    COPYING,
    DROPPED,
    DetachedSink,
)
from walstream.status.detached import DetachedStatus


def sight(phase: str, held: int | None = None, error: str = "") -> DetachedStatus:
    return DetachedStatus(
        DetachedSink(phase, "s_kafka", 0.0, "it lags", 0), held, error
    )


def test_a_copy_of_the_slot_and_what_it_holds_are_named() -> None:
    assert sight(AWAY, 3 << 20).problem("kafka") == (
        "sink 'kafka' has been detached since 1970-01-01T00:00:00+00:00: it lags. It "
        "streams from slot 's_kafka', which retains 3.0 MiB of WAL"
    )


def test_the_last_error_stands_for_why_it_left() -> None:
    said = sight(AWAY, error="the broker is away").problem("kafka")
    assert "the broker is away. It streams" in said
    assert "WAL" not in said


def test_a_copy_that_is_lost_is_said_not_to_stream() -> None:
    note = DetachedSink(AWAY, "s_kafka", 0.0, "it lags", 0)
    said = DetachedStatus(note, 0, "cannot be read", lost=True).problem("kafka")
    assert "cannot be read. Its slot 's_kafka' is lost: take the sink out" in said
    assert "streams from" not in said


def test_a_sink_without_a_copy_yet_holds_the_source() -> None:
    seen = sight(COPYING)
    assert seen.state == "detached"
    assert "position waits until it has a copy" in seen.problem("kafka")


def test_a_sink_that_was_given_up_gets_nothing() -> None:
    seen = sight(DROPPED)
    assert seen.state == "dropped"
    assert seen.problem("kafka").endswith("gets nothing: it lags")
