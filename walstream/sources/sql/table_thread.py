"""One table's thread: a poll, a wait, the next poll."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

import structlog

from walstream.errors import (
    RETRIED,
    ConfigError,
    HistoryError,
    PermissionLacking,
    RecordRefused,
    Restart,
    StateDamaged,
    Transient,
    WalstreamError,
)
from walstream.pipeline.backoff import Backoff
from walstream.sources.report import PollRun, TableReport
from walstream.sources.sql.key_restart import KeysRestarted
from walstream.sources.sql.poller import Poller
from walstream.sources.sql.progress import Trouble
from walstream.sources.sql.range_runner import Runner
from walstream.sources.sql.table_session import TableSession
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, REPAIR, TABLE
from walstream.telemetry.meter import (
    PollMeter,
    Rate,
)
from walstream.telemetry.throttle import Throttle

_TRIES: Final = 3
_SAY_AGAIN_S: Final = 60.0
_PATIENCE_S: Final = 120.0  # for a table that was polled, and is away
_log = structlog.get_logger()

Tell = Callable[[WalstreamError], Trouble]


class TableHeld(WalstreamError):
    """A single poll did not get through a table, and may the next time."""

    exit_code: ClassVar[int] = 5


class TableThread:
    """Polls one table until it is told to leave, or its database is away.

    What else goes wrong is the table's own: it is said, and tried again.
    """

    def __init__(
        self,
        poller: Poller,
        runner: Runner,
        place: TableSession,
        told: Tell,
        interval_s: float | None,
    ) -> None:
        """`interval_s` lies between two polls; None: there is only one.

        `told` makes of an error what is kept of it, with the command that cures it.
        """
        self.table = poller.table
        self.error: WalstreamError | None = None  # what ended it, and is the source's
        self.trouble: WalstreamError | None = None  # why the table does not go on
        self.hopeless = False  # nothing but a person brings the table back
        self.done = 0  # polls
        self._poller = poller
        self._runner = runner
        self._place = place
        self._told = told
        self._interval_s = interval_s
        self._begun = 0
        self._tries = _TRIES  # of a single poll
        self._backoff = Backoff(1.0, 60.0)
        self._was_well = False
        self._away_since: float | None = None
        self._leaving = False
        self._wake = threading.Event()
        self._throttle = Throttle(_SAY_AGAIN_S)
        self._rate = Rate()
        self._poll_began: tuple[float, int] | None = None  # while one runs: and rows
        self._meter = PollMeter()
        self._thread: runtime.StartedThread | None = None

    def measure(self, meter: PollMeter) -> None:
        """Count in this one, which outlives the thread; before it is started."""
        self._meter = meter
        meter.begin(self._poller.told.rows)

    def start(self) -> None:
        self._thread = runtime.start_thread(self.run, f"poll {self.table}")

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for its end, if it was started."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def held(self) -> bool:
        """Return whether it reads no new rows, since too many keys are missing."""
        return self._poller.held

    @property
    def cut_short(self) -> bool:
        return self._runner.cut_short

    def poll_now(self) -> int:
        """Make it poll without a wait; return the number of the poll that counts."""
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
                if self._interval_s is None and self._is_tried():
                    self.done = self._begun
                    return
                self.done = self._begun
                if not self._leaving:
                    self._wake.wait(self._wait_s())
        except WalstreamError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - logged scrubbed, not by the interpreter
            _log.exception("polling failed: a defect", **{TABLE: self.table})
            self.error = WalstreamError(f"{type(error).__name__}: a defect")
        finally:
            self._runner.leave()

    def _is_tried(self) -> bool:
        """Return whether a single poll is over: what passes is tried again."""
        if self._wake.is_set():
            return False
        self._tries -= 1
        passing = self.trouble is not None and self.trouble.retryable
        return not passing or not self._tries

    def _wait_s(self) -> float:
        """Return how long to wait for the next poll."""
        interval_s = self._interval_s or 0.0
        if self.trouble is None or isinstance(self.trouble, HistoryError):
            return interval_s
        return max(interval_s, self._backoff.next())

    def _poll(self) -> None:
        before, began = self._phases(), runtime.monotonic()
        self._poll_began = began, self._poller.told.rows
        well = False
        try:
            self._poller.poll()
            well = True
        except WalstreamError as error:
            self._say(self._judge(error))
        finally:
            self._poll_began = None
            spent = [
                now - then for now, then in zip(self._phases(), before, strict=True)
            ]
            self._meter.polled(runtime.monotonic() - began, spent, well=well)
            self._meter.see(self._poller.told.rows)
        if any(spent):
            read_s, publish_s, store_s = (round(one, 6) for one in spent)
            _log.debug(
                "polled",
                **{TABLE: self.table},
                success=well,
                read_s=read_s,
                publish_s=publish_s,
                store_s=store_s,
            )
        if well:
            self._go_on()

    def _phases(self) -> tuple[float, float, float]:
        poller = self._poller
        return poller.read_s, poller.publish_s, poller.store_s

    def _judge(self, error: WalstreamError) -> WalstreamError:
        """Find whose error it is; raise it if it is not the table's own."""
        if isinstance(error, StateDamaged | Restart):
            raise error
        if isinstance(error, RecordRefused | KeysRestarted):
            return error
        former = self._place.forget()  # it may be another one by now
        self._place.reach()
        if not error.retryable:
            try:
                with self._place.connect():
                    pass
            except WalstreamError as found:  # whose words come with the cure
                return error if found.retryable else found
            if former is not None and former != self._place.shape:
                return Transient(str(error.args[0]), hint=RETRIED)
        return error

    def _count_on(self, error: WalstreamError) -> None:
        """Give up a table that was not polled at all, or that stays away."""
        if not isinstance(error, ConfigError | PermissionLacking):
            self._away_since, self.hopeless = None, False
            return
        now = runtime.monotonic()
        if self._away_since is None:
            self._away_since = now
        away_s = now - self._away_since
        self.hopeless = not self._was_well or away_s >= _PATIENCE_S

    def _say(self, error: WalstreamError) -> None:
        """Log why the table does not go on, once a minute if that stays.

        Keys that start again are logged once: only an operator can change that.
        """
        stays = isinstance(self.trouble, KeysRestarted)
        self.trouble = error
        self._count_on(error)
        trouble = self._told(error)
        self._poller.report_trouble(trouble)
        if stays and isinstance(error, KeysRestarted):
            return
        if not self._throttle.is_due(trouble.error):
            return
        what = "a table is not polled"
        if isinstance(error, RecordRefused):
            what = "a row blocks its table"
        fields = {TABLE: self.table, ERROR: trouble.error, HINT: trouble.hint}
        if trouble.repair:
            fields[REPAIR] = trouble.repair
        (_log.warning if error.retryable else _log.error)(what, **fields)

    def _go_on(self) -> None:
        self._backoff.reset()
        if self.trouble is not None and not isinstance(self.trouble, RecordRefused):
            _log.info("the table is polled again", **{TABLE: self.table})
        self.trouble = None
        self._was_well, self._away_since, self.hopeless = True, None, False
        self._throttle.reset()

    def report(self) -> TableReport:
        """Return how far it is; the rate is of those who ask from one thread."""
        now, told, began = runtime.monotonic(), self._poller.told, self._poll_began
        self._meter.see(told.rows)
        return replace(
            told,
            rows_per_s=self._rate.of(now, told.rows),
            poll=PollRun(now - began[0], told.rows - began[1]) if began else None,
            lacks_mark=self._place.lacks_mark,
        )
