"""One source's worker, as its supervisor sees it: told, heard, ended, started again."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.errors import Transient
from walstream.service.reload import Effective
from walstream.service.reload_grace import Renewal
from walstream.service.restart_schedule import RestartSchedule
from walstream.service.stall import HANGS_S, StallWatch
from walstream.service.worker_counts import WorkerCounts
from walstream.service.worker_order import (
    StartOrder,
    WorkerRequest,
    request_line,
    start_line,
)
from walstream.service.worker_pipe import WorkerPipe
from walstream.sources.report import ErrorReport, WorkerAnswer, WorkerReport, decode
from walstream.status.report import WorkerState
from walstream.status.snapshot import SILENT_S
from walstream.telemetry.counts import ProcessCounts
from walstream.telemetry.fields import ERROR, SOURCE

GRACE_S: Final = 10.0  # beyond the drain's own deadline, before a worker is killed
_NICE: Final = 10
_FLOWS: Final = frozenset({"streaming", "polling", "backfilling"})
_FIRST_WORD_S: Final = 120.0
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
        self.report: WorkerReport | None = None  # the last one; None: there is none
        self.heard_at = 0.0  # monotonic
        renewal = Renewal(config.reload_grace)
        self.restarts = RestartSchedule(renewal, of_sink=bool(sink))
        self.lent = False  # to another command, which uses the source's state
        self.retired = False  # its source, or sink, is configured no more
        # by what its process was started with, whatever was read since
        self.drain_s = config.shutdown_timeout + GRACE_S
        self._renewed_at = 0.0  # it was asked to end, for another configuration
        self._effective: Effective | None = None  # what its process was started with
        self._config = config
        self._options = replace(options, sink=sink)
        self._pipe: WorkerPipe | None = None
        self._started_at = 0.0
        self._lent_at = 0.0
        self._stalls = StallWatch()
        self._level: str = config.log_level
        self._last = WorkerReport()  # of processes that ended
        self._ended_with: ErrorReport | None = None  # the error of the last one
        self._counts = WorkerCounts()

    @property
    def exit_code(self) -> int | None:
        """What it ended with for good; None: it runs, or is started again."""
        return self.restarts.exit_code

    @property
    def pid(self) -> int | None:
        return self._pipe.pid if self._pipe else None

    @property
    def stdout(self) -> int | None:
        """What to wait on for its state."""
        return self._pipe.stdout if self._pipe else None

    def start_if_due(self) -> bool:
        """Start it when it is not running, not finished, and its wait is over."""
        now = time.monotonic()
        if self._pipe or self.lent or not self.restarts.is_due(now):
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
        self._started_at = now
        self.drain_s = self._config.shutdown_timeout + GRACE_S
        self.restarts.died_with = None
        self._stalls = StallWatch()
        self._effective = Effective.of(self._config, self.source)
        order = StartOrder(
            os.getpid(),
            self.source,
            self._config.to_json(),
            self._level,
            self._options,
        )
        self._tell(start_line(order))
        return True

    def _tell(self, line: str) -> None:
        if self._pipe:
            self._pipe.tell(line)

    def stop(self, *, now: bool = False) -> None:
        """Ask it to drain, or to end at once."""
        if self._pipe is None and self.exit_code is None and not self.lent:
            self.restarts.exit_code = 0  # between two tries
        self._tell("now" if now else "stop")

    def pass_on(self, word: str, request: WorkerRequest) -> str:
        """Ask it to `backfill` or `poll`; say why not, or ""."""
        if self._pipe is None:
            return "its worker does not run now"
        self._tell(request_line(word, request))
        return ""

    def log(self, level: str) -> None:
        """Make it log from this level on, and those that are started after it."""
        self._level = level
        self._tell(f"log {level}")

    def answer(self, number: int) -> WorkerAnswer | None:
        """Return what it says to a request; None: nothing yet."""
        if self._pipe is None:
            return WorkerAnswer(
                "its worker ended meanwhile: ask again", Transient.exit_code
            )
        return self.report.answers.get(str(number)) if self.report else None

    def lend(self) -> None:
        """Drain and end it; it is not started before it is taken back."""
        self.lent = True
        self._lent_at = time.monotonic()
        self.restarts.exit_code = None
        self._tell("stop")

    def take_back(self, *, stopping: bool) -> None:
        """Start it again, whatever it had ended with; not while all is stopping."""
        self.lent = False
        if (stopping or self.retired) and self._pipe is None:
            self.restarts.exit_code = 0
        self.restarts.hurry()

    def take(self, config: Config, *, asked: bool = True) -> list[str]:
        """Go by another configuration; name what of it is different for this one.

        Where something is, it drains and ends, and is started again. So is one that had
        ended with an error, if somebody `asked`: what it lacked may be there.
        """
        self._config = config
        self.restarts.renewal.grace_s = config.reload_grace
        to = Effective.of(config, self.source)
        changes = list(self._effective.changes(to)) if self._effective else []
        if self._pipe is None:
            if (self.exit_code and asked) or changes or self.retired:
                self.restarts.exit_code = None
                self.restarts.hurry()
        elif (changes or self.retired) and not self.lent:
            self._renew()
        self.retired = False
        return changes

    def _renew(self) -> None:
        if not self._renewed_at:
            self._renewed_at = time.monotonic()
            self._tell("stop")

    def retire(self) -> None:
        """Drain and end it for good: it is configured no more."""
        self.retired = True
        if self._pipe is not None:
            self._renew()
        elif not self.lent:
            self.restarts.exit_code = 0

    @property
    def is_over(self) -> bool:
        """Return whether it was retired, and nothing of it is left."""
        return self.retired and self._pipe is None and not self.lent

    @property
    def was_refused(self) -> bool:
        """Return whether it ended because its password or certificate was refused."""
        error = self._ended_with
        ended = self.restarts.needs_operator and not self.lent
        return bool(ended and error and error.final and error.renewable)

    @property
    def sink_is_refused(self) -> bool:
        """Return whether a sink of its waits whose client is refused as who it is."""
        if self._pipe is None or self.report is None:
            return False
        outages = [sink.outage for sink in self.report.sinks.values()]
        return any(outage and outage.refused for outage in outages)

    def try_again(self) -> bool:
        """Try one that was refused again after a while; False: it is over."""
        code = self.exit_code
        wait_s = self.restarts.renew(time.monotonic())
        if wait_s is None:
            self._ended_with = None  # that was it
            return False
        self._log_restart(code, wait_s)
        return True

    def hurry(self) -> None:
        """Kill one that drains for too long to be lent, or to begin again."""
        since = self._lent_at if self.lent else self._renewed_at
        if since and time.monotonic() > since + self.drain_s:
            self.kill()

    def give_up(self) -> None:
        """Wait no longer, neither for its end nor for whom it is lent to."""
        self.kill()
        if self._pipe is None and self.exit_code is None:
            self.restarts.exit_code = 0

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
            self.heard_at = time.monotonic()
        return goes_on

    def _note_flow(self) -> None:
        """Note that it streamed: a state that passed quickly is in no report."""
        report = self.report
        if report and (report.flowed or report.state in _FLOWS):
            self.restarts.renewal.flows()
        if report and report.flowed:
            self._options = self._options.without_consents()

    def _take_in(self, line: bytes) -> None:
        """Keep a report; a full pipe may have cut it: then the next one tells."""
        try:
            self.report, counts = decode(line)
        except ValueError as error:
            said = {SOURCE: self.name, ERROR: str(error)}
            _log.debug("a report cannot be read", **said)
        else:
            self._counts.hear(counts)
            self._note_flow()

    @property
    def _heard(self) -> bool:
        """Return whether the process that runs has said something yet."""
        return self.heard_at >= self._started_at

    @property
    def hangs(self) -> bool:
        """Return whether it says nothing, or its loop does not turn.

        A server that is away, or a source without changes, lets both go on.
        """
        if self._pipe is None:
            return False
        now = time.monotonic()
        if not self._heard:
            return now - self._started_at > _FIRST_WORD_S
        return now - self.heard_at > SILENT_S or self._turn_s >= HANGS_S

    @property
    def _turn_s(self) -> float:
        """How long the last turn of its loop took when it told, while it streams."""
        if self.report is None or self.report.state != "streaming":
            return 0.0
        return (self.report.stream and self.report.stream.turn_s) or 0.0

    def end_hanging(self, patience_s: float) -> None:
        """Kill it, to be started again, if it has hung for that long: one, not all."""
        now = time.monotonic()
        since = max(self._started_at, self.heard_at - self._turn_s)
        if now - since > patience_s:
            _log.error(
                "a worker hangs: it is killed, and started again",
                **{SOURCE: self.name},
                seconds=round(now - since),
            )
            self.kill()

    def state(self) -> WorkerState:
        """Return what is known of the process that runs, or of its absence."""
        now = time.monotonic()
        told = self.report or WorkerReport()
        # what it said before it was started anew is not how it is
        current = told if self._heard else WorkerReport()
        runs = self._pipe is not None
        return WorkerState(
            report=told,
            pid=self.pid,
            exit_code=self.exit_code,
            died_with=None if runs else self.restarts.died_with,
            lent=self.lent,
            # while many start at once, the first word takes longer
            silent=runs and self._heard and now - self.heard_at > SILENT_S,
            stalls=tuple(self._stalls.look(now, current)) if runs else (),
            heard_at=self.heard_at if self._heard else None,
        )

    def knowledge(self) -> WorkerState:
        """Return likewise, and what lasts of processes that ended."""
        report, last = self.report, self._last
        source = last.source.lasting if last.source else None
        if report is None:
            known = WorkerReport(error=last.error, source=source)
        else:
            known = replace(report, source=report.source or source)
        return replace(self.state(), report=known)

    def counted(self) -> ProcessCounts:
        """Return what all its processes counted; it never falls."""
        return replace(self._counts.sum, deaths=self.restarts.deaths)

    def _end(self, pipe: WorkerPipe) -> None:
        """Read its last words, and keep what it counted."""
        while pipe.has_more and self.hear():
            pass
        self._counts.end()
        pipe.close()
        self._pipe = None
        report, self.report = self.report, None  # the state folder knows how it ended
        self._ended_with = report.error if report else None
        if report is not None:
            self._last = replace(report, source=report.source or self._last.source)

    def reap(self, *, stopping: bool) -> None:
        """See whether it has ended, and decide whether it is started again."""
        if self._pipe is None or (code := self._pipe.poll()) is None:
            return
        self._end(self._pipe)
        lived_s = time.monotonic() - self._started_at
        renewed_at, self._renewed_at = self._renewed_at, 0.0
        if renewed_at and not (stopping or self.lent):
            self.restarts.exit_code = 0 if self.retired else None
            self.restarts.hurry()
        elif not self.lent:
            self._decide(code, lived_s, stopping=stopping)

    def _decide(self, code: int, lived_s: float, *, stopping: bool) -> None:
        """Start it again, unless its end is for good."""
        if self.restarts.damages(code, lived_s):
            folder = Path(self._config.state) / self.name
            _log.error(
                f"worker died by signal {-code}: the state in {folder} may be damaged",
                **{SOURCE: self.name},
                hint=f"restore {folder}, or: walstream positions reset {self.name}",
            )
        now = time.monotonic()
        wait_s = self.restarts.end(code, lived_s, now, stopping=stopping)
        if wait_s is not None:
            self._log_restart(code, wait_s)

    def _log_restart(self, code: int | None, wait_s: float) -> None:
        _log.error(
            "worker ended, starting it again",
            **{SOURCE: self.name},
            exit_code=code,
            wait_s=round(wait_s, 1),
        )
