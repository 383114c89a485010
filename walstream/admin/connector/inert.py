"""Properties without a counterpart: why they have no effect, or what differs."""

from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.records import truth

_QUEUE: Final = "memory bounds what waits, in bytes"
_RETRY: Final = "walstream tries again for as long as it takes"
_SNAPSHOT: Final = "of Debezium's snapshots; docs/backfill.md has walstream's"
_NEVER_SKIPS: Final = "walstream stops rather than skip a change"
_SIGNALS: Final = "walstream backfill TABLE reads tables again, without signals"
_LINEAGE: Final = "walstream tells no lineage"
_INERT: Final = {
    "connector.class": "walstream is that connector",
    "name": "the source has a name of its own, and records the topic.prefix",
    "tasks.max": "one process reads a slot",
    "tasks.max.enforce": "one process reads a slot",
    "max.queue.size": _QUEUE,
    "max.queue.size.in.bytes": _QUEUE,
    "max.batch.size": _QUEUE,
    "query.fetch.size": _QUEUE,
    "poll.interval.ms": "a change is sent as it comes",
    "slot.max.retries": _RETRY,
    "slot.retry.delay.ms": _RETRY,
    "retriable.restart.connector.wait.ms": _RETRY,
    "errors.max.retries": _RETRY,
    "errors.retry.timeout": _RETRY,
    "errors.retry.delay.max.ms": _RETRY,
    "errors.log.enable": "errors are always logged",
    "errors.log.include.messages": "values are never logged",
    "errors.tolerance": _NEVER_SKIPS,
    "event.processing.failure.handling.mode": _NEVER_SKIPS,
    "status.update.interval.ms": "a position is confirmed once it is stored",
    "lsn.flush.timeout.ms": "a position is confirmed once it is stored",
    "lsn.flush.timeout.action": "a position is confirmed once it is stored",
    "xmin.fetch.interval.ms": "source.xmin is null, as it is by default",
    "database.query.timeout.ms": "options in the dsn can set statement_timeout",
    "connection.validation.timeout.ms": "connect_timeout in the dsn is libpq's",
    "executor.shutdown.timeout.ms": "shutdown_timeout is walstream's",
    "snapshot.delay.ms": _SNAPSHOT,
    "streaming.delay.ms": "the stream follows the existing rows at once",
    "snapshot.fetch.size": _SNAPSHOT,
    "snapshot.max.threads": _SNAPSHOT,
    "snapshot.max.threads.multiplier": _SNAPSHOT,
    "snapshot.lock.timeout.ms": _SNAPSHOT,
    "snapshot.locking.mode": _SNAPSHOT,
    "snapshot.isolation.mode": _SNAPSHOT,
    "snapshot.tables.order.by.row.count": _SNAPSHOT,
    "incremental.snapshot.chunk.size": _SNAPSHOT,
    "incremental.snapshot.watermarking.strategy": _SNAPSHOT,
    "incremental.snapshot.allow.schema.changes": _SNAPSHOT,
    "read.only": _SNAPSHOT,
    "signal.enabled.channels": _SIGNALS,
    "signal.data.collection": f"{_SIGNALS}; its rows are sent while it is published",
    "signal.poll.interval.ms": _SIGNALS,
    "schema.refresh.mode": "the stream tells each change of a table",
    "schema.history.internal.kafka.topic": "PostgreSQL's connector has none",
    "table.ignore.builtin": "system tables are never published",
    "extended.headers.enabled": "headers __debezium.context.* are never written",
    "guardrail.collections.max": "no limit of tables",
    "guardrail.collections.limit.action": "no limit of tables",
    "custom.sanitize.pattern": "secrets never appear in walstream's log",
    "custom.metric.tags": "docs/metrics.md has walstream's labels",
    "topic.cache.size": "a cache of Java's",
    "heartbeat.action.query": "an idle slot moves by itself",
    "heartbeat.topics.prefix": "see heartbeat.interval.ms",
    "topic.heartbeat.prefix": "see heartbeat.interval.ms",
    "topic.transaction": "see provide.transaction.metadata",
    "offsets.storage.topic": "positions are in the folder state",
    "transaction.boundary": "walstream uses no transactions of Kafka's",
    "transaction.boundary.interval.ms": "walstream uses no transactions of Kafka's",
    "config.action.reload": "walstream reload reads the configuration again",
    "provide.offsets": "positions are in the folder state",
    "offset.mismatch.strategy": "walstream compares its position with the slot's",
    "include.schema.changes": "PostgreSQL's connector has no such topic",
    "event.converting.failure.handling.mode": _NEVER_SKIPS,
    "config.providers": "see the values that refer to them",
}
_INERT_PREFIXES: Final = {
    "snapshot.mode.configuration.based.": "see snapshot.mode",
    "snapshot.mode.custom.": "see snapshot.mode",
    "snapshot.locking.mode.": _SNAPSHOT,
    "snapshot.query.mode.": "see snapshot.query.mode",
    "config.providers.": "see the values that refer to them",
    "openlineage.": _LINEAGE,
    "internal.": "of Debezium's inside",
}
_TO_DECIDE: Final = {
    "snapshot.select.statement.overrides": "a backfill reads whole tables",
    "snapshot.query.mode": "a backfill reads whole tables",
    "header.converter": "headers are texts and JSON, as SimpleHeaderConverter has them",
    "converters": "classes of Java: the columns have Debezium's own forms; a custom "
    "handler can change them",
    "post.processors": "classes of Java: no row is read again to fill it",
    "replica.identity.autoset.values": "walstream check prints the ALTER TABLE … "
    "REPLICA IDENTITY; tables that were set stay so",
    "slot.stream.params": "walstream passes no other options to the slot",
    "database.initial.statements": "ALTER ROLE … SET gives a session its settings",
    "sourceinfo.struct.maker": "a class of Java: source has Debezium's own fields",
    "transaction.metadata.factory": "a class of Java: the block has Debezium's fields",
}
_DEFAULTS: Final = {
    "snapshot.query.mode": "select_all",
    "sourceinfo.struct.maker": "io.debezium.connector.postgresql."
    "PostgresSourceInfoStructMaker",
    "transaction.metadata.factory": "io.debezium.pipeline.txmetadata."
    "DefaultTransactionMetadataFactory",
    "include.schema.comments": "false",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}
