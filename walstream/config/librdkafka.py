"""librdkafka properties that would break a promise, or that walstream sets itself.

Every other property passes through unread. `at_most_once` lifts the promises; nothing
lifts what would not work at all: callbacks, serializers, the partitioner's second name,
and deliveries that nobody hears of, since the position would not move.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from walstream.config.oauth import PROPERTY
from walstream.config.problem import Path, Problem
from walstream.config.sink import KafkaSinkConfig
from walstream.config.source import KafkaSource
from walstream.config.tls import FALSE_WORDS, broker_hosts

MOST_IN_FLIGHT: Final = 5  # more, and an idempotent producer may reorder
ENDLESS_RETRIES: Final = 2147483647

ClientProperties = Mapping[str, object]
"""The properties of a librdkafka client (producer, consumer, admin) by their names.

The operator's are texts, as the configuration has them; those that walstream adds are
numbers and booleans, too.
"""

_Rule = tuple[Callable[[str], bool], str]


def _all(value: str) -> bool:
    return value.lower() in {"all", "-1"}


def _true(value: str) -> bool:
    return value.lower() not in FALSE_WORDS


def _false(value: str) -> bool:
    return value.lower() in FALSE_WORDS


def _zero(value: str) -> bool:
    return value.strip() == "0"


def _few(value: str) -> bool:
    return value.isdecimal() and 1 <= int(value) <= MOST_IN_FLIGHT


def _endless(value: str) -> bool:
    return value.isdecimal() and int(value) >= ENDLESS_RETRIES


def _never(_: str) -> bool:
    return False


_ACKS: Final = (_all, 'a broker could lose records that it alone has: write "all"')
_TIMEOUT: Final = (_zero, "a record that waits longer would be dropped: write 0")
_IN_FLIGHT: Final = (_few, "a retry could change the order: write 1 to 5")
_RETRIES: Final = (
    _endless,
    "a record would be dropped after its retries: leave it out",
)
_PROMISES: Final[dict[str, _Rule]] = {
    "acks": _ACKS,
    "request.required.acks": _ACKS,
    "enable.idempotence": (_true, "a retry could repeat or reorder: write true"),
    "enable.gapless.guarantee": (_true, "a gap could go unnoticed: write true"),
    "message.timeout.ms": _TIMEOUT,
    "delivery.timeout.ms": _TIMEOUT,
    "max.in.flight": _IN_FLIGHT,
    "max.in.flight.requests.per.connection": _IN_FLIGHT,
    "retries": _RETRIES,
    "message.send.max.retries": _RETRIES,
    "transactional.id": (
        _never,
        'walstream names its own: leave it out, and write delivery = "transactional"',
    ),
    "delivery.report.only.error": (_false, "deliveries must be reported: leave it out"),
    "queuing.strategy": (lambda v: v == "fifo", 'order would be lost: write "fifo"'),
}
_ACKS_OF_NONE: Final = (lambda v: not _zero(v), 'no delivery would be known: write "1"')
_NEEDED: Final[dict[str, _Rule]] = {
    "acks": _ACKS_OF_NONE,
    "request.required.acks": _ACKS_OF_NONE,
    **{
        key: _PROMISES[key]
        for key in ("delivery.report.only.error", "transactional.id")
    },
}
_CONSUMER_RULES: Final[dict[str, _Rule]] = {
    "enable.auto.commit": (
        _false,
        "an offset is stored only after all sinks delivered",
    ),
    "enable.auto.offset.store": (
        _false,
        "an offset is stored only after all sinks delivered",
    ),
    "isolation.level": (
        lambda v: v == "read_committed",
        "aborted records would pass: leave it out",
    ),
    "group.id": (_never, "the source's own key group sets it: leave it out"),
}
_OWN_KEY: Final = "the sink's own key partitioner sets it: leave it out"


def whole_number(properties: ClientProperties, key: str, default: int = 0) -> int:
    """Return a property that is a number; raise ValueError where it is none."""
    return int(str(properties.get(key, default)))


def check_sink(name: str, sink: KafkaSinkConfig) -> Iterator[Problem]:
    """Name what the producer may not be told."""
    path = ("sinks", name, "producer")
    yield from _common(path, sink.producer)
    yield from _check_oauth(path, sink.producer)
    for key in ("partitioner", "partitioner_cb"):
        if key in sink.producer:
            yield Problem((*path, key), f"is set twice: {_OWN_KEY}")
    if sink.at_most_once:
        for key, (holds, why) in _NEEDED.items():
            if key in sink.producer and not holds(sink.producer[key]):
                yield Problem((*path, key), f"would not work: {why}")
        return
    allow = f", or at_most_once = true in sinks.{name}"
    yield from _broken(path, sink.producer, _PROMISES, allow)
    if sink.partitioner == "random":
        yield Problem(
            ("sinks", name, "partitioner"),
            '"random" would send the ops of one key to several partitions, out of '
            f'order: write "murmur2_random"{allow}',
        )


def check_source(name: str, source: KafkaSource) -> Iterator[Problem]:
    """Name what the consumer may not be told."""
    path = ("sources", name, "consumer")
    yield from _common(path, source.consumer)
    yield from _check_oauth(path, source.consumer)
    yield from _broken(path, source.consumer, _CONSUMER_RULES, "")


def _check_oauth(path: Path, properties: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse tokens that no broker would be shown."""
    if PROPERTY not in properties:
        return
    if not properties.get("security.protocol", "").lower().startswith("sasl_"):
        yield Problem(
            (*path, "security.protocol"),
            'is not SASL\'s, so no oauth token would be used: write "SASL_SSL"',
        )
    for key in ("sasl.mechanism", "sasl.mechanisms"):
        if properties.get(key, "OAUTHBEARER").upper() != "OAUTHBEARER":
            yield Problem(
                (*path, key), "is not OAUTHBEARER, and oauth is set: leave one out"
            )


def _common(path: Path, properties: Mapping[str, str]) -> Iterator[Problem]:
    if "metadata.broker.list" in properties:
        yield Problem(
            (*path, "metadata.broker.list"), 'is an old name: write "bootstrap.servers"'
        )
    elif not any(broker_hosts(properties)):
        yield Problem(
            (*path, "bootstrap.servers"), 'is missing: write "host:9092" of a broker'
        )
    for key in properties:
        if key.endswith("_cb") or key in {"on_delivery", "on_commit", "logger"}:
            yield Problem((*path, key), "is a callback, which a file cannot hold")
        elif key == "debug":
            yield Problem(
                (*path, key),
                "would write lines that may hold secrets, and walstream logs none of "
                "them: leave it out; kcat -d uses the same library",
            )
        elif key.endswith((".serializer", ".deserializer")):
            yield Problem(
                (*path, key), "is not librdkafka's: the sink's own key format does this"
            )


def _broken(
    path: Path, properties: Mapping[str, str], rules: Mapping[str, _Rule], allow: str
) -> Iterator[Problem]:
    for key, (holds, why) in rules.items():
        if key in properties and not holds(properties[key]):
            yield Problem((*path, key), f"breaks a guarantee: {why}{allow}")
