"""The librdkafka properties of a consumer: what it needs, and what it refuses."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final

from consumer.name_pattern import subscription
from walstream.errors import ConfigError

ClientProperties = Mapping[str, object]
"""The properties of a librdkafka client by their names, as the application has them:
texts, numbers, booleans and callbacks.
"""


class FirstOffset(Enum):
    """First offset of a group in a topic that it never read."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NOWHERE = "error"


_BEGINS: Final = {
    **dict.fromkeys(("earliest", "smallest", "beginning"), FirstOffset.EARLIEST),
    **dict.fromkeys(("latest", "largest", "end"), FirstOffset.LATEST),
}
_RESET: Final = "auto.offset.reset"
_PASSED_OVER: Final = "topic.blacklist"
_KAFKAS_OWN: Final = "^__"
_DEFAULTS: Final[ClientProperties] = {
    _RESET: "earliest",
    "auto.commit.interval.ms": 1000,
    "partition.assignment.strategy": "cooperative-sticky",
    "log.connection.close": False,
}
_OF_PATTERNS: Final[ClientProperties] = {
    "topic.metadata.refresh.interval.ms": 10_000,
    _PASSED_OVER: _KAFKAS_OWN,  # no pattern means them
}
_PROMISED: Final[ClientProperties] = {
    "enable.auto.commit": True,  # of what was stored: what was handled
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": False,
}
_CONSUMERS_OWN: Final = (
    "group.",
    "partition.assignment.",
    "session.",
    "heartbeat.",
    "max.poll.",
    "auto.",
    "enable.auto.",
    "enable.partition.",
    "queued.",
    "fetch.",
    "offset.",
    "isolation.",
    "check.crcs",
    "consume.",
    "topic.",
)
_SILENT: Final = 2  # a connection that fails is 3
_SESSION_TIMEOUT_MS: Final = 45_000  # librdkafka's defaults
_MAX_POLL_INTERVAL_MS: Final = 300_000


def consumer_settings(
    group: str, kafka: ClientProperties, patterns: Sequence[str] = ()
) -> dict[str, object]:
    """Return all properties; raise ConfigError for one that would break the promise.

    With `patterns` of topics, new topics that match are found within some seconds.
    """
    if kafka.get("group.id", group) != group:
        raise ConfigError('kafka["group.id"] differs from group=')
    for name, value in _PROMISED.items():
        if name in kafka and not _same(kafka[name], value):
            raise ConfigError(
                f"kafka[{name!r}] must be {_spelt(value)}",
                hint="leave it out: an offset is stored when its op was handled",
            )
    defaults = {**_DEFAULTS, **(_OF_PATTERNS if patterns else {})}
    settings = {**defaults, **kafka, **_PROMISED, "group.id": group}
    if _broker_assigns(settings):
        # the broker refuses a client's strategy
        settings.pop("partition.assignment.strategy")
    return settings


def subscriptions(topics: Sequence[str], settings: ClientProperties) -> list[str]:
    """Return what librdkafka subscribes to.

    Where the broker looks for what matches, it knows no `topic.blacklist`. The client
    leaves such a topic alone, but the broker would count it into the member's share.
    """
    own_out = settings.get(_PASSED_OVER) == _KAFKAS_OWN and _broker_assigns(settings)
    return [subscription(topic, own_out=own_out) for topic in topics]


def _broker_assigns(settings: ClientProperties) -> bool:
    return settings.get("group.protocol") == "consumer"


def admin_settings(settings: ClientProperties) -> dict[str, object]:
    """Leave out what only a consumer knows; it says by itself that Kafka is away."""
    return {"log_level": _SILENT} | {
        name: value
        for name, value in settings.items()
        if not name.startswith(_CONSUMERS_OWN)
    }


def session_timeout_s(settings: ClientProperties) -> float:
    """After how long without a sign of life a member is taken for dead."""
    return _seconds(settings, "session.timeout.ms", _SESSION_TIMEOUT_MS)


def max_poll_interval_s(settings: ClientProperties) -> float:
    """How long a rebalance waits for a member to let go of its partitions."""
    return _seconds(settings, "max.poll.interval.ms", _MAX_POLL_INTERVAL_MS)


def begin_of(settings: ClientProperties) -> FirstOffset:
    """Return where a group that never read begins."""
    return _BEGINS.get(str(settings[_RESET]).lower(), FirstOffset.NOWHERE)


def fetch_settings(settings: ClientProperties) -> dict[str, object]:
    """Return the properties of the client that reads.

    Where to begin is told to it. At an offset that does not exist it goes on with the
    oldest record: the newest would pass over some that nobody misses.
    """
    latest = begin_of(settings) is FirstOffset.LATEST
    return {**settings, **({_RESET: "earliest"} if latest else {})}


def _seconds(settings: ClientProperties, key: str, default_ms: int) -> float:
    return float(str(settings.get(key, default_ms))) / 1000


def _same(given: object, wanted: object) -> bool:
    return str(given).lower() == str(wanted).lower()


def _spelt(value: object) -> str:
    return str(value).lower()
