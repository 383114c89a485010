"""From a connector's file to a draft in which every key is accounted for."""

from pathlib import Path

from walstream.admin.connector import (
    columns,
    connection,
    inert,
    producer,
    records,
    side_topics,
    tables,
    topics,
    transforms,
)
from walstream.admin.connector.connector_file import ConnectorFile
from walstream.admin.connector.draft import Draft
from walstream.admin.connector.references import References
from walstream.errors import ConfigError


def translate(
    file: ConnectorFile, output: Path, *, source: str = "app", brokers: str = ""
) -> tuple[Draft, References]:
    """Translate a connector for a configuration that will be `output`.

    Raises ConfigError where the file does not say, but refers to what says, which
    names are meant; or where it does not say which database, which brokers or
    which topics it is about.
    """
    draft = Draft(file, source)
    references = References(draft, output)
    _refuse(draft, brokers)
    unwraps = transforms.unwraps(draft)
    draft.tables["source"] |= {
        "kind": "postgres",
        "dsn": "",
        "slot": "",
        "publication": "",
    }
    draft.tables["sink"] |= {
        "kind": "kafka",
        "format": "debezium_row" if unwraps else "debezium",
        "topic": "",
        "partitioner": "murmur2_random",
    }
    connection.translate(draft, references)
    tables.translate(draft)
    records.translate(draft)
    transforms.translate(draft)
    columns.translate(draft, references)
    topics.translate(draft)
    side_topics.translate(draft)
    producer.translate(draft, references, brokers)
    inert.translate(draft)
    references.refuse_unread()
    draft.tables["source"]["sinks"] = ["kafka"]
    return draft, references


def _refuse(draft: Draft, brokers: str) -> None:
    if absent := connection.missing(draft):
        raise ConfigError(
            f"the connector has no {', '.join(map(draft.file.shown, absent))}",
            hint="complete its file: walstream needs the database to connect to",
        )
    if not (draft.get("topic.prefix") or draft.get("database.server.name")):
        raise ConfigError(
            "the connector has no topic.prefix, which its topics begin with"
        )
    if not brokers and not draft.get(f"{producer.PREFIX}bootstrap.servers"):
        raise ConfigError(
            "which brokers? A connector's file does not say it",
            hint="add --worker FILE, the worker's properties, or --brokers HOST:PORT",
        )
