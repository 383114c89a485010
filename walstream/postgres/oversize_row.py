"""A change that PostgreSQL can write and never send: its text is over 1 GB.

A bytea of more than 512 MB is, in hex. Each try decodes it again, with gigabytes of
memory on the server, and fails the same way; so the error never passes.
"""

from typing import Final

import psycopg

from walstream.errors import RESET, HistoryError
from walstream.lsn import Lsn, show

# stringinfo.c: the message would be too long. Its text is translated, and another in 18
_LIMIT: Final = "54000"
# mcxt.c: a value would be. It is an elog, whose text no server translates
_INTERNAL: Final = "XX000"
_ALLOCATION: Final = "invalid memory alloc request size"
_ALLOCATOR: Final = "mcxt.c"


def is_unsendable(error: psycopg.Error) -> bool:
    """Return whether the same change would fail in the same way for ever.

    53200 is none of these: the server had no memory just then.
    """
    if error.sqlstate == _LIMIT:
        return True
    text = error.diag.message_primary or str(error)
    allocating = text.startswith(_ALLOCATION) or error.diag.source_file == _ALLOCATOR
    return error.sqlstate == _INTERNAL and allocating


def stop(error: psycopg.Error, received: Lsn) -> HistoryError:
    """Make the error that ends the stream; `received` is the last LSN that came."""
    text = error.diag.message_primary or str(error)
    return HistoryError(
        f"streaming: a change after {show(received)} cannot be sent, because a row "
        f"in it is over 1 GB as text: {text.splitlines()[0]} ({error.sqlstate})",
        hint="no reader of this slot can get past it, and each try costs the server "
        "gigabytes. Make the row smaller, or remove its column from the "
        "publication (ALTER PUBLICATION ... SET TABLE ... (columns)); then reset "
        "the source: Kafka then gets what was written since the position only by "
        "a backfill",
        repair=RESET,
    )
