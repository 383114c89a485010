"""Producer properties: walstream's guarantees, the operator's, and fitted sizes."""

from typing import Final

from walstream.config.librdkafka import ClientProperties, whole_number
from walstream.errors import ConfigError

_LARGEST: Final = 1_000_000_000  # librdkafka's own upper bounds
_LARGEST_QUEUE_KBYTES: Final = 2_097_151
# bytes: its message, its place in two queues, its report; of a transaction of its own
# also what that is counted in
_PER_RECORD: Final = 640
_LARGEST_RECORD: Final = "message.max.bytes"
_COUNT: Final = "queue.buffering.max.messages"
_FEWEST: Final = 1000  # records in the queue; fewer fill no batch
# milliseconds for each of a sink's several producers: librdkafka sends one partition a
# request, and each of many gets little at a time
_LINGER_EACH: Final = 60
_LINGER_BRIEF: Final = 10  # of records that may be given up
_LINGERS: Final = frozenset({"linger.ms", "queue.buffering.max.ms"})
_TIMEOUTS: Final = frozenset({"message.timeout.ms", "delivery.timeout.ms"})
_DEFAULTS: Final[ClientProperties] = {
    "acks": "all",
    "enable.idempotence": True,
    # a second net: neither unknown partitions nor time-outs are covered by it
    "enable.gapless.guarantee": True,
    # a record that librdkafka gave up would leave a gap before the next one
    "message.timeout.ms": 0,
    "client.id": "walstream",
    "compression.type": "lz4",
    # of a backlog; what few wait in is flushed earlier (flush_policy)
    "linger.ms": 50,
    _COUNT: 50_000,
    "queue.buffering.max.kbytes": 16 << 10,
    "batch.size": 1_000_000,
    # an outage ends when the broker is back, not up to 10 s later
    "reconnect.backoff.max.ms": 1000,
    "topic.metadata.refresh.sparse": True,
    "log.connection.close": False,
    # one that was deleted would come back with the broker's defaults
    "allow.auto.create.topics": False,
}
# CONFIGURATION.md's column C/P; every other property is any client's
_PRODUCERS_OWN: Final = frozenset(
    {
        *("acks", "request.required.acks", "request.timeout.ms"),
        *("batch.num.messages", "batch.size", "linger.ms"),
        *("sticky.partitioning.linger.ms", "queuing.strategy"),
        *("compression.codec", "compression.level", "compression.type"),
        *("delivery.report.only.error", "produce.offset.report"),
        *("delivery.timeout.ms", "message.timeout.ms"),
        *("enable.gapless.guarantee", "enable.idempotence"),
        *("message.send.max.retries", "retries"),
        *("partitioner", "partitioner_cb", "msg_order_cmp"),
        *("queue.buffering.backpressure.threshold", "queue.buffering.max.kbytes"),
        *("queue.buffering.max.messages", "queue.buffering.max.ms"),
        *("transaction.timeout.ms", "transactional.id"),
    }
)
_CONSUMERS_OWN: Final = frozenset(
    {
        *("auto.commit.enable", "auto.commit.interval.ms", "auto.offset.reset"),
        *("check.crcs", "consume.callback.max.messages"),
        *("coordinator.query.interval.ms", "enable.auto.commit"),
        *("enable.auto.offset.store", "enable.partition.eof"),
        *("fetch.error.backoff.ms", "fetch.max.bytes", "fetch.message.max.bytes"),
        *("fetch.min.bytes", "fetch.queue.backoff.ms", "fetch.wait.max.ms"),
        *("group.id", "group.instance.id", "group.protocol", "group.protocol.type"),
        *("group.remote.assignor", "heartbeat.interval.ms", "isolation.level"),
        *("max.partition.fetch.bytes", "max.poll.interval.ms", "max.poll.records"),
        *("offset.store.method", "offset.store.path", "offset.store.sync.interval.ms"),
        *("partition.assignment.strategy", "queued.max.messages.kbytes"),
        *("queued.min.messages", "session.timeout.ms", "share.acknowledgement.mode"),
    }
)
# what a producer is answered is small: descriptions of topics are not
_TOO_NARROW: Final = "receive.message.max.bytes"
_NOT_ADMINS: Final = _PRODUCERS_OWN | _CONSUMERS_OWN | {_TOO_NARROW}


def hurries(given: ClientProperties) -> bool:
    """Return whether a quiet stream's records go at once: linger decides, if given."""
    return not given.keys() & _LINGERS


