"""Debezium connectors to translate, without a file."""

from pathlib import Path
from typing import Final

from walstream.admin.connector.connector_file import CONNECTOR, ConnectorFile
from walstream.admin.connector.draft import Draft, Fate
from walstream.admin.connector.references import References
from walstream.admin.connector.translation import translate

OUTPUT: Final = Path("/nowhere/walstream.toml")
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
PLAIN: Final = {
    "connector.class": CONNECTOR,
    "plugin.name": "pgoutput",
    "database.hostname": "localhost",
    "database.user": "app",
    "database.dbname": "shop",
    "topic.prefix": "app",
    "key.converter": JSON,
    "value.converter": JSON,
    "producer.override.bootstrap.servers": "localhost:9092",
}
"""A connector of which nothing is to decide."""


def connector(
    entries: dict[str, str], *, server: bool = False, worker_known: bool = True
) -> ConnectorFile:
    """Make a connector's file of PLAIN and more; an empty value takes a key out."""
    whole = {**PLAIN, **entries}
    kept = {key: value for key, value in whole.items() if value or key not in PLAIN}
    return ConnectorFile(kept, {}, {}, worker_known, server=server)


def translated(
    entries: dict[str, str], *, output: Path = OUTPUT, server: bool = False
) -> tuple[Draft, References]:
    """Translate PLAIN and more."""
    return translate(connector(entries, server=server), output)


def draft(**entries: str) -> Draft:
    """Translate PLAIN and more, spelled with _ for the dots of a key."""
    return translated({key.replace("_", "."): one for key, one in entries.items()})[0]


def fates(draft: Draft, key: str) -> dict[Fate, str]:
    """Return what is said of a key, by fate."""
    return {one.fate: one.text for one in draft.reports() if one.key == key}


def sql(draft: Draft, key: str) -> str:
    """Return the SQL that a key needs."""
    return "".join(one.sql for one in draft.reports() if one.key == key)


def undecided(draft: Draft) -> list[str]:
    """Name the keys about which there is something to decide."""
    found = (one.key for one in draft.reports() if one.fate is Fate.TO_DECIDE)
    return list(dict.fromkeys(found))
