"""Encodings of formats, other than JSON: of Debezium's, and of `op`.

A format says what a record has: a tree of Connect's schemas, and texts of PostgreSQL.
An encoding says how its bytes are made of both, and how the tree is registered; its
writers are made as those of JSON are. `languages` lists them all.
"""

from collections.abc import Sequence
from typing import Final, Protocol, runtime_checkable

from walstream.errors import ConfigError
from walstream.formats import Encoder, MakeEncoder, debezium_parts, encoder_of
from walstream.formats.context import Context
from walstream.formats.encodings.languages import language_of
from walstream.formats.encodings.subject import Framed, FramedPart, framed_parts
from walstream.op import Table

JSON: Final = "json"
OP: Final = "op"


@runtime_checkable
class FramedEncoder(Encoder, Protocol):
    """Encodes records whose schemas a registry has."""

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]: ...


def encoder_in(encoding: str, name: str) -> MakeEncoder:
    """Find a format in an encoding.

    Raises ConfigError for another one, and where a package adds the format and cannot
    be loaded.
    """
    if encoding == JSON:
        return encoder_of(name)
    language = language_of(encoding)
    if name == OP:
        return _op_in(encoding)
    unwrapped = name == "debezium_row"

    def make(table: Table, context: Context) -> Encoder:
        options, turn = debezium_parts(context)
        made = language.records()[unwrapped]
        return made(
            table, options, turn, unwrapped=unwrapped, backfill=context.backfill
        )

    return make


def _op_in(encoding: str) -> MakeEncoder:
    made = language_of(encoding).op
    if made is None:
        raise ConfigError(
            f"the format {OP} cannot be written in the encoding {encoding!r}",
            hint='write encoding = "json", "avro" or "json_schema"',
        )

    def make(table: Table, context: Context) -> Encoder:
        options, _ = debezium_parts(context)
        return made(table, options)

    return make


def parts_of(
    encoder: Encoder, topic: str, key: Sequence[int], context: Context
) -> tuple[FramedPart, ...]:
    """Return the parts of an encoder's records that have a schema's id."""
    if not isinstance(encoder, FramedEncoder):
        return ()
    kind = language_of(context.encoding).kind
    return framed_parts(context.subjects, kind, topic, encoder.framed(key))
