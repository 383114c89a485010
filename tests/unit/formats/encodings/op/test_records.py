"""What records of ops have in any encoding."""

import pytest

from tests.support.loads.registered_op import OPTIONS, TABLE, op
from walstream.formats.encodings.op.records import OpRecords
from walstream.op import Kind


def test_a_header_names_an_op_and_no_text_is_put_into_a_record_later() -> None:
    records = OpRecords(TABLE, OPTIONS)
    one = op(Kind.TRUNCATE)
    assert records.headers(one) == [("walstream-position", b"10/3")]
    assert records.texts == frozenset()
    assert records.truncates
    with pytest.raises(NotImplementedError):
        records.values(one)
