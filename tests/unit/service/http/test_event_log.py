"""Events are the differences of two snapshots, and a bounded number of them."""

from dataclasses import replace
from typing import Any

from tests.unit.service.http.conftest import snapshot, told
from walstream.service.http.event_log import EVENTS, EventLog


def error(at: float, text: str, *, final: bool = False) -> dict[str, Any]:
    return {"at": at, "error": text, "exit_code": 5, "final": final}


def whats(log: EventLog) -> list[str]:
    return [event.what for event in log.events]


def see(log: EventLog, at: float, **changed: Any) -> None:
    log.see(replace(snapshot(told(**changed)), at=at))


def test_a_restart_is_told_with_the_exit_code() -> None:
    log = EventLog()
    see(log, 1.0)
    see(log, 2.0, pid=None, died_with=-9)
    see(log, 3.0, pid=8)
    died = "worker process 7 ended with exit code -9; it is started again"
    assert died in whats(log)
    assert "worker process 8 started" in whats(log)
    assert whats(log).count("streaming") == 2
    assert "waiting" not in whats(log)  # the process's end says so


def test_nothing_new_is_no_event() -> None:
    log = EventLog()
    see(log, 1.0)
    events = log.events
    see(log, 2.0)
    assert log.events is events


def test_an_error_that_comes_again_is_counted() -> None:
    log = EventLog()
    for at in (1.0, 61.0, 121.0):
        see(log, at, state="waiting", error=error(at, "PostgreSQL is away"))
    found = [event for event in log.events if event.what == "PostgreSQL is away"]
    assert [(event.at, event.count, event.look) for event in found] == [
        (121.0, 3, "bad")
    ]


def test_an_error_that_was_absent_for_a_while_is_not_a_new_one() -> None:
    """A new process knows of it only when its state is open."""
    log = EventLog()
    see(log, 1.0, exit_code=4, pid=None, error=error(1.0, "no right", final=True))
    see(log, 2.0, pid=8, state="starting")
    see(log, 3.0, pid=8, state="starting", error=error(1.0, "no right"))
    log.see(replace(snapshot(told()), at=4.0, sources={}))
    see(log, 5.0, pid=8, state="waiting", error=error(1.0, "no right"))
    found = [event for event in log.events if "no right" in event.what]
    assert [(event.what, event.count) for event in found] == [("stopped: no right", 1)]
    see(log, 6.0, pid=8, state="waiting", error=error(6.0, "no right"))
    assert "no right" in whats(log)


def test_an_error_that_stopped_the_source_says_so() -> None:
    log = EventLog()
    see(log, 1.0, exit_code=4, pid=None, error=error(1.0, "no right", final=True))
    assert {"stopped: no right", "failed"} <= set(whats(log))


def test_a_sink_that_waits_detaches_and_returns() -> None:
    log = EventLog()
    sink = {"waiting": True, "outage": {"why": "connection refused", "hint": ""}}
    away = {"kafka": {"phase": "away", "slot": "c", "since": 1.0, "why": "it lags"}}
    see(log, 1.0)
    see(log, 2.0, sinks={"kafka": sink})
    see(log, 3.0)
    see(log, 4.0, sinks={}, away=away)
    see(log, 5.0)
    assert whats(log)[:4] == [
        "sink kafka is attached again",
        "sink kafka is detached: it lags",
        "sink kafka delivers again",
        "sink kafka waits for Kafka: connection refused",
    ]


def test_a_worker_that_starts_waits_for_kafka_only_when_kafka_is_away() -> None:
    log = EventLog()
    sink: dict[str, Any] = {"waiting": True}
    see(log, 1.0, state="starting", sinks={"kafka": sink})
    assert whats(log) == ["worker process 7 started"]
    sink["outage"] = {"why": "connection refused", "hint": ""}
    see(log, 2.0, state="starting", sinks={"kafka": sink})
    assert whats(log)[0] == "sink kafka waits for Kafka: connection refused"
    # another process begins, and does not know yet: it does not deliver
    see(log, 3.0, pid=8, state="starting", sinks={"kafka": {"waiting": True}})
    assert "sink kafka delivers again" not in whats(log)


def test_events_and_their_texts_are_bounded() -> None:
    log = EventLog()
    for number in range(3 * EVENTS):
        text = f"{number} " + "x" * 1000
        see(log, float(number), error=error(float(number + 1), text))
    assert len(log.events) == EVENTS
    assert max(map(len, whats(log))) == 300