_IN_SCHEMAS: Final = {
    "column.propagate.source.type": "parameters __debezium.source.column.*",
    "datatype.propagate.source.type": "parameters __debezium.source.column.*",
    "include.schema.comments": "comments of columns",
}
_SWITCHES: Final = {
    "skip.messages.without.change": "updates that change nothing of what is sent are "
    "sent, too",
}
_CHANNELS: Final = {"log", "jmx"}
_SUBSET: Final = "snapshot.include.collection.list"


def translate(draft: Draft) -> None:
    """Report of each of these keys why it has no counterpart."""
    for key in draft.unspoken():
        value = draft.get(key)
        if why := _why(key):
            draft.inert(key, why)
        elif value == _DEFAULTS.get(key):
            draft.inert(key, "it is Debezium's default")
        elif key in _TO_DECIDE and value:
            draft.decide(key, _TO_DECIDE[key])
        elif key in _IN_SCHEMAS and value:
            _in_schemas(draft, key)
    _switches(draft)
    _publication_root(draft)
    _hand_over(draft)
    _notifications(draft)
    _failover(draft)
    for key in draft.unspoken():
        _last(draft, key)


def _why(key: str) -> str:
    if key in _INERT:
        return _INERT[key]
    prefixes = (
        why for prefix, why in _INERT_PREFIXES.items() if key.startswith(prefix)
    )
    return next(prefixes, "")


def _in_schemas(draft: Draft, key: str) -> None:
    if draft.tables["debezium"].get("schemas"):
        draft.decide(key, f"schemas are without {_IN_SCHEMAS[key]}")
    else:
        draft.inert(key, f"only schemas have {_IN_SCHEMAS[key]}, and none is written")


def _switches(draft: Draft) -> None:
    """Report of what walstream cannot do that it is off, or what differs."""
    for key, what in _SWITCHES.items():
        if truth(draft, key):
            draft.decide(key, what)
        elif draft.has(key):
            draft.inert(key, "it is off")


def _publication_root(draft: Draft) -> None:
    key = "publish.via.partition.root"
    if not draft.has(key):
        return
    if draft.tables["source"].get("tables"):
        draft.decide(key, "walstream publishes partitions as their root")
    else:
        draft.became(key, "the publication has it, and is read as it is")


def _hand_over(draft: Draft) -> None:
    """Report what has to be seen to before the connector stops."""
    key = "slot.drop.on.stop"
    if truth(draft, key):
        draft.decide(
            key,
            "the connector drops its slot when it stops, and changes are lost: set it "
            "to false at the connector first",
        )
    elif draft.has(key):
        draft.inert(key, "walstream never drops a slot by itself")
    key = "lsn.flush.mode"
    if draft.get(key).lower() == "manual" or (
        draft.get("flush.lsn.source").lower() == "false" and not draft.get(key)
    ):
        key = key if draft.has(key) else "flush.lsn.source"
        draft.decide(
            key,
            "another client moves the slot: make sure that it is not ahead of what "
            "Kafka has, and stop that before walstream runs",
        )
    for key in ("lsn.flush.mode", "flush.lsn.source"):
        if draft.has(key):
            draft.inert(key, "walstream moves the slot to what Kafka has")
    key = "exactly.once.support"
    if draft.get(key).lower() == "required":
        draft.decide(
            key,
            "after a crash records may come again: readers drop them by the header "
            "walstream-position",
        )
    elif draft.has(key):
        draft.inert(key, "walstream delivers at least once")


def _notifications(draft: Draft) -> None:
    """Report a topic that loses its writer."""
    channels = {
        one.strip() for one in draft.get("notification.enabled.channels").split(",")
    }
    for key in ("notification.enabled.channels", "notification.sink.topic.name"):
        if channels - _CHANNELS - {""} and draft.get(key):
            draft.decide(key, "walstream notifies no topic: /status and metrics tell")
        elif draft.has(key):
            draft.inert(key, "the log, /status and metrics tell of backfills")


def _failover(draft: Draft) -> None:
    key = "slot.failover"
    value = truth(draft, key)
    if draft.get(key) and value is not None:
        draft.put(key, "source", "failover", value)
    key = _SUBSET
    if draft.get(key):
        draft.decide(key, "a backfill reads all tables that are sent")


def _last(draft: Draft, key: str) -> None:
    """Account for a key that nothing above knows."""
    if not draft.get(key):
        draft.inert(key, "it is empty")
        return
    owner = key.partition(".")[0]
    lists = ("converters", "post.processors")
    listed = {one.strip() for name in lists for one in draft.get(name).split(",")}
    if owner in listed:
        draft.decide(key, f"an option of {owner}, see converters and post.processors")
    elif owner in {"database", "driver"}:
        draft.decide(key, "a property of JDBC's driver: the dsn takes libpq's")
    elif key in _TO_DECIDE or key in _IN_SCHEMAS:
        draft.inert(key, "it is empty")
    elif key.endswith(".plugin.version"):
        draft.inert(key, "of a plugin of Java's")
    else:
        draft.decide(key, "walstream does not know this property: is it misspelt?")
