"""Writes what PostgreSQL's walsender writes: pgoutput payloads and CopyData frames.

Shares no code with the decoder. Source of the formats: PostgreSQL manual, "Logical
Replication Message Formats" and "Streaming Replication Protocol".
"""

from collections.abc import Callable, Sequence
from functools import singledispatch
from struct import Struct
from typing import Final

from walstream.lsn import Lsn
from walstream.pipeline.pgoutput.messages import (
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.row import UNCHANGED, NotSent, Value

_BEGIN: Final = Struct("!cQqI").pack
_COMMIT: Final = Struct("!cBQQq").pack
_HEAD: Final = Struct("!cI").pack  # tag, OID
_COLUMN: Final = Struct("!Ii").pack  # type OID, type modifier
_WAL_DATA: Final = Struct("!cQQq").pack  # 'w', start, end, clock
_KEEPALIVE: Final = Struct("!cQqB").pack  # 'k', wal_end, clock, reply wanted
_COMMIT_RECORD_SIZE: Final = 48


@singledispatch
def _encode(message: object) -> bytes:
    raise TypeError(f"not a pgoutput message: {type(message).__name__}")


def encode(message: Message) -> bytes:
    """Write one message as the payload that decodes to it."""
    return _encode(message)


@_encode.register
def _begin(message: Begin) -> bytes:
    return _BEGIN(b"B", message.final_lsn, message.commit_time, message.xid)


@_encode.register
def _commit(message: Commit) -> bytes:
    return _COMMIT(
        b"C", message.flags, message.commit_lsn, message.end_lsn, message.commit_time
    )


@_encode.register
def _origin(message: Origin) -> bytes:
    return b"O" + _u64(message.commit_lsn) + _string(message.name)


@_encode.register
def _relation(message: Relation) -> bytes:
    columns = b"".join(
        bytes([column.is_key])
        + _string(column.name)
        + _COLUMN(column.type_oid, column.type_modifier)
        for column in message.columns
    )
    return (
        _HEAD(b"R", message.oid)
        + _namespace(message.namespace)
        + _string(message.name)
        + message.replica_identity.encode()
        + _u16(len(message.columns))
        + columns
    )


@_encode.register
def _type(message: Type) -> bytes:
    return (
        _HEAD(b"Y", message.oid) + _namespace(message.namespace) + _string(message.name)
    )


@_encode.register
def _insert(message: Insert) -> bytes:
    return _HEAD(b"I", message.relation_oid) + b"N" + _tuple_data(message.new)


@_encode.register
def _update(message: Update) -> bytes:
    old = b""
    if message.old is not None:
        old = (b"O" if message.old_whole else b"K") + _tuple_data(message.old)
    head = _HEAD(b"U", message.relation_oid)
    return head + old + b"N" + _tuple_data(message.new)


@_encode.register
def _delete(message: Delete) -> bytes:
    tag = b"O" if message.old_whole else b"K"
    return _HEAD(b"D", message.relation_oid) + tag + _tuple_data(message.old)


@_encode.register
def _truncate(message: Truncate) -> bytes:
    oids = b"".join(map(_u32, message.relation_oids))
    return _HEAD(b"T", len(message.relation_oids)) + bytes([message.options]) + oids


@_encode.register
def _logical_message(message: LogicalMessage) -> bytes:
    return (
        b"M"
        + bytes([message.transactional])
        + _u64(message.lsn)
        + _string(message.prefix)
        + _u32(len(message.content))
        + message.content
    )


def _tuple_data(row: Sequence[Value]) -> bytes:
    return _u16(len(row)) + b"".join(map(_value, row))


def _value(value: Value) -> bytes:
    if value is None:
        return b"n"
    if value is UNCHANGED:
        return b"u"
    if isinstance(value, NotSent):
        raise TypeError(
            f"{value} stands for no bytes: an old key's other columns are n"
        )
    text = value.encode()
    return b"t" + _u32(len(text)) + text


def _namespace(name: str) -> bytes:
    return _string("" if name == "pg_catalog" else name)


def _string(text: str) -> bytes:
    return text.encode() + b"\0"


def _number(size: int) -> Callable[[int], bytes]:
    return lambda value: value.to_bytes(size, "big")


_u16: Final = _number(2)
_u32: Final = _number(4)
_u64: Final = _number(8)


def wal_data(payload: bytes, lsn: Lsn = 0) -> bytes:
    """Frame one payload, of the WAL record at `lsn`."""
    return _WAL_DATA(b"w", lsn, lsn, 0) + payload


def keepalive(wal_end: Lsn, *, reply: bool = False) -> bytes:
    """Frame the server's word of how far it has read."""
    return _KEEPALIVE(b"k", wal_end, 0, reply)


def transaction(
    lsn: Lsn, *messages: Message, end_lsn: Lsn = 0, xid: int = 1
) -> list[bytes]:
    """Frame one transaction of commit LSN `lsn`, which ends right behind it."""
    end_lsn = end_lsn or lsn + _COMMIT_RECORD_SIZE
    whole = [Begin(lsn, 0, xid), *messages, Commit(0, lsn, end_lsn, 0)]
    return [wal_data(encode(message), lsn) for message in whole]
