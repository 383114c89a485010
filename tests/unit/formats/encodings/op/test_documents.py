"""Ops as JSON of their schema's tree."""

import json

from tests.support.loads.registered_op import OPTIONS, TABLE, op
from walstream.formats.encodings.op.documents import OpDocuments
from walstream.op import Kind
from walstream.row import OMITTED


def test_an_op_has_all_fields_of_its_schema() -> None:
    documents = OpDocuments(TABLE, OPTIONS)
    one = op(Kind.UPDATE, ["1", OMITTED, None], ["1", "x", "NaN"])
    one.absent = True
    found = json.loads(documents.document(one))
    assert [*found] == [name for name, _ in documents.schema.fields]
    assert found["old"] == {"id": 1, "v": None, "n": None}
    assert found["new"] == {"id": 1, "v": "x", "n": None}
    assert found["absent"] == {"old": ["v"], "new": None}
    assert found["texts"] == {"old": None, "new": {"n": "NaN"}}
    assert found["kind"] == "Update"
    truncate = json.loads(documents.document(op(Kind.TRUNCATE)))
    assert (truncate["old"], truncate["new"], truncate["partitions"]) == (None, None, 0)
