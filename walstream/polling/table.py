"""One table's thread: a poll, a wait, the next poll."""

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

import structlog

from walstream.errors import RecordRefused, WalstreamError
from walstream.meter import PollMeter
from walstream.metrics import ERROR, HINT, TABLE
from walstream.polling.poller import Poller
from walstream.polling.runner import Runner
from walstream.rate import Rate

_SAY_AGAIN_S: Final = 60.0
_log = structlog.get_logger()


class TableHeld(WalstreamError):
    """A single poll read no new rows: too many keys are missing below them."""

    exit_code: ClassVar[int] = 5


class TableThread(threading.Thread):
    """Polls one table until it is told to leave, or an error ends it."""

    def __init__(
        self,
        table: str,
        poller: Poller,
        runner: Runner,
        interval_s: float | None,
        lacks_mark: Callable[[], str] = lambda: "",
    ) -> None:
        """`interval_s` lies between two polls; None: there is only one.

        `lacks_mark` says why the engine has no low-water mark; "" where it has one.
        """
        super().__init__(name=f"poll {table}", daemon=True)
        self.table = table
        self.error: WalstreamError | None = None  # what ended it
        self.refused: RecordRefused | None = None  # why its next row cannot be sent
        self.done = 0  # polls
        self._poller = poller
        self._runner = runner
        self._interval_s = interval_s
        self._begun = 0
        self._leaving = False
        self._wake = threading.Event()
        self._said_at = 0.0
        self._lacks_mark = lacks_mark
        self._rate = Rate()
        self._poll_began: tuple[float, int] | None = None  # while one runs: and rows
        self._meter = PollMeter()

    def measure(self, meter: PollMeter) -> None:
        """Count in this one, which outlives the thread; before it is started."""
        self._meter = meter
        meter.begin(self._poller.told["rows"])

    @property
    def held(self) -> bool:
        """Tell whether it reads no new rows, since too many keys are missing."""
        return self._poller.held

    @property
    def cut_short(self) -> bool:
        return self._runner.cut_short

    def poll_now(self) -> int:
        """Have it poll without a wait; give the number of the poll that counts."""
        number = self._begun + 1
        self._wake.set()
        return number

    def leave(self) -> None:
        """End after what runs."""
        self._leaving = True
        self._wake.set()

    def run(self) -> None:
        try:
            while not self._leaving:
                self._wake.clear()
                self._begun += 1
                self._poll()
                self.done = self._begun
                if self._interval_s is None and not self._wake.is_set():
                    return
                if not self._leaving:
                    self._wake.wait(self._interval_s)
        except WalstreamError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - logged scrubbed, not by the interpreter
            _log.exception("polling failed: a defect", **{TABLE: self.table})
            self.error = WalstreamError(f"{type(error).__name__}: a defect")
        finally:
            self._runner.leave()

    def _poll(self) -> None:
        self._poll_began = time.monotonic(), self._poller.told["rows"]
        try:
            self._poller.poll()
        except RecordRefused as error:
            self._say(error)
        else:
            self.refused = None
        finally:
            self._meter.seconds.observe(time.monotonic() - self._poll_began[0])
            self._meter.see(self._poller.told["rows"])
            self._poll_began = None

    def _say(self, error: RecordRefused) -> None:
        """Say that a row holds up its table, once a minute."""
        now = time.monotonic()
        self.refused = error
        if now - self._said_at > _SAY_AGAIN_S:
            self._said_at = now
            said = {TABLE: self.table, ERROR: str(error.args[0]), HINT: error.hint}
            _log.error("a row holds up its table", **said)

    def report(self) -> dict[str, Any]:
        """Tell how far it is; the rate is of those who ask from one thread."""
        now, told, began = time.monotonic(), self._poller.told, self._poll_began
        self._meter.see(told["rows"])
        poll = {"s": now - began[0], "rows": told["rows"] - began[1]} if began else None
        return {
            **told,
            "rows_per_s": self._rate.of(now, told["rows"]),
            "poll": poll,
            "lacks_mark": self._lacks_mark(),
        }