def queue_within(memory: int, sinks: int) -> dict[str, int]:
    """Size the queue of each of a source's sinks by the bytes for all of them.

    A share of it is for what librdkafka keeps of each record beside the record.
    """
    share = memory // sinks
    return {
        "queue.buffering.max.kbytes": max(share * 3 // 5 >> 10, 1),
        _COUNT: max(share * 2 // 5 // _PER_RECORD, _FEWEST),
    }


def queue_of(
    given: ClientProperties, sizes: ClientProperties | None = None
) -> dict[str, object]:
    """Join an operator's properties with these sizes of a queue, or all defaults.

    They overrule those, but for a count of 0: librdkafka takes it for no limit, and
    then nothing bounds what it keeps of each record beside the record.
    """
    sizes = _DEFAULTS if sizes is None else sizes
    joined = {**sizes, **given}
    if _number(joined, _COUNT) == 0:
        joined[_COUNT] = sizes[_COUNT]
    return joined


def transaction_timeout_ms(given: ClientProperties) -> int:
    """Return how long a transaction may be open, in milliseconds."""
    return _number(
        {"transaction.timeout.ms": 60_000, **given}, "transaction.timeout.ms"
    )


def parts_within(given: ClientProperties, wanted: int, limit: int) -> int:
    """Return how many producers share a queue; each has room for `limit` bytes."""
    kbytes = _number({**_DEFAULTS, **given}, "queue.buffering.max.kbytes")
    return max(1, min(wanted, kbytes // _room(limit)))


def split_queue(given: ClientProperties, parts: int) -> dict[str, object]:
    """Divide a queue among so many producers.

    They wait longer for a batch: nothing waits that no more comes after, or that leaves
    no room.
    """
    wanted = queue_of(given)
    kbytes = _number(wanted, "queue.buffering.max.kbytes") // parts
    messages = _number(wanted, _COUNT) // parts
    # a record that may be given up is not to spend its time so
    lingers = parts > 1 and hurries(given) and not given.keys() & _TIMEOUTS
    linger = {"linger.ms": parts * _LINGER_EACH} if lingers else {}
    return {
        **given,
        **linger,
        "queue.buffering.max.kbytes": max(kbytes, 1),
        _COUNT: max(messages, 1),
    }


def producer_properties(
    given: ClientProperties, smallest_limit: int, largest_limit: int
) -> dict[str, object]:
    """Join defaults and the operator's properties; fit them to the topics' limits.

    librdkafka never splits a batch: one that is larger than a topic takes would fail
    all its records, so no batch may be larger than the smallest max.message.bytes.
    """
    properties = queue_of(given)
    if given.keys() & _TIMEOUTS and hurries(given):
        properties["linger.ms"] = _LINGER_BRIEF  # librdkafka wants it below those
    if not _is_true(properties["enable.idempotence"]):
        properties.pop("enable.gapless.guarantee")
    properties.setdefault(_LARGEST_RECORD, _LARGEST)
    batch_size = _number(properties, "batch.size")
    properties["batch.size"] = min(batch_size, smallest_limit)
    # a record that the queue cannot hold would wait for room for ever
    kbytes = _number(properties, "queue.buffering.max.kbytes")
    properties["queue.buffering.max.kbytes"] = max(kbytes, _room(largest_limit))
    return properties


def _room(limit: int) -> int:
    """Return the KiB of a queue that takes a record of the largest size."""
    return min(limit // 1024 + 64, _LARGEST_QUEUE_KBYTES)


def _number(properties: ClientProperties, key: str) -> int:
    try:
        return whole_number(properties, key)
    except ValueError:
        raise ConfigError(
            f"producer property {key!r}: {properties[key]!r} is not a whole number"
        ) from None


def largest_record(given: ClientProperties) -> int | None:
    """Return the largest record that a producer takes; None: any that a topic takes.

    librdkafka counts less around key and value than RECORD_OVERHEAD is.
    """
    return _number(given, _LARGEST_RECORD) if _LARGEST_RECORD in given else None


def room_of(properties: ClientProperties) -> int:
    """Return the largest record that a queue with these properties has room for."""
    return _number(properties, "queue.buffering.max.kbytes") * 1024


def fits_queue(given: ClientProperties, limit: int, built_for_limit: int) -> bool:
    """Return whether a queue made for one largest limit holds a record of another."""
    kbytes = _number({**_DEFAULTS, **given}, "queue.buffering.max.kbytes")
    return limit <= max(kbytes * 1024, built_for_limit)


def client_properties(given: ClientProperties) -> dict[str, object]:
    """Leave out what an admin client does not take of a producer's, or consumer's."""
    return {
        "client.id": "walstream",
        "reconnect.backoff.max.ms": 1000,
        "log.connection.close": False,
        **{key: text for key, text in given.items() if key not in _NOT_ADMINS},
    }


def _is_true(value: object) -> bool:
    return value is True or str(value).lower() == "true"
