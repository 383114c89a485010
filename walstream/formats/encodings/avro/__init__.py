"""Avro as Apicurio's and Confluent's converters make it of Debezium's records.

A schema is the converter's, letter by letter, and so is the data, byte by byte. Where
the converter would fail, walstream goes on: a null in an array whose items have none in
their schema (labels of enums, tsvector) is the type's empty value, counted by column;
a default that is not a finite number is left out of the schema. An integer that is too
large for its type, which only a handler can make, stops the source, as any text of
another type does.
"""

from walstream.formats.encodings.avro.envelope import AvroEnvelope
from walstream.formats.encodings.avro.key import AvroKey
from walstream.formats.encodings.avro.row import AvroRow
from walstream.formats.encodings.avro.schema_text import avro_schema

__all__ = ["AvroEnvelope", "AvroKey", "AvroRow", "avro_schema"]
