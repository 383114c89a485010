"""One source's worker, as its supervisor sees it: told, heard, ended, started again."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from walstream.config import Config
from walstream.config.run_options import ALL_DONE, Options
from walstream.errors import Transient
from walstream.service.drain import WorkerDrain
from walstream.service.reload_grace import ReloadGrace
from walstream.service.report_history import ReportHistory
from walstream.service.restart_schedule import RestartSchedule
from walstream.service.worker_config import WorkerConfig
from walstream.service.worker_order import WorkerRequest, request_line, start_line
from walstream.service.worker_pipe import WorkerPipe
from walstream.sources.report import WorkerAnswer, WorkerReport
from walstream.status.worker_state import WorkerState
from walstream.telemetry import runtime
from walstream.telemetry.counts import ProcessCounts
from walstream.telemetry.fields import ERROR, SOURCE

_NICE: Final = 10
_log = structlog.get_logger()


class WorkerProcess:
    """A child process, and what it last said."""

    def __init__(
        self, config: Config, source: str, options: Options, sink: str = ""
    ) -> None:
        """With a `sink` it streams to that one alone, which is detached."""
        self.source = source
        self.sink = sink
        self.name = f"{source}/{sink}" if sink else source
        self.history = ReportHistory()
        renewal = ReloadGrace(config.reload_grace)
        self.restarts = RestartSchedule(renewal, of_sink=bool(sink))
        self.order = WorkerConfig(config, source, options, sink)
        self.drain = WorkerDrain(self.order.drain_s)
        self._pipe: WorkerPipe | None = None

    @property
    def exit_code(self) -> int | None:
        """What it ended with for good; None: it runs, or is started again."""
        return self.restarts.exit_code

    @property
    def report(self) -> WorkerReport | None:
        """The last one of the process that runs; None: there is none."""
        return self.history.report

    @property
    def pid(self) -> int | None:
        return self._pipe.pid if self._pipe else None

    @property
    def stdout(self) -> int | None:
        """What to wait on for its state."""
        return self._pipe.stdout if self._pipe else None

    def start_if_due(self) -> bool:
        """Start it when it is not running, not finished, and its wait is over."""
        now = runtime.monotonic()
        if self._pipe or self.drain.lent or not self.restarts.is_due(now):
            return False
        try:
            self._pipe = WorkerPipe()
        except OSError as error:  # no process or memory is left: the others go on
            self.restarts.put_off(now)
            _log.error(
                "a worker cannot be started, trying again",
                **{SOURCE: self.name, ERROR: error.strerror},
            )
            return False
        if self.sink:  # it catches up with what the sources leave over
            self._pipe.be_nice(_NICE)
        self.history.begin(now)
        # by what it is started with, whatever is read later
        self.drain.limit_s = self.order.drain_s
        self.restarts.died_with = None
        self._tell(start_line(self.order.issue()))
        return True

    def _tell(self, line: str) -> None:
        if self._pipe:
            self._pipe.tell(line)

    def stop(self, *, now: bool = False) -> None:
        """Ask it to drain, or to end at once."""
        if self._pipe is None and self.exit_code is None and not self.drain.lent:
            self._give_out()  # between two tries
        self._tell("now" if now else "stop")

    def pass_on(self, word: str, request: WorkerRequest) -> str:
        """Ask it to `backfill` or `poll`; say why not, or ""."""
        if self._pipe is None:
            return "its worker is not running"
        self._tell(request_line(word, request))
        return ""

    def log(self, level: str) -> None:
        """Make it log from this level on, and those that are started after it."""
        self.order.level = level
        self._tell(f"log {level}")

    def answer(self, number: int) -> WorkerAnswer | None:
        """Return what it says to a request; None: nothing yet."""
        if self._pipe is None:
            return WorkerAnswer(
                "its worker ended meanwhile: try again", Transient.exit_code
            )
        return self.report.answers.get(str(number)) if self.report else None

    def lend(self) -> None:
        """Drain and end it; it is not started before it is taken back."""
        self.drain.lend(runtime.monotonic())
        self.restarts.exit_code = None
        self._tell("stop")

    def take_back(self, *, stopping: bool) -> None:
        """Start it again, whatever it had ended with; not while all is stopping."""
        self.drain.lent = False
        if (stopping or self.drain.retired) and self._pipe is None:
            self._give_out()
        self.restarts.hurry()

    def take(self, config: Config, *, asked: bool = True) -> list[str]:
        """Go by another configuration; name what of it is different for this one.

        Where something is, it drains and ends, and is started again. So is one that had
        ended with an error, if `asked`: what it lacked may exist now.
        """
        self.restarts.renewal.grace_s = config.reload_grace
        changes = self.order.take(config)
        if self._pipe is None:
            if (self.exit_code and asked) or changes or self.drain.retired:
                self.restarts.exit_code = None
                self.restarts.hurry()
        elif (changes or self.drain.retired) and not self.drain.lent:
            self._renew()
        self.drain.retired = False
        return changes

    def _renew(self) -> None:
        if self.drain.renew(runtime.monotonic()):
            self._tell("stop")

    def retire(self) -> None:
        """Drain and end it for good: it is configured no more."""
        self.drain.retired = True
        if self._pipe is not None:
            self._renew()
        elif not self.drain.lent:
            self._give_out()

    def _give_out(self) -> None:
        """End it for good while it does not run; where it was to end, say if it had."""
        if not self.order.stopped_code:
            self.restarts.exit_code = 0
        elif self.exit_code is None:
            self.restarts.exit_code = self.order.stopped_code
            self._say_cut_short()

    def _say_cut_short(self) -> None:
        if self.order.stopped_code:
            _log.error(
                "stopped before the LSN was reached: not everything is delivered",
                **{SOURCE: self.name},
                hint="run it again: it continues from its position",
            )

    @property
    def is_over(self) -> bool:
        """Return whether it was retired, and nothing of it is left."""
        return self.drain.retired and self._pipe is None and not self.drain.lent

    @property
    def was_refused(self) -> bool:
        """Return whether it ended because its password or certificate was refused."""
        error = self.history.error
        ended = self.restarts.needs_operator and not self.drain.lent
        return bool(ended and error and error.final and error.renewable)

    def try_again(self) -> bool:
        """Try one that was refused again after a while; False: it is over."""
        code = self.exit_code
        wait_s = self.restarts.renew(runtime.monotonic())
        if wait_s is None:
            self.history.error = None  # that was it
            return False
        self._log_restart(code, wait_s)
        return True

    def hurry(self) -> None:
        """Kill one that drains for too long to be lent, or to begin again."""
        if self.drain.is_late(runtime.monotonic()):
            self.kill()

    def give_up(self) -> None:
        """Wait no longer, neither for its end nor for whom it is lent to."""
        self.kill()
        if self._pipe is None and self.exit_code is None:
            self._give_out()

    def kill(self) -> None:
        if self._pipe:
            self._pipe.kill()

    def hear(self) -> bool:
        """Take in the state that it wrote; False: it will write no more."""
        if self._pipe is None:
            return False
        line, goes_on = self._pipe.read()
        if line is not None:
            self._take_in(line)
        return goes_on

    def _take_in(self, line: bytes) -> None:
        """Keep a report; a full pipe may have cut it: then the next one tells."""
        try:
            self.history.hear(line, runtime.monotonic())
        except ValueError as error:
            said = {SOURCE: self.name, ERROR: str(error)}
            _log.debug("a report cannot be read", **said)
        else:
            self._note_flow()

    def _note_flow(self) -> None:
        if self.history.flows:
            self.restarts.renewal.flows()
        if self.report and self.report.flowed:
            self.order.forget_consents()
        if self.report and self.report.stream:
            self.order.end_at(self.report.stream.until)

    @property
    def hangs(self) -> bool:
        """Return whether it runs, and says nothing or does not turn its loop."""
        return self._pipe is not None and self.history.hangs(runtime.monotonic())

    def end_hanging(self, patience_s: float) -> None:
        """Kill it, to be started again, if it has hung for that long: one, not all."""
        idle_s = self.history.idle_s(runtime.monotonic())
        if idle_s > patience_s:
            _log.error(
                "a worker hangs: it is killed and started again",
                **{SOURCE: self.name},
                seconds=round(idle_s),
            )
            self.kill()

    def state(self) -> WorkerState:
        """Return what is known of the process that runs, or of its absence."""
        now = runtime.monotonic()
        history, runs = self.history, self._pipe is not None
        return WorkerState(
            report=self.report or WorkerReport(),
            pid=self.pid,
            exit_code=self.exit_code,
            died_with=None if runs else self.restarts.died_with,
            lent=self.drain.lent,
            silent=runs and history.is_silent(now),
            stalls=history.stalls(now) if runs else (),
            heard_at=history.heard_at if history.has_spoken else None,
        )

    def knowledge(self) -> WorkerState:
        """Return likewise, and what lasts of processes that ended."""
        return replace(self.state(), report=self.history.known())

    def counted(self) -> ProcessCounts:
        """Return what all its processes counted; it never falls."""
        return replace(self.history.counts, deaths=self.restarts.deaths)

    def _end(self, pipe: WorkerPipe) -> None:
        """Read its last words, and keep what it counted."""
        while pipe.has_more and self.hear():
            pass
        self.history.end()
        pipe.close()
        self._pipe = None

    def reap(self, *, stopping: bool) -> None:
        """See whether it has ended, and decide whether it is started again."""
        if self._pipe is None or (code := self._pipe.poll()) is None:
            return
        self._end(self._pipe)
        lived_s = runtime.monotonic() - self.history.started_at
        renewed = self.drain.end()
        if renewed and not (stopping or self.drain.lent):
            self.restarts.exit_code = None
            if self.drain.retired:
                self.restarts.exit_code = 0 if code == ALL_DONE else None
                self._give_out()
            self.restarts.hurry()
        elif not self.drain.lent:
            self._decide(code, lived_s, stopping=stopping)

    def _decide(self, code: int, lived_s: float, *, stopping: bool) -> None:
        """Start it again, unless its end is for good."""
        if self.restarts.damages(code, lived_s):
            folder = Path(self.order.config.state) / self.name
            _log.error(
                f"worker died by signal {-code}: the state in {folder} may be damaged",
                **{SOURCE: self.name},
                hint=f"restore {folder}, or: walstream positions reset {self.name}"
                " --adopt-slot",
            )
        now = runtime.monotonic()
        wait_s = self.restarts.end(code, lived_s, now, stopping=stopping)
        if wait_s is not None:
            self._log_restart(code, wait_s)
        elif stopping and self.exit_code:
            self._say_cut_short()

    def _log_restart(self, code: int | None, wait_s: float) -> None:
        _log.error(
            "worker ended, starting it again",
            **{SOURCE: self.name},
            exit_code=code,
            wait_s=round(wait_s, 1),
        )
