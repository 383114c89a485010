"""Encodings of the formats `debezium` and `debezium_row`, other than JSON.

A format says what a record has: a tree of Connect's schemas, and texts of PostgreSQL.
An encoding says how its bytes are made of both, and how the tree is registered. `avro`
has the records' writers, which are made as those of JSON are.
"""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from walstream.formats import Encoder, MakeEncoder, debezium_parts, encoder_of
from walstream.formats.context import Context
from walstream.formats.encodings.subject import Framed, FramedPart, framed_parts
from walstream.op import Table

JSON: Final = "json"


@runtime_checkable
class FramedEncoder(Encoder, Protocol):
    """Encodes records whose schemas a registry has."""

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]: ...


def encoder_in(encoding: str, name: str) -> MakeEncoder:
    """Find a format in an encoding.

    Raises ConfigError where a package adds the format and cannot be loaded.
    """
    if encoding == JSON:
        return encoder_of(name)
    unwrapped = name == "debezium_row"

    def make(table: Table, context: Context) -> Encoder:
        # few processes write it, and its modules are many
        from walstream.formats.encodings.avro.record import (  # noqa: PLC0415
            AvroRecords,
            AvroRowRecords,
        )

        options, turn = debezium_parts(context)
        made = AvroRowRecords if unwrapped else AvroRecords
        return made(
            table, options, turn, unwrapped=unwrapped, backfill=context.backfill
        )

    return make


def parts_of(
    encoder: Encoder, topic: str, key: Sequence[int], context: Context
) -> tuple[FramedPart, ...]:
    """Return the parts of an encoder's records that have a schema's id."""
    if not isinstance(encoder, FramedEncoder):
        return ()
    return framed_parts(context.subjects, topic, encoder.framed(key))
