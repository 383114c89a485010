"""Encodings of the formats `debezium` and `debezium_row`, other than JSON.

A format says what a record has: a tree of Connect's schemas, and texts of PostgreSQL.
An encoding says how its bytes are made of both, and how the tree is registered. `avro`
has the records' writers, which are made as those of JSON are.
"""

from walstream.formats.encodings.avro.envelope import AvroEnvelope
from walstream.formats.encodings.avro.key import AvroKey
from walstream.formats.encodings.avro.row import AvroRow
from walstream.formats.encodings.avro.schema_text import avro_schema
from walstream.formats.encodings.avro.tree import document

__all__ = ["AvroEnvelope", "AvroKey", "AvroRow", "avro_schema", "document"]
