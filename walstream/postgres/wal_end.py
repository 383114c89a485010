"""LSN to stream up to: an operator's, or the end of a server's WAL now."""

from typing import Final

from walstream.config.run_options import NOW
from walstream.errors import Transient
from walstream.lsn import Lsn, parse
from walstream.postgres import server as servers
from walstream.postgres.connection import session

# not yet flushed with synchronous_commit = off, and committed all the same
_END: Final = (
    "SELECT pg_current_wal_insert_lsn()::text, current_setting('wal_block_size')::int,"
    " pg_size_bytes(current_setting('wal_segment_size'))"
)
_PAGE_HEADER: Final = 24  # bytes: the first record may begin behind it
_SEGMENT_HEADER: Final = 40  # likewise, on a segment's first page


def resolve(dsn: str, text: str, *, resuming: bool) -> Lsn:
    """Read an LSN; the server is asked for `now`, and for the sizes of its WAL.

    Raises for a standby, as a run without an end does: it writes no WAL of its own.
    """
    with session(dsn) as connection:
        servers.refuse_standby(servers.look(connection), resuming=resuming)
        row = connection.execute(_END).fetchone()
    if row is None:
        raise Transient("the server does not say where its WAL ends")
    end, page, segment = row
    return before_header(parse(end if text == NOW else text), page, segment)


def before_header(end: Lsn, page: int, segment: int) -> Lsn:
    """Return the end of the page before, if only a page's header lies behind it.

    An idle server never sends further than that: no record begins in a header.
    """
    into = end % page
    header = _SEGMENT_HEADER if end % segment < page else _PAGE_HEADER
    return end - into if into <= header else end
