"""Records of a transaction topic: what was committed, and how far all of it lies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from consumer.group.assigned_partition import Place
from walstream.errors import WalstreamError
from walstream.lsn import Lsn

_DEBEZIUM: Final = "status"  # a field of its BEGIN and END


@dataclass(frozen=True, slots=True)
class ToldTransaction:
    """A transaction, with the number of its records in each partition."""

    lsn: Lsn  # of its commit
    end_lsn: Lsn
    xid: int | None
    commit_time: int  # in microseconds since 1970
    counts: Mapping[Place, int]
    parked: int = 0  # records that no topic of a table has


@dataclass(frozen=True, slots=True)
class ResolvedMark:
    """Each op of the stream below `resolved` is below these offsets."""

    resolved: Lsn
    ends: Mapping[Place, int]


def read_told(value: bytes) -> ToldTransaction | ResolvedMark:
    """Decode a record's value; raise WalstreamError for one of another form."""
    found: Any = None
    try:
        found = orjson.loads(value)
        return _mark(found) if "resolved" in found else _told(found)
    except (AttributeError, KeyError, TypeError, ValueError):
        if isinstance(found, dict) and _DEBEZIUM in found.get("payload", found):
            raise WalstreamError(
                "the transactions are told in Debezium's form, which counts no records"
                " of partitions",
                hint='set txinfo_form = "walstream" in the sink, and name a new topic',
            ) from None
        raise WalstreamError("the record tells of no transaction") from None


def _told(found: Any) -> ToldTransaction:
    xid = found["xid"]
    return ToldTransaction(
        int(found["lsn"]),
        int(found["end_lsn"]),
        None if xid is None else int(xid),
        int(found["commit_time"]),
        {
            Place(topic, int(number)): int(count)
            for topic, counts in found["rows"].items()
            for number, count in counts.items()
        },
        int(found["parked"]),
    )


def _mark(found: Any) -> ResolvedMark:
    ends = {
        Place(topic, number): int(end)
        for topic, offsets in found["next"].items()
        for number, end in enumerate(offsets)
    }
    return ResolvedMark(int(found["resolved"]), ends)
