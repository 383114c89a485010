"""Restart of keys: how it is detected, and what an operator can do about it.

A table that was truncated, swapped or restored gives keys out again that lie below the
position, where nothing is read. Its greatest key shows that until the keys have grown
past the position; the engine's own counter shows whether rows were only deleted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from shlex import quote
from typing import Final, Protocol

import structlog

from walstream.errors import HistoryError, Repair, Transient
from walstream.sources.sql.progress import TableProgress
from walstream.telemetry import runtime
from walstream.telemetry.fields import TABLE

_LATE_S: Final = 600.0  # how far behind a replica may be
_log = structlog.get_logger()


class KeysRestarted(HistoryError):
    """Keys below the position are given out again: nobody reads them."""


class Behind:
    """Since when a replica shows less than was read elsewhere, which passes."""

    def __init__(self, now: Callable[[], float] = runtime.monotonic) -> None:
        self._now = now
        self._since: float | None = None

    def see(self, *, behind: bool) -> None:
        if not behind:
            self._since = None
        elif self._since is None:
            self._since = self._now()

    def wait(self, table: str) -> None:
        """Raise Transient, as long as it may only be late."""
        if self._since is not None and self._now() - self._since < _LATE_S:
            raise Transient(
                f"table {table!r}: this replica is behind the position, or the "
                "table's keys start again",
                hint="walstream waits for ten minutes, and then treats the keys as"
                " restarted",
            )


@dataclass(frozen=True, slots=True)
class KeyExtent:
    """The keys of a table, as they are now."""

    oldest: int | None  # None: there is no row
    newest: int | None
    next: int | None  # that the engine gives; None: it does not tell


def is_suspect(position: int, newest: int | None) -> bool:
    """Return whether the engine has to be asked for its next key."""
    return newest is None or newest < position


def are_restarted(position: int, keys: KeyExtent) -> bool:
    """Return whether keys up to the position are given out again.

    Where the engine tells its next key, that decides. Else a greatest key below the
    position does; a table without rows shows nothing, until there is one.
    """
    if not is_suspect(position, keys.newest):
        return False
    if keys.next is not None:
        return keys.next <= position
    return keys.newest is not None


def is_another(before: str, now: str) -> bool:
    """Return whether two origins are of different counters: "" is not known.

    One that only has other bounds or steps was altered: its rewriting says nothing.
    """
    if not before or not now or before == now:
        return False
    return _parts(before)[0] != _parts(now)[0] or _parts(before)[2] == _parts(now)[2]


def _parts(origin: str) -> tuple[str, ...]:
    return tuple(origin.split(" "))


def beginning(keys: KeyExtent) -> int:
    """Return the position from which every existing row is read."""
    first = keys.oldest if keys.oldest is not None else keys.next or 1
    return min(0, first - 1)


def error(
    table: str, position: int, keys: KeyExtent, former: str = ""
) -> KeysRestarted:
    """Return it, with the command that reads the table from its first key.

    `former` is the column of which the position is a key, where it is another one.
    """
    if former:
        seen = f"the position is of the column {former!r}"
    elif keys.newest is not None and keys.newest < position:
        seen = f"its greatest key is {keys.newest}"
    elif keys.newest is None or (keys.next or position + 1) <= position:
        seen = f"the next key is {keys.next}"
    else:
        seen = "the table, or the sequence of its key, was created again"
    to = beginning(keys)
    stays = keys.newest if keys.newest is not None else (keys.next or 1) - 1
    only = "that come from now on" if stays <= position else "of higher keys"
    return KeysRestarted(
        f"table {table!r}: its keys start again: {seen}, and its position {position}: "
        "rows below that would not be read, so the table waits",
        hint=f"rewind it to {to} to send every existing row, or to "
        f"{min(stays, position)} to send only rows {only}; or set "
        'on_restart = "reread"',
        repair=Repair(
            command="walstream positions rewind {source}"
            f" --table {quote(table)} --to {to}"
        ),
    )


class KeyQueries(Protocol):
    """A connection that is asked for the keys of a table."""

    def oldest(self) -> int | None:
        """Return the least key."""

    def next_key(self) -> int | None:
        """Return the least key that the engine gives next; None: it does not tell."""

    def is_replica(self) -> bool:
        """Return whether the server may be behind another one."""

    def origin(self) -> str:
        """Return the generator of the keys: another one starts again; "": unknown."""


class KeyWatch:
    """Detector of a restart of a table's keys, at each poll."""

    def __init__(
        self,
        table: str,
        progress: TableProgress,
        forget: Callable[[], None],
        *,
        rereads: bool,
    ) -> None:
        """Call `forget` before a table starts again: what is known of its keys ends."""
        self._table = table
        self._progress = progress
        self._forget = forget
        self._rereads = rereads
        self._behind = Behind()

    def see(self, look: KeyQueries, newest: int | None) -> None:
        """Check the keys; have the table start again.

        Raises KeysRestarted where an operator has to say how to go on.
        """
        progress = self._progress
        position = progress.key
        if position is None or (newest == position and not progress.restarted):
            return
        suspect = is_suspect(position, newest)
        origin = "" if suspect else look.origin()  # rows are read, so one query more
        following = look.next_key() if suspect else None
        keys = KeyExtent(None, newest, following)
        are_new = progress.restarted or is_another(progress.origin, origin)
        if not are_new and not are_restarted(position, keys):
            progress.origin = origin or progress.origin
            self._behind.see(behind=False)
            return
        if not are_new and look.is_replica():
            self._behind.see(behind=True)
            self._behind.wait(self._table)
        keys = KeyExtent(look.oldest(), newest, following)
        if self._rereads:
            self._begin_anew(position, keys, origin)
            return
        if not progress.restarted:  # they may grow past it meanwhile
            progress.restarted = True
            progress.store()
        raise error(self._table, position, keys, progress.former)

    def _begin_anew(self, position: int, keys: KeyExtent, origin: str) -> None:
        _log.warning(
            "its keys start again: the table is read from its first key",
            **{TABLE: self._table},
            position=position,
            from_key=keys.oldest,
        )
        # first: where this cannot be stored, the next poll finds no restart any more
        self._forget()
        self._progress.begin_anew(beginning(keys), origin)
