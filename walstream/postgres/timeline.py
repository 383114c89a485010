"""Branch points of a server's timelines: only a walsender knows them.

A plain session may not read the history files.
"""

from typing import Final

import psycopg

from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given
from walstream.postgres.connection import Connection, connect, translate
from walstream.postgres.server import Server
from walstream.postgres.start_table import check_timeline

_FIRST: Final = 1


def read(replication: Connection, timeline: int) -> str:
    """Read a timeline's history file over a replication connection."""
    if timeline == _FIRST:
        return ""  # it has none
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


def differ(timeline: int, position: Position, given: Given | None) -> bool:
    """Return whether a server's timeline is not the one of what we have."""
    return timeline != position.timeline or bool(given and given.timeline != timeline)


def check(
    dsn: str, source: str, position: Position, given: Given | None, server: Server
) -> None:
    """Refuse a server whose history left the position's below it, or what was given.

    Takes a walsender for a moment, where the two timelines are not the same.
    """
    if differ(server.timeline, position, given):
        found = history(dsn, server.timeline)
        check_timeline(source, position, server, found, given)
