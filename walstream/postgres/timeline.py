"""Where a server's timelines branched off: asked of a walsender, which alone knows.

A plain session may not read the history files.
"""

import psycopg

from walstream.ports import Position
from walstream.postgres.connection import Connection, connect, translate
from walstream.postgres.server import Server
from walstream.postgres.start import check_timeline


def read(replication: Connection, timeline: int) -> str:
    """Read a timeline's history file over a replication connection."""
    row = replication.execute(f"TIMELINE_HISTORY {timeline}").fetchone()
    content = row[1] if row else b""
    return content.decode() if isinstance(content, bytes) else str(content)


def history(dsn: str, timeline: int) -> str:
    """Read a timeline's history file over a connection of its own."""
    replication = connect(dsn, replication=True)
    try:
        return read(replication, timeline)
    except psycopg.Error as error:
        raise translate(error, f"reading the history of timeline {timeline}") from error
    finally:
        replication.close()


def check(dsn: str, source: str, position: Position, server: Server) -> None:
    """Refuse a server whose history left the position's below it.

    Takes a walsender for a moment, where the two timelines are not the same.
    """
    if server.timeline != position.timeline:
        check_timeline(source, position, server, history(dsn, server.timeline))
