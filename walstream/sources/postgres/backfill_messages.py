"""Requests for backfills that come as logical messages of the stream.

Any role of the database may write one. So it is heard only of tables that the source
lists, it names tables and nothing else, and whatever is wrong with it is logged and
counted, while the stream goes on.
"""

import json
import queue
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import structlog

from walstream.errors import Transient, WalstreamError
from walstream.pipeline.backoff import Backoff
from walstream.records.router import matches
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, TABLE
from walstream.telemetry.human import few
from walstream.telemetry.throttle import Throttle

PREFIX: Final = "walstream.backfill"
ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
_LONGEST: Final = 4096  # bytes of a message
_MOST_TABLES: Final = 100  # of a message
_MOST_WAITING: Final = 100  # messages that are not looked at yet
_SAY_AGAIN_S: Final = 60.0
_LOOK_EVERY_S: Final = 0.2
_NOT_FOUND: Final = "not found"  # whatever the tables' names
_log = structlog.get_logger()

Find = Callable[[Sequence[str]], "FoundNames"]
"""Look for tables, and have them read; raises WalstreamError."""


class FoundNames(Protocol):
    """Tables that will be read."""

    @property
    def tables(self) -> Sequence[str]: ...


class BackfillMessages:
    """Requests of one source: taken by its stream, looked at by a thread of their own.

    They outlive a session that is tried again: its stream may have confirmed them.
    """

    def __init__(
        self, allowed: Sequence[str], find: Find, count: Callable[[str], None]
    ) -> None:
        """Take messages of these tables; `count` hears how each one ends."""
        self._allowed = allowed
        self._find = find
        self._count = count
        self._waiting: queue.Queue[tuple[str, ...]] = queue.Queue(_MOST_WAITING)
        self._over = False
        self._looks = False  # at one that is in `_waiting` no more
        self._thread: runtime.StartedThread | None = None
        # by what is wrong, which must be few: who writes them chooses their order
        self._throttles: dict[str, Throttle] = {}

    def take(self, prefix: str, content: bytes) -> None:
        """Take a message, if it is of this kind; never blocks, never raises."""
        if prefix != PREFIX:
            return
        try:
            names = names_of(content, self._allowed)
        except ValueError as error:
            self._refuse(str(error))
            return
        if self._thread is None:
            self._thread = runtime.start_thread(self._run, "backfill messages")
        try:
            self._waiting.put_nowait(names)
        except queue.Full:
            self._refuse(f"{_MOST_WAITING} others wait")

    def close(self) -> None:
        """Look at no more; what was not looked at is lost, and logged once."""
        over, self._over = self._over, True
        left = self._waiting.qsize() + self._looks
        if left and not over:
            _log.warning("requests for backfills by message were not looked at", n=left)

    def _refuse(self, why: str, hint: str = "", kind: str = "") -> None:
        """Count it; log it, once a minute for each kind of reason: "" is the reason."""
        self._count(REFUSED)
        throttle = self._throttles.setdefault(kind or why, Throttle(_SAY_AGAIN_S))
        if throttle.is_due(kind or why):
            what = "request for a backfill by a logical message is refused"
            _log.warning(what, **{ERROR: why, HINT: hint})

    def _run(self) -> None:
        while not self._over:
            try:
                names = self._waiting.get(timeout=_LOOK_EVERY_S)
            except queue.Empty:
                continue
            self._looks = True
            try:
                self._look(names)
            except Exception:  # noqa: BLE001 - the next one may be well
                self._count(REFUSED)
                _log.exception("a request for a backfill by message failed: a defect")
            self._looks = False

    def _look(self, names: Sequence[str]) -> None:
        """Look for the tables, for as long as the server is away."""
        backoff = Backoff()
        while not self._over:
            try:
                found = self._find(names)
            except Transient:
                runtime.sleep(backoff.next())
            except WalstreamError as error:
                self._refuse(str(error.args[0]), error.hint, _NOT_FOUND)
                return
            else:
                self._count(ACCEPTED)
                said = {TABLE: few(found.tables)}
                _log.info("backfill requested by a logical message", **said)
                return


def names_of(content: bytes, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return the tables of a message; raise ValueError, without a word of it."""
    if len(content) > _LONGEST:
        raise ValueError(f"it is longer than {_LONGEST} bytes")
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict) or not isinstance(found.get("tables"), list):
        raise ValueError(  # noqa: TRY004 - as all here
            'it is not {"tables": ["schema.table", …]}'
        )
    if set(found) != {"tables"}:
        raise ValueError("it asks for more than tables, which a message cannot")
    names = found["tables"]
    if not 0 < len(names) <= _MOST_TABLES:
        raise ValueError(f"it names no table, or more than {_MOST_TABLES}")
    for name in names:
        if not isinstance(name, str) or not any(matches(one, name) for one in allowed):
            raise ValueError("it names a table that backfill_by_message does not list")
        if not {"*", "?"}.isdisjoint(name):
            raise ValueError("it has a pattern: a message names each table")
    return tuple(dict.fromkeys(names))
