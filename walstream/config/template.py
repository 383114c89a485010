"""The text of a first walstream.toml: few keys, each with the model's own sentence."""

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from walstream.config.model import Config
from walstream.config.sink import KafkaSinkConfig, MappedTopic
from walstream.config.source import PostgresSource

_WIDTH: Final = 86
_MOST: Final = 40  # tables that are listed
_SINK: Final = "kafka"
_HEAD: Final = """\
walstream's configuration, made by walstream init. `walstream config` shows every key
with what is in effect, docs/configuration.md explains them, `walstream check` says what
is missing before `walstream run`."""
_BACKFILL: Final = (
    '"initial", "never" or "only". Spark reads the rows, which needs Java 17; "never"'
    " needs neither."
)
_SECRETS: Final = (
    "${…} is read from the environment or from a file: keep secrets out of here."
)
_SPELLING: Final = "The file holds it as a connection string spells it: @ as %40."
_TLS: Final = (
    "A server off this machine needs verified TLS: sslmode=verify-full in the dsn, or"
    " insecure = true."
)
_KAFKA_TLS: Final = (
    'Brokers off this machine need verified TLS: "security.protocol" = "ssl" or'
    ' "sasl_ssl" here, or insecure = true above.'
)
_POLLED: Final = """\
Tables of another database that only grow are polled (docs/polling.md):
[sources.legacy]
kind = "sql"
url = "mysql+pymysql://USER:${env:PASSWORD}@localhost/DATABASE"
sinks = ["rows"]
[sources.legacy.tables.TABLE]
primary_key = "id"
[sinks.rows]
kind = "kafka"
format = "row"
[sinks.rows.producer]
"bootstrap.servers" = """
_OWN_TOPIC: Final = "A topic of its own for one table, and the columns of its key:"


@dataclass(frozen=True, slots=True)
class Starter:
    """Contents of a first configuration; all texts as they are, except `dsn`."""

    source: str
    dsn: str  # with its ${…}; a plain ${ is written $${
    brokers: str
    state: str  # folder
    tables: Sequence[str]  # patterns
    slot: str = "walstream"  # and the publication
    found: Sequence[str] = ()  # what is there, a line for each table
    example: str = "public.orders"  # a table
    insecure_source: bool = False
    insecure_sink: bool = False


def write(starter: Starter) -> str:
    """Write the file."""
    return "".join(f"{line}\n" for line in _lines(starter))


def _lines(starter: Starter) -> Iterator[str]:
    yield from comment(_HEAD, wrap=False)
    yield ""
    yield from key_lines(Config, "state", starter.state)
    yield ""
    yield from _source(starter)
    yield ""
    yield from _sink(starter)
    yield ""
    yield from comment(_POLLED + toml_text(starter.brokers), wrap=False)


def _source(starter: Starter) -> Iterator[str]:
    yield f"[sources.{starter.source}]"
    yield from key_lines(PostgresSource, "kind", "postgres")
    remarks = [_SECRETS] if "${" in starter.dsn.replace("$${", "") else []
    if "${file:" in starter.dsn:
        remarks.append(_SPELLING)
    if not starter.insecure_source:
        remarks.append(_TLS)
    yield from key_lines(PostgresSource, "dsn", starter.dsn, *remarks)
    if starter.insecure_source:
        yield from key_lines(PostgresSource, "insecure", value=True)
    yield from key_lines(PostgresSource, "slot", starter.slot)
    yield from key_lines(PostgresSource, "publication", starter.slot)
    yield from key_lines(PostgresSource, "tables", list(starter.tables))
    for line in _found(starter.found):
        yield f"#   {line}"
    yield from key_lines(PostgresSource, "backfill", "initial", _BACKFILL)
    yield from key_lines(PostgresSource, "sinks", [_SINK])


def _found(tables: Sequence[str]) -> Iterator[str]:
    yield from tables[:_MOST]
    if len(tables) > _MOST:
        yield f"and {len(tables) - _MOST} more"


def _sink(starter: Starter) -> Iterator[str]:
    yield f"[sinks.{_SINK}]"
    yield from key_lines(KafkaSinkConfig, "kind", "kafka")
    yield from key_lines(KafkaSinkConfig, "topic", "{schema}.{table}")
    yield from key_lines(KafkaSinkConfig, "topic_partitions", 0)
    yield from key_lines(KafkaSinkConfig, "topic_replication", 0)
    if starter.insecure_sink:
        yield from key_lines(KafkaSinkConfig, "insecure", value=True)
    yield ""
    yield from comment(_OWN_TOPIC)
    yield f"# [sinks.{_SINK}.topics.{toml_text(starter.example)}]"
    for key, value in (("name", '"a_topic"'), ("partition_key", '["a_column"]')):
        yield f"# {key} = {value}  # {described(MappedTopic, key)}"
    yield ""
    yield from comment(described(KafkaSinkConfig, "producer"))
    if not starter.insecure_sink:
        yield from comment(_KAFKA_TLS)
    yield f"[sinks.{_SINK}.producer]"
    yield from comment("The brokers to ask first, separated by commas.")
    yield f'"bootstrap.servers" = {toml_text(starter.brokers)}'


def key_lines(
    model: type[BaseModel], key: str, value: Any, *remarks: str
) -> Iterator[str]:
    """Write a key under its description in the model, and under remarks."""
    yield from comment(described(model, key))
    for remark in remarks:
        yield from comment(remark)
    yield f"{key} = {toml_text(value)}"


def described(model: type[BaseModel], key: str) -> str:
    """Return what the model says of a key."""
    return model.model_fields[key].description or ""


def comment(text: str, *, wrap: bool = True) -> list[str]:
    """Write lines of a comment."""
    lines = textwrap.wrap(text, _WIDTH) if wrap else text.splitlines()
    return [f"# {line}" for line in lines]


def toml_text(value: Any) -> str:
    """Write it as JSON does, whose texts are TOML's but for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
