"""What reads a schema is chosen by the registry's word for its language."""

import pytest

from walstream.errors import WalstreamError
from walstream.formats.encodings.avro.reader import AvroReader
from walstream.formats.encodings.readers import reader_of

TEXT = '{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}'


@pytest.mark.parametrize("kind", [None, "", "AVRO"])
def test_without_a_word_it_is_avro(kind: str | None) -> None:
    assert isinstance(reader_of(kind, TEXT), AvroReader)


def test_another_language_is_named() -> None:
    with pytest.raises(
        WalstreamError, match="in XML, where Avro, JSON Schema and Protobuf are"
    ):
        reader_of("XML", TEXT)
