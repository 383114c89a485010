"""The old YAML of repliqate, read as sources of kind "sql" and their sinks.

    repliqate:
      name: processes
      redis_addr: localhost:6379
      replication:
        poll_interval_sec: 10
        sql_source: {uri: "sqlite:////x.db", table: processes, primary_key: id}
        kafka_target: {topic: processes, brokers: ["localhost:9092"]}

A list holds several. Each becomes a source and a sink of its name. Problems are told by
the old keys, also those that are found later in what was made of them.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from walstream.config import dsn, engine_url
from walstream.config.problem import Path, Problem, show_path, suggest
from walstream.config.tls import broker_hosts

NODE: Final = "repliqate"
BROKERS: Final = "localhost:9092"

_STANDS_FOR: Final[Mapping[str, str]] = {
    "redis_addr": "Redis is not read: positions are in LMDB, in the state folder; "
    "the first run begins at the first row, unless the table's start says "
    '"after:KEY"',
    "statsd_addr": "nothing is sent to statsd: /metrics has rows read, read and "
    "publish time and the position, by name and table",
}
_PARTS: Final = frozenset({"poll_interval_sec", "sql_source", "kafka_target"})
_ENTRY: Final = _PARTS | _STANDS_FOR.keys() | {"name", "replication"}
_SQL: Final = frozenset({"uri", "table", "primary_key", "fields", "limit"})
_OPTIONAL: Final = ("fields", "limit")
_KAFKA: Final = frozenset({"topic", "brokers"})

_Tables = dict[str, Any]


@dataclass
class Conversion:
    """Result of a conversion; a document of another shape is unchanged."""

    tables: _Tables
    problems: list[Problem] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)  # key, what is so
    names: dict[str, tuple[Path, str]] = field(default_factory=dict)  # of sources
    origins: dict[Path, Path] = field(default_factory=dict)  # new keys -> the old

    def locate(self, problem: Problem) -> Problem:
        """Name the old key that it comes from."""
        for length in range(len(problem.path), 0, -1):
            origin = self.origins.get(problem.path[:length])
            if origin:
                return problem._replace(path=origin + problem.path[length:])
        return problem

    def allow(self, tables: _Tables, environment: Mapping[str, str]) -> None:
        """Let them reach the servers that they always reached: insecure, if need be.

        The tables are those of the conversion, with ${…} replaced.
        """
        for name in self.names:
            source = _section(tables, "sources", name)
            sink = _section(tables, "sinks", name)
            if _is_unverified(source.get("url"), environment):
                source.setdefault("insecure", True)
            if _is_plain(sink.get("producer")):
                sink.setdefault("insecure", True)


def convert(document: _Tables) -> Conversion:
    """Make sources and sinks of the old node, where there is one."""
    result = Conversion(document)
    if NODE not in document:
        return result
    for key in ("sources", "sinks"):
        if key in document:
            result.problems.append(
                Problem(
                    (key,), f"cannot be in one file with {NODE}: write separate files"
                )
            )
    rest = {key: value for key, value in document.items() if key != NODE}
    result.tables = {**rest, "sources": {}, "sinks": {}}
    written = document[NODE]
    if written == []:
        result.problems.append(Problem((NODE,), "is empty: name at least one"))
    entries = written if isinstance(written, list) else [written]
    for i, entry in enumerate(entries):
        path: Path = (NODE, i) if isinstance(written, list) else (NODE,)
        _add(_Entry(result, path, entry), result)
    return result


class _Node:
    """A table of the old shape, which notes what is wrong with it."""

    def __init__(
        self, result: Conversion, path: Path, written: object, known: Collection[str]
    ) -> None:
        self.path = path
        self._result = result
        self.table: _Tables = {}
        if not isinstance(written, Mapping):
            self.refuse((), "write a table of keys and values")
            return
        for key, value in written.items():
            if key not in known:
                self.refuse((key,), f"is unknown: {suggest(key, known)}")
            elif value is not None:  # as if it were not there
                self.table[key] = value

    def refuse(self, key: Path, complaint: str) -> None:
        self._result.problems.append(Problem((*self.path, *key), complaint))

    def child(self, key: str, known: Collection[str]) -> "_Node":
        written = self.table.get(key, {})
        return _Node(self._result, (*self.path, key), written, known)

    def text(self, key: str) -> str:
        """Read a text that has to be there."""
        value = self.table.get(key)
        if value is None:
            self.refuse((key,), "is missing")
        elif not isinstance(value, str):
            self.refuse((key,), "write a text in quotes")
        elif not value:
            self.refuse((key,), "is empty: write one")
        else:
            return value
        return ""

    def seconds(self, key: str) -> str:
        value = self.table.get(key)
        if value is None:
            self.refuse((key,), "is missing")
        elif isinstance(value, bool) or not isinstance(value, int | float | str):
            self.refuse((key,), "write a number of seconds")
        return f"{value}s"

    def servers(self, key: str) -> str:
        value = self.table.get(key, BROKERS)
        hosts = [value] if isinstance(value, str) else value
        if not isinstance(hosts, list) or not all(isinstance(h, str) for h in hosts):
            self.refuse((key,), f'write a list, as in ["{BROKERS}"]')
            return ""
        if not hosts:
            self.refuse((key,), "is empty: name at least one, or leave it out")
        return ",".join(hosts)


class _Entry:
    """One of the old processes, taken apart."""

    def __init__(self, result: Conversion, path: Path, written: object) -> None:
        self.node = node = _Node(result, path, written, _ENTRY)
        inner = node.child("replication", _PARTS)
        for key in sorted(_PARTS & node.table.keys() & inner.table.keys()):
            node.refuse((key,), f"is in {show_path(inner.path)} too: write it once")
        # they stand in `replication`, or beside it
        parts = {key: node if key in node.table else inner for key in _PARTS}
        self.times = parts["poll_interval_sec"]
        self.sql = parts["sql_source"].child("sql_source", _SQL)
        self.kafka = parts["kafka_target"].child("kafka_target", _KAFKA)
        self.name = node.text("name")
        self.table = self.sql.text("table")

    @property
    def slug(self) -> str:
        """The name as one that a source may have."""
        return re.sub(r"[^a-z0-9_-]+", "-", self.name.lower()).strip("-") or NODE

    def source(self) -> _Tables:
        polled = {"primary_key": self.sql.text("primary_key")}
        optional = {k: v for k, v in self.sql.table.items() if k in _OPTIONAL}
        source = {
            "kind": "sql",
            "url": self.sql.text("uri"),
            "poll_interval": self.times.seconds("poll_interval_sec"),
            "sinks": [self.slug],
            "tables": {self.table: {**polled, **optional}},
        }
        return source if self.name == self.slug else {**source, "name": self.name}

    def sink(self) -> _Tables:
        return {
            "kind": "kafka",
            "format": "row",
            "topic": self.kafka.text("topic"),
            "producer": {"bootstrap.servers": self.kafka.servers("brokers")},
        }

    def origins(self) -> dict[Path, Path]:
        source, sink = ("sources", self.slug), ("sinks", self.slug)
        table = (*source, "tables", self.table)
        sql, kafka = self.sql.path, self.kafka.path
        return {
            (*source, "name"): (*self.node.path, "name"),
            (*source, "poll_interval"): (*self.times.path, "poll_interval_sec"),
            (*source, "url"): (*sql, "uri"),
            **{(*table, key): (*sql, key) for key in ("primary_key", *_OPTIONAL)},
            (*sink, "topic"): (*kafka, "topic"),
            (*sink, "producer", "bootstrap.servers"): (*kafka, "brokers"),
        }


def _add(entry: _Entry, result: Conversion) -> None:
    slug, name = entry.slug, entry.name
    if slug in result.names:
        path, other = result.names[slug]
        taken = f'"{name}" is also the name of {show_path(path)}: give each its own'
        if other != name:
            taken = (
                f'"{name}" would be sources.{slug}, and so would "{other}" of '
                f"{show_path(path)}: write one of them as a source of kind "
                '"sql", whose key name holds any text'
            )
        entry.node.refuse(("name",), taken)
    result.names[slug] = entry.node.path, name
    result.tables["sources"][slug] = entry.source()
    result.tables["sinks"][slug] = entry.sink()
    result.origins |= entry.origins()
    for key in sorted(_STANDS_FOR.keys() & entry.node.table.keys()):
        where = show_path((*entry.node.path, key))
        result.remarks.append((where, _STANDS_FOR[key]))


def _section(tables: _Tables, part: str, name: str) -> _Tables:
    """Find it again; a variable may have put something else there."""
    found: Any = tables
    for step in (part, name):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _is_unverified(url: object, environment: Mapping[str, str]) -> bool:
    try:
        server = engine_url.parse(str(url))
    except ValueError:
        return False  # which is told by its key
    if engine_url.remote_hosts(server, environment) == []:
        return False
    return not engine_url.verifies(server, environment)


def _is_plain(producer: object) -> bool:
    if not isinstance(producer, Mapping):
        return False
    protocol = str(producer.get("security.protocol", "")).lower()
    remote = [host for host in broker_hosts(producer) if not dsn.is_local(host)]
    return bool(remote) and not protocol.endswith("ssl")
