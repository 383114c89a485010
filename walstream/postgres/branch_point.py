"""Branches of a server's timelines, by the history file of its own. Pure."""

from collections.abc import Mapping
from typing import Final

from walstream.errors import RESET, RETRIED, HistoryError, Transient, WalstreamError
from walstream.lsn import Lsn, parse
from walstream.postgres.server import Server

_GAP: Final = "the changes in between will be missing in Kafka"


def check_former(timeline: int, server: Server) -> None:
    """Wait where what is known comes from a later timeline: a dsn may lag a failover.

    The server has no part of that. All that is stored stays right for the primary.
    """
    if timeline > server.timeline:
        raise Transient(
            f"the position is on timeline {timeline}, the server on timeline"
            f" {server.timeline}: it is a former primary, or an older backup",
            hint="correct the dsn, if it does not lead to the new primary by itself "
            f"soon; {RETRIED}. Only if this server is now meant: walstream positions "
            "reset",
        )


def branches_of(history: str) -> dict[int, Lsn]:
    """Read where each older timeline was left."""
    lines = [line.split("\t") for line in history.splitlines()]
    return {
        int(fields[0]): _parse(fields[1])
        for fields in lines
        if len(fields) > 1 and fields[0].strip().isdigit()
    }


def left_at(source: str, timeline: int, server: Server, left: Mapping[int, Lsn]) -> Lsn:
    """Return where a timeline was left; raise where the server's history lacks it."""
    if timeline in left:
        return left[timeline]
    check_former(timeline, server)
    raise HistoryError(
        f"the position is on timeline {timeline}, which is not in the history"
        f" of the server's timeline {server.timeline}",
        hint=_GAP,
        repair=RESET.of_source(source),
    )


def _parse(text: str) -> Lsn:
    try:
        return parse(text)
    except ValueError:
        raise WalstreamError(f"timeline history: {text!r} is not an LSN") from None
