"""A topic whose ops of one row lie in several partitions: under another record key.

Only a mirror that keeps its rows' positions can read it. Every row in it is whole: an
Update that lacks a value needs the row that it changes.
"""

import random
from typing import Any, Final

import orjson

from tests.simulation.kafka import Record, SimTopic

_SOURCE: Final = "walstream-source"
Document = dict[str, Any]


def scattered(topic: SimTopic, draw: random.Random) -> SimTopic | None:
    """Spread a topic's ops; None: it has, or lacks, rows of a snapshot."""
    found: dict[tuple[int, int], Record] = {}
    documents: dict[tuple[int, int], Document] = {}
    for record in (one for part in topic.partitions for one in part):
        document = orjson.loads(record.value or b"{}")
        if document.get("snapshot"):
            return None
        name = document["lsn"], document["seq_id"]
        found.setdefault(name, record)
        documents.setdefault(name, document)
    parts: list[list[Record]] = [[] for _ in topic.partitions]
    sources = {one for record in found.values() for one in record.headers}
    rows: dict[str, dict[str, Any]] = {}
    for name in sorted(found):
        document = documents[name]
        if not _fill(rows, document):
            return None
        record = found[name]._replace(
            key=None,
            value=orjson.dumps(document),
            headers=tuple(sorted(one for one in sources if one[0] == _SOURCE)),
        )
        truncates = document["op"] == "Truncate"
        chosen = [*range(len(parts))] if truncates else [draw.randrange(len(parts))]
        for part in chosen:
            parts[part].append(record._replace(partition=part))
    return SimTopic(topic.name, topic.number, parts)


def _fill(rows: dict[str, dict[str, Any]], document: Document) -> bool:
    """Give an op the values that it lacks; keep what its row is then."""
    if document["op"] == "Truncate":
        rows.clear()
        return True
    ((kind, values),) = document["op"].items()
    columns = document["col_names"]
    new = values[1] if kind == "Update" else values
    key = new[columns.index("id")]
    if kind == "Delete":
        rows.pop(key, None)
        return True
    lacks = document.get("absent", {}).pop("new", ())
    if lacks and key not in rows:
        return False
    for name in lacks:
        new[columns.index(name)] = rows[key].get(name)
    rows[key] = dict(zip(columns, new, strict=True))
    return True
