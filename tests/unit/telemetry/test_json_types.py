"""Numbers in JSON are what people know them by."""

import pytest
from jsonschema import ValidationError, validate
from pydantic import TypeAdapter

from walstream.telemetry.json_types import ShownLsn, SystemIdentifier

LSN: TypeAdapter[int] = TypeAdapter(ShownLsn)
IDENTIFIER: TypeAdapter[int] = TypeAdapter(SystemIdentifier)


@pytest.mark.parametrize("lsn", [0, 1, 0x16B3748, 2**64 - 1])
def test_an_lsn_is_postgresqls_text(lsn: int) -> None:
    high, low = lsn >> 32, lsn & 0xFFFFFFFF
    assert LSN.dump_python(lsn, mode="json") == f"{high:X}/{low:X}"


def test_a_system_identifier_loses_no_digit() -> None:
    assert IDENTIFIER.dump_json(2**63 + 1) == b'"9223372036854775809"'


@pytest.mark.parametrize("adapter", [LSN, IDENTIFIER])
def test_the_schema_takes_it_and_no_number(adapter: TypeAdapter[int]) -> None:
    schema = adapter.json_schema(mode="serialization")
    validate(adapter.dump_python(7, mode="json"), schema)
    with pytest.raises(ValidationError):
        validate(7, schema)
