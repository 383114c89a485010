"""A heartbeat is due once an interval, and says the time."""

from tests.support.runtime import altered
from walstream.formats.debezium import DebeziumOptions
from walstream.kafka.debezium_heartbeat import Heartbeats
from walstream.op import postgres_time


def test_one_is_due_at_once_and_then_once_an_interval() -> None:
    moments = iter((100.0, 109.9, 110.0, 119.9))
    with altered(monotonic=lambda: next(moments), time=lambda: 1_764_000_000.5):
        beats = Heartbeats(DebeziumOptions("app"), 10.0)
        first, early, second, late = (beats.due() for _ in range(4))
    assert early is None
    assert late is None
    assert second is not None
    assert first is not None
    record, op = first
    assert record.topic == "__debezium-heartbeat.app"
    assert record.key == b'{"serverName":"app"}'
    assert record.value == b'{"ts_ms":1764000000500}'
    assert op.commit_time == postgres_time(1_764_000_000.5)
