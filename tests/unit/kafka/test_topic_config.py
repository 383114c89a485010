"""What a topic's configuration means: severity, exit code, and the command."""

import pytest

from walstream.finding import Severity
from walstream.kafka.cluster import FoundTopic
from walstream.kafka.topic_config import remarks_of
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topic_finding import Remark, Tools

DAY = 86400.0
DEFAULTS = {
    "min.insync.replicas": "1",
    "max.message.bytes": "1048588",
    "retention.ms": "604800000",
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
}


def remarks(
    replicas: int = 1,
    age_s: float | None = None,
    meant: str = "delete",
    **changed: object,
) -> list[Remark]:
    spelt = {key.replace("_", "."): str(text) for key, text in changed.items()}
    topic = FoundTopic("t", "id", 1, replicas, None, {**DEFAULTS, **spelt})
    creation = Creation(allowed=True, config={"cleanup.policy": meant})
    return list(remarks_of(topic, creation, age_s, Tools("h:1")))


def settings(found: list[Remark]) -> list[str]:
    return [one.repair.command.partition("--add-config ")[2] for one in found]


def test_the_defaults_are_fine() -> None:
    assert remarks() == []
    assert remarks(age_s=6 * DAY) == []
    assert remarks(retention_ms=-1, age_s=1e9) == []


@pytest.mark.parametrize(
    ("wanted", "replicas", "cure"), [(2, 1, 1), (3, 2, 1), (4, 3, 2)]
)
def test_more_insync_replicas_than_there_are_would_be_waited_for(
    wanted: int, replicas: int, cure: int
) -> None:
    (found,) = remarks(replicas, min_insync_replicas=wanted)
    assert (found.severity, found.exit_code) == (Severity.STOP, 5)
    assert settings([found]) == [f"min.insync.replicas={cure}"]


def test_one_insync_replica_of_three_is_a_note() -> None:
    (found,) = remarks(3)
    assert found.severity is Severity.NOTE
    assert settings([found]) == ["min.insync.replicas=2"]
    assert remarks(2) == []


def test_small_records_are_a_warning() -> None:
    (found,) = remarks(max_message_bytes=(1 << 20) - 1)
    assert found.severity is Severity.WARNING
    assert settings([found]) == ["max.message.bytes=1048588"]
    assert remarks(max_message_bytes=1 << 20) == []


def test_retention_below_the_age_of_what_is_late_is_a_warning() -> None:
    (found,) = remarks(retention_ms=3_600_000, age_s=5 * 3600.0)
    assert found.severity is Severity.WARNING
    assert "keeps records for 1 h" in found.what
    assert "waited for 5 h" in found.what
    assert "30 min after" in found.why
    assert settings([found]) == ["retention.ms=691200000"]


def test_retention_is_raised_above_any_age() -> None:
    (found,) = remarks(retention_ms=3_600_000, age_s=30 * DAY)
    milliseconds = int(settings([found])[0].partition("=")[2])
    assert milliseconds / 1000 > 60 * DAY


def test_short_retention_alone_is_a_note() -> None:
    (found,) = remarks(retention_ms=3_600_000, age_s=60.0)
    assert found.severity is Severity.NOTE
    assert remarks(retention_ms=86_400_000) == []


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_compaction_is_a_warning_unless_it_is_meant(policy: str) -> None:
    (found,) = remarks(cleanup_policy=policy)
    assert found.severity is Severity.WARNING
    assert settings([found]) == ["cleanup.policy=delete"]
    (found,) = remarks(cleanup_policy=policy, meant=policy)
    assert found.severity is Severity.NOTE
    assert not found.repair


def test_the_brokers_own_time_is_a_note() -> None:
    (found,) = remarks(message_timestamp_type="LogAppendTime")
    assert found.severity is Severity.NOTE
    assert settings([found]) == ["message.timestamp.type=CreateTime"]


def test_timestamps_that_are_refused_are_a_warning() -> None:
    hour = 3_600_000
    (found,) = remarks(age_s=2 * 3600.0, message_timestamp_before_max_ms=hour)
    assert found.severity is Severity.WARNING
    assert "1 h ago" in found.what
    assert remarks(age_s=1800.0, message_timestamp_before_max_ms=hour) == []
    assert remarks(message_timestamp_before_max_ms=hour) == []


def test_no_stamp_is_older_than_half_of_the_retention() -> None:
    days = 4 * 86_400_000
    found = remarks(age_s=20 * DAY, message_timestamp_before_max_ms=days)
    assert [one.code for one in found] == ["topic-retention"]


def test_a_configuration_that_may_not_be_read_is_a_warning() -> None:
    topic = FoundTopic("t", "id", 1, 1, None, None)
    (found,) = remarks_of(topic, Creation(allowed=True), None, Tools("h:1", "app"))
    assert found.severity is Severity.WARNING
    assert "--operation DescribeConfigs" in found.repair.command
