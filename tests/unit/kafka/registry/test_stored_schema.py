"""Ids of schemas in the state folder."""

from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.stored_schema import (
    SCHEMAS,
    StoredSchema,
    document_of,
    lent,
)
from walstream.testing.memory import MemoryStore


def test_a_document_is_of_a_sink_and_a_schema() -> None:
    schema, stored = SubjectSchema("s", "{}"), MemoryStore()
    found = StoredSchema(7, "s", "http://r")
    stored.write(document_of("one", schema).entry(found))
    assert document_of("one", schema).read(stored) == found
    assert document_of("two", schema).read(stored) is None
    assert SCHEMAS.read_all(stored) == {f"one/{schema.digest}": found}


def test_ids_are_lent_to_the_folder_of_a_detached_sink() -> None:
    """Those that it has itself stay: it may have asked since."""
    store = MemoryStore()
    for name in ("kafka/1", "kafka/2", "kafka-2/3"):
        store.write(SCHEMAS.of(name).entry(StoredSchema(7, "t", "http://r")))
    found = lent(store, "kafka", ["kafka/2"])
    assert list(found) == [SCHEMAS.of("kafka/1").name]
