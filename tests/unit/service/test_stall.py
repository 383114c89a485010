"""What of a worker stalls is said in time, and nothing that moves."""

from typing import Any

from walstream.service.stall import StallWatch
from walstream.sources.report import WorkerReport, of_document

FAR = 1 << 20


def told(**changed: Any) -> WorkerReport:
    sink = {"waiting": False, "in_flight": 0, "records": 5, **changed.pop("sink", {})}
    health = {"retained_wal": 0, "wal_status": None, "safe_wal_size": None}
    return of_document(
        {
            "state": "streaming",
            "resume": "0/1000",
            "ops": 1,
            "received": 0x1000,
            "turn_s": 0.1,
            "sinks": {"kafka": sink},
            **changed,
            "health": {**health, "flush_lsn": changed.get("flush_lsn", 0x1000)},
        }
    )


def watched(report: WorkerReport, until_s: int = 30) -> float | None:
    """Look each second at a report that stays so; tell when it first was said."""
    watch = StallWatch()
    for second in range(until_s + 1):
        if watch.look(float(second), report):
            return second
    return None


def test_an_idle_stream_never_stalls() -> None:
    assert watched(told(), 500) is None


def test_brokers_that_do_not_answer_are_named_soon() -> None:
    assert watched(told(sink={"waiting": True})) == 5
    (text,) = StallWatch().look(0.0, WorkerReport()) or ["none"]
    assert text == "none"


def test_why_brokers_do_not_answer_is_said() -> None:
    outage = {"why": "SASL authentication error", "hint": "correct it", "refused": True}
    away, watch = told(sink={"waiting": True, "outage": outage}), StallWatch()
    watch.look(0.0, away)
    (text,) = watch.look(6.0, away)
    assert text.endswith("for 6 s: SASL authentication error: correct it")


def test_a_handler_that_cannot_go_on_is_no_fault_of_kafkas() -> None:
    held = told(sink={"waiting": True, "handler_waits": True, "in_flight": 500})
    watch = StallWatch()
    said = {text for second in range(30) for text in watch.look(float(second), held)}
    assert any("waits for a handler" in text for text in said)
    assert not any("Kafka" in text for text in said)


def test_records_that_nobody_takes_are_said_and_named() -> None:
    stuck = told(sink={"in_flight": 7})
    watch = StallWatch()
    said = [text for second in range(20) for text in watch.look(float(second), stuck)]
    assert said
    assert all("sink 'kafka' is stuck: 7 records" in text for text in said)


def test_records_that_are_taken_slowly_are_no_stall() -> None:
    watch = StallWatch()
    for second in range(60):
        sink = {"in_flight": 1000, "records": second // 10}
        assert not watch.look(float(second), told(sink=sink))


def test_wal_that_nothing_follows_is_a_stall() -> None:
    behind = told(flush_lsn=FAR)
    found = watched(behind)
    assert found is not None
    assert 15 <= found <= 17


def test_a_stream_that_moves_behind_the_server_is_none() -> None:
    watch = StallWatch()
    for second in range(60):
        report = told(flush_lsn=FAR + second, ops=second // 10)
        assert not watch.look(float(second), report)


def test_wal_that_moves_while_the_position_follows_is_none() -> None:
    watch = StallWatch()
    for second in range(60):
        place = 0x1000 + 100 * second
        report = told(flush_lsn=place + 100, resume=f"0/{place:X}")
        assert not watch.look(float(second), report)


def test_a_start_that_does_not_end_and_a_loop_that_hangs_are_said() -> None:
    assert watched(told(state="starting")) == 20
    assert watched(told(turn_s=10.0)) == 0


def test_a_start_that_waits_for_kafka_names_kafka_alone() -> None:
    outage = {"why": "127.0.0.1:9092: connection refused", "hint": "start it"}
    report = told(state="starting", sink={"waiting": True, "outage": outage})
    watch = StallWatch()
    for second in range(60):
        said = watch.look(float(second), report)
    assert len(said) == 1
    assert "127.0.0.1:9092: connection refused" in said[0]


def test_what_was_away_meanwhile_is_not_stuck_at_its_return() -> None:
    watch = StallWatch()
    stuck = told(sink={"in_flight": 7, "waiting": True}, flush_lsn=FAR, ops=2)
    assert not watch.look(0.0, stuck)
    assert not watch.look(1.0, stuck)
    for second in range(2, 60):  # its server is away
        assert not watch.look(float(second), WorkerReport(state="waiting"))
    assert not watch.look(60.0, stuck)
    waits, stalls = watch.look(80.0, stuck)  # once: the sink is not stuck, too
    assert "waits for Kafka" in waits
    assert "stream stalls" in stalls


def test_a_stream_that_a_limit_holds_is_none() -> None:
    """For a minute, after a row that was a minute's worth of it."""
    held = told(flush_lsn=FAR, held_by="max_bytes_per_second")
    assert watched(held, 60) is None
    assert watched(told(flush_lsn=FAR)) is not None
