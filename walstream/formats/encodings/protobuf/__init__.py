"""Protobuf of Debezium's records, as Confluent's converter names its parts.

Numbers of fields come from the registry: `numbering` makes them of the versions that a
subject has, so a schema's text is known once it is registered, and what writes records
is made of that text. Bytes are those of protobuf's own canonical writer.
"""

from walstream.formats.encodings.protobuf.numbering import covers, number
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.shape import proto_shape

__all__ = ["covers", "number", "parsed_proto", "proto_shape"]
