"""Judgement of a topic's configuration for the changes that go there: pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.errors import NO_REPAIR, Repair, Transient
from walstream.finding import Severity
from walstream.kafka.cluster import FoundTopic
from walstream.kafka.request_limit import ASSUMED, SETTING
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topic_finding import Remark, Tools
from walstream.kafka.topic_limits import DEFAULT_LIMIT

_SMALL_BYTES: Final = 1 << 20
_DAY_S: Final = 86400
_DEFAULT_RETENTION_S: Final = 7 * _DAY_S
_MANY: Final = 3  # replicas, of which one alone should not decide
_UNITS: Final = ((_DAY_S, "d"), (3600, "h"), (60, "min"))


def remarks_of(
    topic: FoundTopic,
    creation: Creation,
    age_s: float | None,
    tools: Tools,
    request_bytes: int | None = None,
) -> Iterator[Remark]:
    """Judge a configuration; `age_s` is how long a change may wait already.

    `request_bytes` is the smallest socket.request.max.bytes; None: it may not be read.
    """
    config = topic.config
    if config is None:
        yield Remark(
            "topic-configuration",
            Severity.WARNING,
            "has a configuration that the producer's user may not read",
            "run assumes Kafka's defaults: max.message.bytes, retention.ms",
            tools.grant("DESCRIBE_CONFIGS"),
        )
        return
    yield from _min_insync(int(config["min.insync.replicas"]), topic.replicas, tools)
    yield from _limit(int(config["max.message.bytes"]), tools)
    yield from _request(int(config["max.message.bytes"]), request_bytes)
    yield from _retention(_seconds(config, "retention.ms"), age_s, tools)
    yield from _cleanup(config, creation, tools)
    yield from _timestamps(config, age_s, tools)


def _min_insync(wanted: int, replicas: int, tools: Tools) -> Iterator[Remark]:
    if wanted > replicas:
        yield Remark(
            "topic-min-insync",
            Severity.STOP,
            f"has min.insync.replicas = {wanted} and {_count(replicas)}",
            "with acks=all the brokers accept no record: run would wait for ever",
            tools.set(min_insync_replicas=max(1, replicas - 1)),
            Transient.exit_code,
        )
    elif wanted == 1 and replicas >= _MANY:
        yield Remark(
            "topic-min-insync",
            Severity.NOTE,
            f"has min.insync.replicas = 1 and {_count(replicas)}",
            "acks=all is satisfied by one replica while the others lag: a record can "
            "be lost with that broker's disk",
            tools.set(min_insync_replicas=2),
        )


def _limit(limit: int, tools: Tools) -> Iterator[Remark]:
    if limit < _SMALL_BYTES:
        yield Remark(
            "topic-message-size",
            Severity.WARNING,
            f"takes records of at most {limit} bytes (max.message.bytes)",
            "a larger row stops the source until the topic takes it",
            tools.set(max_message_bytes=DEFAULT_LIMIT),
        )


def _request(limit: int, request_bytes: int | None) -> Iterator[Remark]:
    known = ASSUMED if request_bytes is None else request_bytes
    if limit <= known:
        return
    whose = "of a broker"
    if request_bytes is None:
        whose = "assumed: the producer's user may not read the brokers' configuration"
    yield Remark(
        "topic-request-size",
        Severity.WARNING,
        f"takes records of {limit} bytes (max.message.bytes), but the broker takes no "
        f"request over {known} bytes ({SETTING}, {whose})",
        "run uses that as the topic's limit: a broker closes the connection on "
        "anything larger, and the producer would send it again for ever",
        Repair(then=f"raise {SETTING} on every broker and restart it"),
    )


def _retention(
    kept_s: float | None, age_s: float | None, tools: Tools
) -> Iterator[Remark]:
    if kept_s is None:
        return
    if age_s is not None and age_s > kept_s:
        days = max(_DEFAULT_RETENTION_S, 2 * age_s) // _DAY_S + 1
        yield Remark(
            "topic-retention",
            Severity.WARNING,
            f"keeps records for {_span(kept_s)} (retention.ms), and changes may have"
            f" waited for {_span(age_s)} already",
            f"Kafka would delete late records {_span(kept_s / 2)} after they arrive: "
            "readers that are not at the end miss them",
            tools.set(retention_ms=int(days * _DAY_S * 1000)),
        )
    elif kept_s < _DAY_S:
        yield Remark(
            "topic-retention",
            Severity.NOTE,
            f"keeps records for {_span(kept_s)} (retention.ms)",
            "readers that are offline for longer miss changes",
            tools.set(retention_ms=_DEFAULT_RETENTION_S * 1000),
        )


def _cleanup(
    config: Mapping[str, str], creation: Creation, tools: Tools
) -> Iterator[Remark]:
    policy = config.get("cleanup.policy", "")
    if "compact" not in policy:
        return
    meant = "compact" in creation.config.get("cleanup.policy", "")
    yield Remark(
        "topic-compacted",
        Severity.NOTE if meant else Severity.WARNING,
        f"is compacted (cleanup.policy = {policy})",
        "readers that are late see only the last op of each key, and a TRUNCATE may "
        "outlive the rows that came before it",
        NO_REPAIR if meant else tools.set(cleanup_policy="delete"),
    )


def _timestamps(
    config: Mapping[str, str], age_s: float | None, tools: Tools
) -> Iterator[Remark]:
    if config.get("message.timestamp.type") == "LogAppendTime":
        yield Remark(
            "topic-timestamps",
            Severity.NOTE,
            "stamps records by itself (message.timestamp.type = LogAppendTime)",
            "the record's timestamp is not the time of the commit",
            tools.set(message_timestamp_type="CreateTime"),
        )
        return
    oldest_s = _seconds(config, "message.timestamp.before.max.ms")
    kept_s = _seconds(config, "retention.ms")
    # what is older than half of the retention is stamped younger than it is
    stamp_s = min(age_s or 0.0, (kept_s or float("inf")) / 2)
    if oldest_s is not None and oldest_s < stamp_s:
        yield Remark(
            "topic-timestamps",
            Severity.WARNING,
            f"takes timestamps of at most {_span(oldest_s)} ago"
            " (message.timestamp.before.max.ms), and changes may have waited for"
            f" {_span(age_s or 0.0)} already",
            "the brokers would refuse older records, and run would end with exit code "
            "3",
            tools.set(message_timestamp_before_max_ms=(1 << 63) - 1),
        )


def _seconds(config: Mapping[str, str], key: str) -> float | None:
    """Read a time in milliseconds; None: no limit."""
    milliseconds = int(config.get(key, "-1"))
    return milliseconds / 1000 if milliseconds >= 0 else None


def _count(replicas: int) -> str:
    return f"{replicas} replica{'' if replicas == 1 else 's'}"


def _span(seconds: float) -> str:
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}".replace(".0 ", " ")
    return f"{seconds:.0f} s"
