"""Subjects: the names under which a registry has the versions of one schema.

As Confluent's serializers name them (TopicNameStrategy, RecordNameStrategy,
TopicRecordNameStrategy); Apicurio's default is the first. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from walstream.errors import ConfigError
from walstream.formats.encodings.wire import FIRST_MESSAGE, head

if TYPE_CHECKING:  # its package has many modules, which other formats do not need
    from walstream.formats.debezium.connect import Schema

Strategy = Literal["topic", "record", "topic_record"]


class Framed(Protocol):
    """Writer of records, or keys, of one schema."""

    schema: "Schema"
    schema_text: str  # in the encoding's own language
    head: bytes  # before each record: b"" until the id is known


@runtime_checkable
class NumberedWriter(Framed, Protocol):
    """One that writes by the text that a registry has: its own lacks numbers."""

    def use(self, registered: str) -> None: ...


class SchemaId(NamedTuple):
    """A schema as a registry knows it."""

    number: int
    text: str = ""  # "": as it was asked for


@dataclass(frozen=True)
class SubjectSchema:
    """A schema as a registry is asked for it."""

    subject: str
    text: str
    kind: str = "AVRO"  # the registry's word for the language; its own default

    @cached_property
    def digest(self) -> str:
        """Name of both, in a state folder and for tasks."""
        told = f"{self.kind}\n{self.subject}\n{self.text}"
        return blake2b(told.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class FramedPart:
    """One part of a table's records, key or value, and its schema."""

    schema: SubjectSchema
    writer: Framed

    def set(self, found: SchemaId) -> None:
        """Let its records carry this id."""
        before = head(found.number)
        if self.writer.head.startswith(before):  # set already: who waits asks often
            return
        if isinstance(self.writer, NumberedWriter):
            self.writer.use(found.text)
            before += FIRST_MESSAGE
        self.writer.head = before


def subject_of(strategy: Strategy, topic: str, record: str, *, is_key: bool) -> str:
    """Name the subject of a schema, `record` being its full name."""
    if strategy == "record":
        return record
    if strategy == "topic_record":
        return f"{topic}-{record}"
    return f"{topic}-{'key' if is_key else 'value'}"


def framed_parts(
    strategy: Strategy, kind: str, topic: str, writers: Iterable[tuple[bool, Framed]]
) -> tuple[FramedPart, ...]:
    """Return the parts of a table's records; of each writer, whether it is of keys.

    Their schemas are in the language of this `kind`.
    """
    return tuple(
        FramedPart(
            SubjectSchema(
                subject_of(strategy, topic, writer.schema.name, is_key=is_key),
                writer.schema_text,
                kind,
            ),
            writer,
        )
        for is_key, writer in writers
    )


def set_heads(parts: Iterable[FramedPart], ids: Mapping[str, SchemaId]) -> None:
    """Let records carry ids that are known by the digests of their schemas.

    Raises ConfigError where one lacks.
    """
    for part in parts:
        found = ids.get(part.schema.digest)
        if found is None:
            raise ConfigError(
                f"the id of the schema of subject {part.schema.subject!r} was not "
                "asked for: a handler makes columns that it does not tell beforehand",
                hint="let the handler say by `table` what becomes of a table's columns",
            )
        part.set(found)
