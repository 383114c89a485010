"""hstore, as a document of JSON or as Connect's map; keys in PostgreSQL's order."""

from typing import Final

from walstream.formats.debezium.composite_text import pairs
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.json_text import inner_text, json_text

MAP: Final = Schema(
    "map", keys=Schema("string"), values=Schema("string", optional=True)
)


def as_map(text: str) -> str:
    """Write an object of texts and nulls."""
    parts = [
        f"{json_text(key)}:{'null' if value is None else json_text(value)}"
        for key, value in pairs(text)
    ]
    return f"{{{','.join(parts)}}}"


def as_json(text: str) -> str:
    """Write that object as a text."""
    parts = [
        f"{inner_text(key)}:{'null' if value is None else inner_text(value)}"
        for key, value in pairs(text)
    ]
    return json_text(f"{{{','.join(parts)}}}")
