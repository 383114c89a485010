"""What the sinks of a source hear beside the ops; the rest asks real servers."""

from types import SimpleNamespace
from typing import Any, cast

from walstream.kafka.topic import Topic
from walstream.sources.sinks import SinkSet


class Names:
    """A router that drops one table."""

    def topic(self, schema: str, table: str) -> str | None:
        return None if table == "dropped" else f"{schema}.{table}"


def test_topics_whose_rows_spark_sent_are_in_use() -> None:
    topics = {name: Topic(name, name, 1, 1000) for name in ("s.filled", "s.idle")}
    sinks: Any = SimpleNamespace(_routers={"kafka": Names()})
    sink: Any = SimpleNamespace(name="kafka", topics=topics)
    tables = [("s", "filled"), ("s", "dropped"), ("s", "away")]
    SinkSet.written(cast("SinkSet", sinks), [sink], iter(tables))
    assert topics["s.filled"].was_stamped()
    assert not topics["s.idle"].was_stamped()
