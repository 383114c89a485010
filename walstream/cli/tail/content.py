"""Content of a record's value, in one shape for all formats."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from walstream.lsn import Lsn
from walstream.row import NotSent


class ContentKind(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"
    TOMBSTONE = "tombstone"
    TRANSACTION = "transaction"  # a record about one, of tungsten or Debezium
    MESSAGE = "message"  # of pg_logical_emit_message
    HEARTBEAT = "heartbeat"


class Format(StrEnum):
    OP = "op"
    EVENT = "event"
    TUNGSTEN = "tungsten"
    DEBEZIUM = "debezium"
    DEBEZIUM_ROW = "debezium_row"
    ROW = "row"
    TEXT = "text"  # of no known format
    BYTES = "bytes"  # no text either


@dataclass(frozen=True, slots=True)
class Json:
    """A value that is neither text nor NULL: a number, true, an array, as written."""

    text: str


Value = str | None | NotSent | Json
Columns = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Content:
    """One change, as far as its format tells it."""

    format: Format | None  # None: a tombstone has none
    kind: ContentKind | None = None  # None: its format does not tell, or is not known
    schema: str | None = None
    table: str | None = None
    lsn: Lsn | None = None
    seq_id: int | None = None
    old: Columns | None = None
    new: Columns | None = None
    snapshot: bool = False
    more: Columns = field(default_factory=dict)  # what only this format has

    @property
    def full_table(self) -> str | None:
        """`schema.table`, where the format tells the schema."""
        if self.table is None or self.schema is None:
            return self.table
        return f"{self.schema}.{self.table}"
