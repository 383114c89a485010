"""One payload -> one Message: a reader for each tag, fields in the manual's order.

A reader takes the cursor behind the tag, reads its message to the end and returns it.
It does not handle bad input: `decode` alone decides that bytes are no message.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final

from walstream.errors import DecodeError
from walstream.pipeline.pgoutput.cursor import Cursor, Malformed
from walstream.pipeline.pgoutput.messages import (
    Begin,
    Column,
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

_BEGIN: Final = Struct("!xQqI")
_COMMIT: Final = Struct("!xBQQq")
_begin_at: Final = _BEGIN.unpack_from
_commit_at: Final = _COMMIT.unpack_from
_BEGIN_SIZE: Final = _BEGIN.size
_COMMIT_SIZE: Final = _COMMIT.size

_NEW: Final = ord("N")  # a new row follows
_WHOLE: Final = ord("O")  # an old row, every column of it


def _begin(cursor: Cursor) -> Begin:
    return Begin(cursor.u64(), cursor.i64(), cursor.u32())


def _commit(cursor: Cursor) -> Commit:
    return Commit(cursor.u8(), cursor.u64(), cursor.u64(), cursor.i64())


def _origin(cursor: Cursor) -> Origin:
    return Origin(commit_lsn=cursor.u64(), name=cursor.string())


def _relation(cursor: Cursor) -> Relation:
    return Relation(
        oid=cursor.u32(),
        namespace=cursor.string() or "pg_catalog",  # sent as an empty string
        name=cursor.string(),
        replica_identity=chr(cursor.tag(b"dnfi")),
        columns=[_column(cursor) for _ in range(cursor.u16())],
    )


def _column(cursor: Cursor) -> Column:
    return Column(
        is_key=bool(cursor.u8() & 1),
        name=cursor.string(),
        type_oid=cursor.u32(),
        type_modifier=cursor.i32(),
    )


def _type(cursor: Cursor) -> Type:
    return Type(
        oid=cursor.u32(),
        namespace=cursor.string() or "pg_catalog",
        name=cursor.string(),
    )


def _insert(cursor: Cursor) -> Insert:
    oid = cursor.row_head()
    new = cursor.tuple_data()
    return Insert(oid, new, cursor.toasted)


def _update(cursor: Cursor) -> Update:
    oid = cursor.u32()
    tag = cursor.tag(b"KON")
    if tag == _NEW:
        new = cursor.tuple_data()
        return Update(oid, None, False, new, cursor.toasted)  # noqa: FBT003 - fields in the manual's order
    old = cursor.tuple_data()
    cursor.toasted = False
    cursor.tag(b"N")
    new = cursor.tuple_data()
    return Update(oid, old, tag == _WHOLE, new, cursor.toasted)


def _delete(cursor: Cursor) -> Delete:
    oid = cursor.u32()
    whole = cursor.tag(b"KO") == _WHOLE
    return Delete(oid, cursor.tuple_data(), whole)


def _truncate(cursor: Cursor) -> Truncate:
    count = cursor.u32()
    options = cursor.u8()
    return Truncate(options, tuple(cursor.u32() for _ in range(count)))


def _logical_message(cursor: Cursor) -> LogicalMessage:
    return LogicalMessage(
        transactional=bool(cursor.u8() & 1),
        lsn=cursor.u64(),
        prefix=cursor.string(),
        content=cursor.content(),
    )


_BEGIN_TAG: Final = ord("B")
_COMMIT_TAG: Final = ord("C")
_INSERT: Final = ord("I")
READERS: Final[dict[int, Callable[[Cursor], Message]]] = {
    _BEGIN_TAG: _begin,
    _COMMIT_TAG: _commit,
    ord("O"): _origin,
    ord("R"): _relation,
    ord("Y"): _type,
    _INSERT: _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
    ord("M"): _logical_message,
}


def decode(payload: bytes, start: int = 0) -> Message:
    """Decode one message, from `start` to the end; raise DecodeError for anything else.

    A frame is passed with the size of its header, since a slice would be a copy.
    """
    size = len(payload) - start
    if size <= _COMMIT_SIZE and size > 0:
        # in one step, where the size is right: of a small transaction two of three
        tag = payload[start]
        if tag == _BEGIN_TAG and size == _BEGIN_SIZE:
            final_lsn, commit_time, xid = _begin_at(payload, start)
            return Begin(final_lsn, commit_time, xid)
        if tag == _COMMIT_TAG and size == _COMMIT_SIZE:
            flags, commit_lsn, end_lsn, commit_time = _commit_at(payload, start)
            return Commit(flags, commit_lsn, end_lsn, commit_time)
    cursor = Cursor(payload, start)
    message: Message
    try:
        tag = payload[start]
        # called by its name it costs less, and most messages are inserts
        message = _insert(cursor) if tag == _INSERT else READERS[tag](cursor)
    except Malformed as error:
        raise _refuse(payload, start, str(error), error.offset) from None
    except UnicodeDecodeError:
        raise _refuse(payload, start, "text is not UTF-8", cursor.offset) from None
    except IndexError:
        raise _refuse(payload, start, "empty", start) from None
    except KeyError:
        raise _refuse(payload, start, "unknown message", start) from None
    if cursor.offset != len(payload):
        raise _refuse(payload, start, "bytes after its end", cursor.offset)
    return message


def _refuse(payload: bytes, start: int, reason: str, offset: int) -> DecodeError:
    """Return the error; its offset counts from the tag."""
    tag = chr(payload[start]) if start < len(payload) else ""
    return DecodeError(reason, tag=tag, offset=offset - start)
