"""Ops with large values, and their records: made with few copies.

Python's text of a value, JSON's text, the record and the producer's copy would all be
there at once. A row keeps a stand-in instead until its record is written, or refused.
"""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

from walstream.formats.placeholder import StandIn
from walstream.op import LargeOp, ReplicationOp
from walstream.row import Row


def made(op: ReplicationOp) -> ReplicationOp:
    """Make a LargeOp of one that has stand-ins outside of its row key."""
    op = spelled(op, op.table.key)
    if not any(True for _ in _stand_ins(op)):
        return op
    fields = op.__reduce__()[1]
    return LargeOp(*fields)


def plain(op: ReplicationOp) -> ReplicationOp:
    """Return the op with all its texts, for who knows no stand-ins."""
    if not isinstance(op, LargeOp):
        return op
    whole = spelled(op, range(len(op.table.columns)))
    return ReplicationOp(*whole.__reduce__()[1])


def takes_large(sink: object) -> bool:
    """Return whether a sink knows stand-ins."""
    return bool(getattr(sink, "takes_large", False))


def spelled(op: ReplicationOp, columns: Iterable[int]) -> ReplicationOp:
    """Return the op with the texts of these columns, whatever their size."""
    wanted = set(columns)
    old, new = _spell(op.old, wanted), _spell(op.new, wanted)
    if old is op.old and new is op.new:
        return op
    return replace(op, old=old, new=new)


def _spell(row: Row | None, columns: Container[int]) -> Row | None:
    if row is None or not any(
        isinstance(value, StandIn) and index in columns
        for index, value in enumerate(row)
    ):
        return row
    return [
        value.text() if isinstance(value, StandIn) and index in columns else value
        for index, value in enumerate(row)
    ]


def _stand_ins(op: ReplicationOp) -> Iterator[StandIn]:
    for row in (op.old, op.new):
        for value in row or ():
            if isinstance(value, StandIn):
                yield value


class LargeRecord:
    """A record's value: what was written with stand-ins, and the texts they mean."""

    def __init__(self, written: bytes, op: ReplicationOp) -> None:
        texts = {str.encode(one): one for one in _stand_ins(op)}
        self._parts: list[bytes | StandIn] = []
        pattern = b'(?<=")(%b)(?=")' % b"|".join(map(re.escape, texts))
        for part in re.split(pattern, written) if texts else [written]:
            self._parts.append(texts.get(part, part))

    def size(self) -> int:
        """Count its bytes, without having them all."""
        return sum(map(len, self._pieces()))

    def value(self) -> bytes:
        """Write it."""
        out = BytesIO()  # grows where it is, and gives away what it has
        for piece in self._pieces():
            out.write(piece)
        return out.getvalue()

    def _pieces(self) -> Iterator[Any]:
        for part in self._parts:
            if isinstance(part, StandIn):
                yield from part.json()
            else:
                yield part
