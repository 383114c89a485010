"""End of a server's WAL now: everything committed lies below it."""

from typing import Final

from walstream.config.run_options import NOW
from walstream.errors import Transient
from walstream.lsn import WAL_PAGE_HEADER, Lsn, parse
from walstream.postgres.connection import session

# not yet flushed with synchronous_commit = off, and committed all the same
_END: Final = (
    "SELECT pg_current_wal_insert_lsn()::text, current_setting('wal_block_size')::int"
)


def resolve(dsn: str, text: str) -> Lsn:
    """Read an LSN; `now` is asked of the server."""
    if text != NOW:
        return parse(text)
    with session(dsn) as connection:
        row = connection.execute(_END).fetchone()
    if row is None:
        raise Transient("the server does not say where its WAL ends")
    return before_header(parse(row[0]), row[1])


def before_header(end: Lsn, page: int) -> Lsn:
    """Return the end of the page before, if only a page's header lies behind it.

    An idle server never sends further than that: no record begins in a header.
    """
    into = end % page
    return end - into if into <= WAL_PAGE_HEADER else end
