"""Records of a sink's own, with a registry's schemas: messages, BEGIN, heartbeats.

They are few, and made in JSON first.
"""

from dataclasses import dataclass, replace

from walstream.errors import WalstreamError
from walstream.formats.encodings.languages import SchemaDocument, language_of
from walstream.formats.encodings.subject import FramedPart, Strategy, framed_parts
from walstream.records.producer_record import ProducerRecord, SchemaRecord


@dataclass(frozen=True, slots=True)
class _Writers:
    key: SchemaDocument
    value: SchemaDocument
    parts: tuple[FramedPart, ...]


class AsideEncoding:
    """Writes such records of one sink."""

    def __init__(self, encoding: str, subjects: Strategy) -> None:
        self._language = language_of(encoding)
        self._subjects = subjects
        self._writers: dict[tuple[str, str], _Writers] = {}

    def parts(self, topic: str, record: SchemaRecord) -> tuple[FramedPart, ...]:
        """Return the parts whose ids have to be known first."""
        return self._of(topic, record).parts

    def encode(self, topic: str, record: SchemaRecord) -> ProducerRecord:
        """Return the record, encoded, behind the ids of its schemas."""
        writers = self._of(topic, record)
        key, value = record.key, record.value
        if key is None or value is None:
            raise WalstreamError("a record of the sink's own without key or value")
        return replace(
            record, key=writers.key.write(key), value=writers.value.write(value)
        )

    def _of(self, topic: str, record: SchemaRecord) -> _Writers:
        if record.schemas is None:
            raise WalstreamError("a record of the sink's own without schemas")
        key, value = record.schemas
        found = self._writers.get((topic, value.name))
        if found is None:
            language = self._language
            one, other = language.document(key), language.document(value)
            writers = [(True, one), (False, other)]
            parts = framed_parts(self._subjects, language.kind, topic, writers)
            found = self._writers[topic, value.name] = _Writers(one, other, parts)
        return found
