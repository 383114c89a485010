"""Translation of Kafka errors: try again, or an operator is needed."""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import KafkaError, KafkaException

from walstream.config.librdkafka import ClientProperties
from walstream.errors import (
    RETRIED,
    ConfigError,
    LoginRefused,
    PermissionLacking,
    RecordRefused,
    TopicLost,
    TopicMissing,
    Transient,
    WalstreamError,
)
from walstream.kafka import tls_files
from walstream.kafka.connection_errors import LOGIN, outage

# Codes that the same record, or the same client, will meet again for ever.
_REFUSED: Final = {
    KafkaError.MSG_SIZE_TOO_LARGE: "raise the topic's max.message.bytes",
    KafkaError.RECORD_LIST_TOO_LARGE: "raise the topic's max.message.bytes",
    KafkaError.INVALID_RECORD: "check what the topic demands of a record",
    KafkaError.INVALID_TIMESTAMP: "compare the clocks, or raise "
    "message.timestamp.before.max.ms (and …after.max.ms) of the topic",
    KafkaError.POLICY_VIOLATION: "check the broker's policy",
}
_GONE: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.INCONSISTENT_TOPIC_ID,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - librdkafka's local codes are spelt so
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - likewise
}
_DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_MISFIT: Final = {
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "lower transaction.timeout.ms of the "
    "producer: brokers take no more than their transaction.max.timeout.ms",
}
_FENCED: Final = {
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError._FENCED,  # noqa: SLF001 - librdkafka's local codes are spelt so
}
_UNFIT: Final = (
    (
        "ssl.key.",
        "correct ssl.key.location, or ssl.key.password if the key is encrypted",
    ),
    ("ssl.certificate.", "correct ssl.certificate.location"),
    ("ssl.ca.", "correct ssl.ca.location"),
    ("", "correct the property: librdkafka's CONFIGURATION.md lists all"),
)
_NAMED: Final = 3
_MISCONFIGURED: Final = {KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS}


_SIZES: Final = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE}


class SizeRefused(RecordRefused):
    """Brokers do not take a record, or its batch, that fits its topic as far as known.

    So the topic may take less by now: see `size_dispute`.
    """

    topic: str = ""


class ProducerLost(Transient):
    """The producer can do nothing more; another one can."""


def failure(error: KafkaError, doing: str) -> WalstreamError:
    """Return a Kafka error as one of walstream's: code, subject, the next command."""
    text = f"{doing}: {error.str()} ({error.name()})"
    code = error.code()
    if code in _REFUSED:
        return RecordRefused(text, hint=f"{_REFUSED[code]}, then: walstream run")
    if code in _MISFIT:
        return ConfigError(text, hint=_MISFIT[code])
    if code in _GONE:
        return TopicLost(
            text, hint="create the topic (or set create_topics), then: walstream run"
        )
    if code in LOGIN:
        return LoginRefused(text, hint=f"{outage(error).hint}; then: walstream run")
    if code in _DENIED:
        return PermissionLacking(
            text, hint="grant the right to the producer's user, then: walstream run"
        )
    hint = RETRIED
    if code in _FENCED:
        text += ": another process took over, or Kafka ended the transaction"
        hint = f"see that one walstream alone runs with this source; {RETRIED}"
    lost = code in _FENCED or error.fatal()
    return (ProducerLost if lost else Transient)(text, hint=hint)


def undelivered(
    error: KafkaError | None, topic: str | None, partition: int | None
) -> WalstreamError:
    """Return the error of a record that is not delivered, or not known to be.

    None stands for one of which Kafka did not say at which offset it is: librdkafka
    reports so what it was never told of, once a later one was taken.
    """
    doing = f"delivering to {topic!r} partition {partition}"
    if error is None:
        return Transient(
            f"{doing}: Kafka did not say where it is, so it may not have it",
            hint=RETRIED,
        )
    found = failure(error, doing)
    if error.code() in _SIZES:
        found = SizeRefused(str(found.args[0]), hint=found.hint)
        found.topic = topic or ""
    return found


def creation_error(name: str, error: KafkaException) -> WalstreamError:
    """Return the error of a topic that cannot be created."""
    if error.args[0].code() in _MISCONFIGURED:
        return ConfigError(
            f"creating topic {name!r}: {error.args[0].str()}",
            hint="correct topic_config, topic_partitions or topic_replication",
        )
    return failure(error.args[0], f"creating topic {name!r}")


def topic_lost(name: str, what: str) -> WalstreamError:
    """Return the error of a topic whose records are gone."""
    return TopicLost(
        f"topic {name!r} {what}: the records delivered to it before are gone",
        hint="tell its readers; then walstream run continues with the new topic",
    )


def positions_lost(name: str, what: str) -> WalstreamError:
    """Return the error of a topic of transactions' positions that is gone."""
    return TopicLost(
        f"topic {name!r} {what}: it had the positions of Kafka's transactions",
        hint="walstream run creates it again, and goes by the position in its state"
        " folder",
    )


def topics_missing(names: Sequence[str]) -> WalstreamError:
    """Return the error of missing topics that walstream may not create."""
    if len(names) == 1:
        what, them = f"topic {names[0]!r} does not exist", "it"
    else:
        said = ", ".join(map(repr, names[:_NAMED]))
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        what, them = f"topics {said}{more} do not exist", "them"
    return TopicMissing(
        f"{what}, and create_topics is false",
        hint=f"create {them}: walstream check prints the commands; or set"
        " create_topics = true; then: walstream run",
    )


def unfit(
    error: KafkaException, what: str, properties: ClientProperties
) -> ConfigError:
    """Return the error of properties that librdkafka refuses."""
    text = error.args[0].str()
    if (found := tls_files.flaw(properties, text)) is not None:
        return ConfigError(f"{what}: {found.what}", hint=found.hint)
    hint = next(hint for part, hint in _UNFIT if part in text)
    return ConfigError(f"{what}: {text}", hint=hint)
