"""Names of topics, of schemas and of fields, as Debezium spells them."""

import re
from struct import iter_unpack
from typing import Final

from walstream.formats.debezium.options import Adjustment

HEARTBEAT_TOPIC: Final = "__debezium-heartbeat"
LONGEST_TOPIC: Final = 249
_TOPIC_CHARACTER: Final = re.compile("[A-Za-z0-9._-]")
_LETTER: Final = re.compile("[A-Za-z]")
_DIGIT: Final = re.compile("[0-9]")


def topic(name: str, schema: str, table: str) -> str:
    """Return the topic of a table: what Kafka does not allow becomes `_`."""
    parts = (part for part in (name, schema, table) if part.strip())
    return sanitized(".".join(parts))


def sanitized(proposed: str) -> str:
    """Return a name that a topic may have."""
    if proposed in {".", ".."}:
        return "_" * len(proposed)
    kept = "".join(
        unit if _TOPIC_CHARACTER.fullmatch(unit) else "_" for unit in _units(proposed)
    )
    return kept[:LONGEST_TOPIC]


def message_topic(name: str) -> str:
    """Return the topic of logical messages."""
    return f"{name}.message"


def transaction_topic(name: str) -> str:
    """Return the topic of BEGIN and END."""
    return f"{name}.transaction"


def heartbeat_topic(name: str) -> str:
    """Return the topic of heartbeats."""
    return f"{HEARTBEAT_TOPIC}.{name}"


def schema_name(proposed: str, adjust: Adjustment) -> str:
    """Return the name of a schema: as it is, or as Avro allows it."""
    return _adjusted(proposed, adjust, others="_." if adjust == "avro" else ".")


def field_name(proposed: str, adjust: Adjustment) -> str:
    """Return the name of a field, where Avro allows no dot either."""
    return _adjusted(proposed, adjust, others="_" if adjust == "avro" else "")


def _adjusted(proposed: str, adjust: Adjustment, others: str) -> str:
    if adjust == "none" or not proposed:
        return proposed
    write = _underscore if adjust == "avro" else _code
    units = _units(proposed)
    first = units[0]
    if _LETTER.fullmatch(first) or (first == "_" and "_" in others):
        written = first
    else:
        written = write(first)
        if adjust == "avro" and first.isdigit():
            written += first
    for unit in units[1:]:
        fits = _LETTER.fullmatch(unit) or _DIGIT.fullmatch(unit) or unit in others
        written += unit if fits else write(unit)
    return written


def _underscore(_: str) -> str:
    return "_"


def _code(unit: str) -> str:
    """Write `_u002d`; one that has three hex digits gets no zero, as in Debezium."""
    code = f"{ord(unit):x}"
    return f"_u00{code}" if len(code) <= 2 else f"_u{code}"  # noqa: PLR2004


def _units(text: str) -> list[str]:
    """Return the characters as Java counts them: in units of UTF-16."""
    return [
        chr(code)
        for (code,) in iter_unpack("<H", text.encode("utf-16-le", "surrogatepass"))
    ]
