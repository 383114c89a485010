"""Findings of `check` about one Kafka sink.

What stops `run` comes first, in the order in which `run` meets it. The same finding of
many topics is one, which names the first of them.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from walstream.config.librdkafka import ClientProperties
from walstream.errors import (
    ConfigError,
    PermissionLacking,
    Repair,
    TopicLost,
    TopicMissing,
    Transient,
    WalstreamError,
)
from walstream.finding import Finding, Severity, note, warning
from walstream.kafka import stored_topic as kept
from walstream.kafka import transaction_check
from walstream.kafka.advertised_listeners import BrokersElsewhere
from walstream.kafka.cluster import Brokers, Cluster, FoundTopic
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.stored_topic import StoredTopic
from walstream.kafka.topic_config import remarks_of
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topic_finding import Remark, Tools, grouped, listed
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.telemetry import runtime

_RIGHTS = ("DESCRIBE", "WRITE")
# of polled rows each key has one record, and none has a time of its commit
_OF_OPS = frozenset({"topic-compacted", "topic-timestamps"})
# a chained topic has as many partitions as the one that its records come from
_OF_COUNTS = frozenset({"topic-partitions"})


@dataclass(frozen=True, slots=True)
class WantedSink:
    """One sink of one source, and what the state folder knows of its topics."""

    name: str
    producer: ClientProperties
    creation: Creation
    topics: Collection[str]  # those that the captured tables would go to
    kept: Mapping[str, StoredTopic] = field(default_factory=dict)  # by topic
    oldest_commit: float | None = None  # of what waits; unix seconds, about
    polled: bool = False  # it takes rows of a sql source
    chained: bool = False  # it takes records of a kafka source
    transactions: str = ""  # with what their ids begin; "": it writes in none


def inspect(wanted: WantedSink, cluster: Cluster) -> list[Finding]:
    """Return findings about brokers and topics; never raise WalstreamError."""
    findings: list[Finding] = []
    try:
        brokers = cluster.brokers()
        seen = cluster.topics(wanted.topics)
        missing = sorted(set(wanted.topics) - seen.keys())
        may_create = wanted.creation.allowed
        refused = cluster.refusals(missing, wanted.creation) if may_create else {}
    except BrokersElsewhere as error:
        return [_of_brokers(error, cluster, wanted)]  # a producer would go there
    except WalstreamError as error:
        findings.append(_of_brokers(error, cluster, wanted))
    else:
        tools = Tools.of(wanted.producer, cluster.address)
        findings += grouped(
            [
                *_unseen(seen, tools),
                *_not_there(missing, wanted, tools),
                *_refused(refused, tools),
                *_seen(seen, wanted, brokers, tools),
            ]
        )
        findings += _to_create(sorted(set(missing) - refused.keys()), wanted, brokers)
        if wanted.transactions:
            findings += transaction_check.findings(
                wanted.name, wanted.producer, wanted.transactions, tools
            )
    findings += _of_properties(wanted)
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def _of_brokers(error: WalstreamError, cluster: Cluster, wanted: WantedSink) -> Finding:
    subject = f"brokers {cluster.address}"
    if isinstance(error, BrokersElsewhere):
        return Finding.of(error, "brokers-elsewhere", subject)
    if isinstance(error, PermissionLacking):
        return Finding.of(error, "kafka-login", subject)
    if isinstance(error, Transient):
        stays = "changes stay in PostgreSQL's WAL"
        if wanted.polled:
            stays = "new rows wait in their tables"
        elif wanted.chained:
            stays = "records wait in their upstream topics"
        why = f"run would wait for them; {stays} meanwhile"
        return Finding.waits(error, "brokers-unreachable", subject, why)
    return Finding.of(error, "producer-properties", subject)


def _of_properties(wanted: WantedSink) -> Iterator[Finding]:
    """Make the producer that `run` would make: librdkafka reads its properties."""
    try:
        properties = producer_properties(wanted.producer, DEFAULT_LIMIT, DEFAULT_LIMIT)
        OrderedProducer(wanted.name, properties).close(0.0)
    except WalstreamError as error:
        yield Finding.of(error, "producer-properties", f"sink {wanted.name}")


def _unseen(
    seen: Mapping[str, FoundTopic | WalstreamError], tools: Tools
) -> Iterator[tuple[str, Remark]]:
    """Yield findings about topics that the brokers do not show."""
    for name, error in seen.items():
        if isinstance(error, WalstreamError):
            denied = isinstance(error, PermissionLacking)
            what = "may not be described by the producer's user" if denied else ""
            yield (
                name,
                Remark.of(
                    error,
                    "topic-rights",
                    what=what,
                    repair=tools.grant(*_RIGHTS) if denied else Repair(),
                ),
            )


def _not_there(
    missing: Iterable[str], wanted: WantedSink, tools: Tools
) -> Iterator[tuple[str, Remark]]:
    if wanted.creation.allowed:
        return
    for name in missing:
        met = name in wanted.kept
        yield (
            name,
            Remark(
                "topic-missing",
                Severity.STOP,
                f"{'was deleted' if met else 'does not exist'}, and create_topics is"
                " false",
                "run would end here and deliver nothing",
                tools.create(wanted.creation, name),
                (TopicLost if met else TopicMissing).exit_code,
            ),
        )


def _refused(
    refused: Mapping[str, WalstreamError], tools: Tools
) -> Iterator[tuple[str, Remark]]:
    """Yield findings about topics that the brokers would not create."""
    for name, error in refused.items():
        denied = isinstance(error, PermissionLacking)
        what = str(error.args[0]).replace(f"creating topic {name!r}: ", "")
        yield (
            name,
            Remark.of(
                error,
                "topic-creation",
                what=f"cannot be created: {what}",
                repair=tools.grant("CREATE", *_RIGHTS) if denied else Repair(),
            ),
        )


def _seen(
    seen: Mapping[str, FoundTopic | WalstreamError],
    wanted: WantedSink,
    brokers: Brokers,
    tools: Tools,
) -> Iterator[tuple[str, Remark]]:
    """Yield findings about existing topics; `run` looks at the partitions first."""
    topics = [topic for topic in seen.values() if isinstance(topic, FoundTopic)]
    age_s = wanted.oldest_commit and max(0.0, runtime.time() - wanted.oldest_commit)
    judges: tuple[Callable[[FoundTopic], Iterable[Remark]], ...] = (
        lambda topic: _since(topic, wanted.kept.get(topic.name)),
        lambda topic: _single(topic, wanted, tools),
        lambda topic: _rights(topic, wanted, tools),
        lambda topic: _replicas(topic, brokers, wanted),
        lambda topic: remarks_of(
            topic, wanted.creation, age_s, tools, brokers.request_bytes
        ),
    )
    for judge in judges:
        for topic in topics:
            for remark in judge(topic):
                if remark.code not in _without(wanted):
                    yield topic.name, remark


def _without(wanted: WantedSink) -> frozenset[str]:
    """Name the remarks that say nothing of such records."""
    if wanted.chained:
        return _OF_COUNTS
    return _OF_OPS if wanted.polled else frozenset()


def _since(topic: FoundTopic, before: StoredTopic | None) -> Iterator[Remark]:
    """Yield findings about changes of a topic since its last start."""
    found = StoredTopic(topic.partitions, topic.identity)
    before = before or found
    if what := kept.moved(found, before):
        yield Remark(
            "topic-partitions",
            Severity.STOP,
            what,
            kept.ACCEPT_HINT,
            kept.ACCEPT,
            TopicLost.exit_code,
        )
    if kept.created_again(found, before):
        yield Remark(
            "topic-created-again",
            Severity.WARNING,
            kept.CREATED_AGAIN,
            "run continues with the new topic; readers miss what the old one held",
        )


def _single(topic: FoundTopic, wanted: WantedSink, tools: Tools) -> Iterator[Remark]:
    """Yield what is wrong with a topic whose records are to have one order."""
    what = kept.not_single(topic.partitions)
    if what and topic.name in wanted.creation.single:
        yield Remark(
            "topic-single",
            Severity.STOP,
            what,
            "run would end here and deliver nothing: name another one in "
            f"[sinks.{wanted.name}], or delete this one, and run creates it",
            tools.delete("walstream run"),
            ConfigError.exit_code,
        )


def _rights(topic: FoundTopic, wanted: WantedSink, tools: Tools) -> Iterator[Remark]:
    if topic.allowed is not None and not {"WRITE", "ALL"} & set(topic.allowed):
        yield Remark(
            "topic-rights",
            Severity.STOP,
            "may not be written to by the producer's user",
            "the first record would be refused, and run would end",
            tools.grant(*_RIGHTS),
            PermissionLacking.exit_code,
        )
    elif (
        topic.allowed is not None
        and topic.name in wanted.creation.compacted
        and not {"READ", "ALL"} & set(topic.allowed)
    ):
        yield Remark(
            "topic-rights",
            Severity.STOP,
            "may not be read by the producer's user",
            "it holds the position of transactions, and run would end",
            tools.grant("READ", *_RIGHTS),
            PermissionLacking.exit_code,
        )


def _replicas(
    topic: FoundTopic, brokers: Brokers, wanted: WantedSink
) -> Iterator[Remark]:
    gone = "PostgreSQL no longer has them"
    if wanted.polled:
        gone = "only rows that are still there can be sent again"
    elif wanted.chained:
        gone = "only what is still in the topics upstream can be sent again"
    if topic.replicas == 1 < brokers.count:
        yield Remark(
            "topic-replication",
            Severity.WARNING,
            f"has 1 replica, and the cluster has {brokers.count} brokers",
            "while its only broker is down nothing is delivered; if that disk is lost "
            f"so are the records, and {gone}",
            Repair(then="kafka-reassign-partitions.sh, with a plan of more replicas"),
        )


def _to_create(
    names: list[str], wanted: WantedSink, brokers: Brokers
) -> Iterator[Finding]:
    """Yield notes about topics that `run` will create."""
    creation = wanted.creation
    if not creation.allowed or not names:
        return
    partitions = _number(creation.partitions, brokers.partitions, "partition")
    replicas = _number(creation.replication, brokers.replicas, "replica")
    yield note(
        "topics-to-create",
        listed(names),
        f"will be created by run, with {partitions} and {replicas}",
        f"topic_partitions and topic_replication of [sinks.{wanted.name}] decide; a"
        " later change of the partitions moves keys",
    )
    if (creation.replication or brokers.replicas) == 1 < brokers.count:
        yield warning(
            "topic-replication",
            f"sink {wanted.name}",
            "topics will be created with 1 replica, and the cluster has "
            f"{brokers.count} brokers",
            "while its only broker is down nothing is delivered to a topic",
            Repair(
                then=f"set topic_replication = {min(3, brokers.count)} in"
                f" [sinks.{wanted.name}]"
            ),
        )


def _number(configured: int, default: int | None, what: str) -> str:
    if not configured and default is None:
        return f"the broker's default of {what}s"
    number = configured or default
    source = "" if configured else " (the broker's default)"
    return f"{number} {what}{'' if number == 1 else 's'}{source}"
