"""Everything about a configuration that one key alone cannot tell.

It runs over the sections that are well-formed, so that one wrong key elsewhere does not
hide what it finds. No server is asked.
"""

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Any, Final

from walstream.config import (
    debezium_rules,
    librdkafka,
    password_command_rules,
    relay_rules,
    selection_rules,
    tls,
    topology,
)
from walstream.config.field import is_loopback
from walstream.config.message_rules import check_messages
from walstream.config.model import Config
from walstream.config.problem import Problem, suggest
from walstream.config.registry_rules import check_encoding
from walstream.config.sink import EMBEDDED, KafkaSinkConfig, RoutedSink, Sink
from walstream.config.source import KafkaSource, PostgresSource, Source, SqlSource
from walstream.config.transactional_rules import check_transactional

_PATIENCE_S: Final = 5.0  # a sink that comes back has to be through with less
_NAME: Final = re.compile(r"[a-z0-9_-]+")
_NAME_WANTED: Final = "is not a valid name: write a-z, 0-9, _ and -"


def check(
    config: Config, document: Mapping[str, Any], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """Problems of the well-formed part of a document."""
    yield from _check_names(document)
    yield from _check_links(config, document)
    for name, source in config.sources.items():
        yield from _check_source(name, source, environment)
    for name, sink in config.sinks.items():
        if isinstance(sink, RoutedSink):
            yield from _check_sink(name, sink)
    if config.http.listen and not (
        config.http.token or is_loopback(config.http.listen)
    ):
        yield Problem(
            ("http", "token"),
            f'is missing: "{config.http.listen}" is reachable from other hosts; write '
            'a secret, or listen = "127.0.0.1:8321"',
        )
    if wrong := _shared(config.http.probes, config.http.listen):
        yield Problem(("http", "probes"), f"{wrong}: write another port")
    yield from tls.check_spark(config.spark, environment)
    for key in config.spark.conf:
        if not key.startswith("spark."):
            yield Problem(("spark", "conf", key), "is not Spark's: write spark.…")
    yield from topology.check_formats(config.sources, config.sinks)
    yield from relay_rules.check_chains(config.sources, config.sinks)
    yield from topology.check_row_names(config.sources)
    yield from topology.check_slots(config.sources, environment)
    yield from topology.check_publications(config.sources, environment)
    yield from topology.check_topics(config.sources, config.sinks)
    yield from _check_patience(config.sources, config.sinks)
    yield from topology.check_parking(config.sources, config.sinks)
    yield from check_transactional(config.sources, config.sinks)


def _shared(probes: str, listen: str) -> str:
    """Return a message that two addresses cannot both be listened on; "": they can."""
    if not (probes and listen):
        return ""
    if probes == listen:
        return "is the address of listen"
    one, _, port = probes.rpartition(":")
    other, _, taken = listen.rpartition(":")
    if int(port) and int(port) == int(taken) and (_is_any(one) or _is_any(other)):
        return f"has the port of listen, {listen}"
    return ""


def _is_any(host: str) -> bool:
    """Return whether it stands for all addresses of this machine."""
    try:
        return ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _check_names(document: Mapping[str, Any]) -> Iterator[Problem]:
    for part in ("sources", "sinks"):
        names = _table(document, part)
        if not names:
            yield Problem((part,), f"there is none: write [{part}.NAME]")
        for name in names:
            if not _NAME.fullmatch(name):
                yield Problem((part, name), _NAME_WANTED)


def _check_links(config: Config, document: Mapping[str, Any]) -> Iterator[Problem]:
    known = _table(document, "sinks")
    for name in _table(document, "sources"):
        source = config.sources.get(name)
        written = _table(document["sources"], name)
        sinks = source.sinks if source else written.get("sinks")
        for sink in sinks if isinstance(sinks, list) else ():
            if isinstance(sink, str) and sink and sink not in known:
                yield Problem(
                    ("sources", name, "sinks"),
                    f'there is no sink "{sink}": {suggest(sink, known)}',
                )


def _check_source(
    name: str, source: Source, environment: Mapping[str, str]
) -> Iterator[Problem]:
    if isinstance(source, PostgresSource | SqlSource):
        yield from password_command_rules.check_login(name, source)
    if isinstance(source, PostgresSource):
        yield from tls.check_postgres(name, source, environment)
        yield from selection_rules.check_selection(name, source)
    elif isinstance(source, SqlSource):
        yield from tls.check_sql(name, source, environment)
    elif isinstance(source, KafkaSource):
        yield from librdkafka.check_source(name, source)
        yield from tls.check_kafka(("sources", name, "consumer"), source)


def _check_sink(name: str, sink: RoutedSink) -> Iterator[Problem]:
    if not (sink.topic or sink.fallback_topic or sink.topics):
        yield Problem(
            ("sinks", name, "topic"),
            "is empty, and there is neither a fallback_topic nor a mapping: no op "
            'could reach a topic; write "{schema}.{table}", or one of them',
        )
    for table, mapped in sink.topics.items():
        if mapped.name == sink.fallback_topic:
            yield Problem(
                ("sinks", name, "topics", table, "name"),
                f'"{mapped.name}" is the fallback_topic too: give the table its own',
            )
    if sink.format != "tungsten" and sink.embed != EMBEDDED:
        yield Problem(
            ("sinks", name, "embed"),
            f'has no effect on format "{sink.format}", only on "tungsten": leave it '
            "out",
        )
    if sink.strict and sink.format != "row" and sink.on_truncate == "send":
        yield Problem(
            ("sinks", name, "on_truncate"),
            'is "send", and strict is true: readers that do not know TRUNCATE fail at '
            'it; write "stop", or "skip" if they need no TRUNCATE',
        )
    yield from debezium_rules.check_sink(name, sink)
    yield from topology.check_row_sink(name, sink)
    if isinstance(sink, KafkaSinkConfig):
        yield from check_encoding(name, sink)
        yield from _check_txinfo(name, sink)
        yield from check_messages(
            ("sinks", name, "messages"), sink.messages, sink.format
        )
        yield from librdkafka.check_sink(name, sink)
        yield from tls.check_kafka(("sinks", name, "producer"), sink)


def _check_patience(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """No sink waits so long for others of its ops that it looks late."""
    for source in sources.values():
        if not isinstance(source, PostgresSource) or len(source.sinks) < 2:  # noqa: PLR2004 - others
            continue
        longest_s = min(source.detach_after / 2, _PATIENCE_S)
        for name in source.sinks:
            sink = sinks.get(name)
            if sink is not None and sink.batch_interval > longest_s:
                yield Problem(
                    ("sinks", name, "batch_interval"),
                    f"is longer than {longest_s:g} s, so the sink would seem to lag "
                    "behind the source's others: make it shorter",
                )


def _check_txinfo(name: str, sink: KafkaSinkConfig) -> Iterator[Problem]:
    if sink.txinfo == "records" and sink.handlers:
        yield Problem(
            ("sinks", name, "txinfo"),
            "counts what the source sent, which the sink's handlers may change: name "
            "a topic, or give each a sink of its own",
        )
    if sink.txinfo == "records" and sink.format != "tungsten":
        yield Problem(
            ("sinks", name, "txinfo"),
            f'records of format "{sink.format}" have no place for it, only those of '
            '"tungsten": name a topic',
        )
    if sink.txinfo in {"none", "records"} and sink.txinfo_form:
        yield Problem(
            ("sinks", name, "txinfo_form"),
            "has an effect on a topic of txinfo alone: name one, or leave it out",
        )
    if sink.txinfo != "none" and sink.format == "row":
        yield Problem(
            ("sinks", name, "txinfo"),
            'has no effect on rows, and the sink has format "row": leave it out',
        )
    yield from _check_resolved(name, sink)
    names = {mapped.name for mapped in sink.topics.values()} | {sink.fallback_topic}
    if sink.txinfo in names:
        yield Problem(
            ("sinks", name, "txinfo"),
            f'"{sink.txinfo}" also takes ops: give it a topic of its own',
        )


def _check_resolved(name: str, sink: KafkaSinkConfig) -> Iterator[Problem]:
    path = ("sinks", name, "resolved")
    if not sink.resolved:
        return
    if sink.txinfo in {"none", "records"} or sink.has_debezium_txinfo:
        yield Problem(
            path,
            'needs a topic of txinfo with txinfo_form = "walstream": its records stand '
            "there",
        )
    if sink.at_most_once:
        yield Problem(
            path,
            "promises that records are below an offset, and at_most_once that they "
            "may be lost: leave out one of them",
        )


def _table(document: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    table = document.get(part)
    return table if isinstance(table, Mapping) else {}
