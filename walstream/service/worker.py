"""A worker: one source's process. Told what to do by a pipe, ends with its parent.

The supervisor writes one line of JSON (the order), later `backfill` or `poll` and what
of as JSON, `log` and a level, `stop` for a drain or `now` for an end at once; end of
file is the supervisor's death. The worker writes its state to another, a line of JSON a
second, with its answers to the last requests. Its exit code is the error's.
"""

import contextlib
import os
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import structlog

from walstream.config import Config
from walstream.config.run_options import ALL_DONE, Options
from walstream.errors import ConfigError, Restart, Transient, WalstreamError
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.shutdown import Stop, Waker
from walstream.service.source_runner import Backfills, Polls, SourceRunner, runner_of
from walstream.service.supervisor_pipes import SupervisorPipes
from walstream.service.worker_order import WorkerRequest, start_of
from walstream.service.worker_threads import end_in_time, obey, push
from walstream.sources.postgres.detached.detached_sink import folder_of
from walstream.sources.report import (
    LAST_ERROR,
    ErrorReport,
    SourceReport,
    StreamReport,
    WorkerAnswer,
    WorkerReport,
    encode,
)
from walstream.spark.parent_death import die_with_parent, take_signals
from walstream.state.store import LmdbStore
from walstream.telemetry import garbage, logs, runtime
from walstream.telemetry.counts import ProcessCounts, SourceCounts
from walstream.telemetry.fields import ERROR, HINT, REPAIR, SOURCE, THEN

_LAST_WORD_S: Final = 1.0
_WAITS: Final = Transient.exit_code
_ANSWERS: Final = 16  # that are still told
_NAMED: Final = 20  # tables of an answer
_STARTING: Final = "it is still starting: try again"
_SAY_AGAIN_S: Final = 60.0
_HEALTHY_S: Final = 10.0  # a session that lasted so long begins backoff anew
_log = structlog.get_logger()


_Told = tuple[SourceReport | None, SourceCounts]


def _told_by(part: SourceRunner | None) -> _Told:
    """Return a part's report, and its counts of that moment."""
    return (part.report(), part.counts()) if part else (None, SourceCounts())


class Worker:
    """Runs sessions of one source until a stop, or an error that stays."""

    def __init__(self, config: Config, name: str, options: Options, stop: Stop) -> None:
        self._config = config
        self._name = name
        self._options = options
        self._stop = stop
        # each try of a detached sink may begin with a large transaction
        self._backoff = Backoff(1.0, 60.0) if options.sink else Backoff()
        self._said: tuple[str, float] = ("", 0.0)
        self._positions: LmdbStore | None = None
        self._part: SourceRunner | None = None
        self._over: _Told | None = None  # what a part that is over tells
        self._telling = threading.Lock()  # no part is asked while it ends
        self.answers: dict[str, WorkerAnswer] = {}  # by the request's number
        self._error: ErrorReport | None = None  # the last one
        self._errors: Counter[str] = Counter()  # by kind
        self._mute = False  # it could not report, which was said
        self.state = "starting"

    def run(self) -> bool:
        """Stream, or poll, until stop; True: there is nothing left to do, now or later.

        Raises what trying again would not cure.
        """
        folder = Path(self._config.state) / self._name
        if self._options.sink:
            folder = folder_of(folder, self._options.sink)
        ended = False
        while not (ended or self._stop.requested):
            try:
                with LmdbStore(folder) as positions:
                    self._positions = positions
                    self._take_up(positions)
                    try:
                        ended = self._sessions(self._part_of(positions))
                    finally:
                        self._end_part()
            except Transient as error:
                self._positions = None
                self._wait(error)
        return ended

    def _take_up(self, positions: LmdbStore) -> None:
        """Go on with the last error that was kept."""
        self._error = LAST_ERROR.read(positions)
        if self._error and self._error.final:
            self._error = replace(self._error, final=False)
            positions.write(LAST_ERROR.entry(self._error))

    def _part_of(self, positions: LmdbStore) -> SourceRunner:
        self._part = runner_of(
            self._config, self._name, positions, self._options, self._stop
        )
        self._over = None
        return self._part

    def _end_part(self) -> None:
        """Remember what it told last: from now on it has no positions to look at."""
        with self._telling, contextlib.suppress(Exception):
            self._over = _told_by(None)
            self._over = _told_by(self._part)
            if isinstance(self._over[0], StreamReport):  # the next part ends there too
                self._options = self._options.ending_at(self._over[0].until)

    def _note(self, error: WalstreamError, *, final: bool) -> None:
        """Keep an error for later requests, even after the source has ended."""
        scrub = self._config.secrets.scrub
        repair = error.repair.of_source(self._name)
        self._error = ErrorReport(
            at=runtime.time(),
            error=scrub(str(error.args[0])),
            hint=scrub(error.hint),
            repair=repair.command,
            exit_code=error.exit_code,
            final=final,
            renewable=error.renewable,
            sql=scrub(repair.sql),
            then=scrub(repair.then),
        )
        with contextlib.suppress(WalstreamError):  # the state itself may be at fault
            if self._positions is not None:
                self._positions.write(LAST_ERROR.entry(self._error))

    def _sessions(self, part: SourceRunner) -> bool:
        """Run one after the other; tell whether the last left nothing to do."""
        while not (part.ended or self._stop.requested):
            began = runtime.monotonic()
            if self.state != "waiting":  # what it waited for may still be away
                self.state = "starting"
            try:
                self._say_drained(drained=part.run())
            except Restart as reason:
                self.state = "starting"
                _log.info("stream begins again", reason=str(reason))
                self._stop.event.wait(self._backoff.next())
            except Transient as error:
                if runtime.monotonic() - began > _HEALTHY_S:
                    self._backoff.reset()
                self._wait(error)
            except WalstreamError as error:
                if not self._options.sink:
                    self._errors[error.kind] += 1
                    self._note(error, final=True)
                    raise
                self._wait(error)  # what was wrong may be repaired meanwhile
        return part.ended

    def _wait(self, error: WalstreamError) -> None:
        """Log what is wrong, once a minute if it stays, and wait for the next try."""
        if self._stop.requested:
            self._say_drained(drained=False)
            return
        self.state = "waiting"
        self._errors[error.kind] += 1
        said, at = self._said
        now = runtime.monotonic()
        if said != str(error) or now - at > _SAY_AGAIN_S:
            self._said = (str(error), now)
            self._note(error, final=False)
            _log.warning("trying again", **_fields(error, self._name, self._config))
        self._stop.event.wait(self._backoff.next())

    def _say_drained(self, *, drained: bool) -> None:
        self.state = "stopped"
        if self._part is not None:
            self._part.say_drained(drained=drained)

    @property
    def stopped_code(self) -> int:
        """Exit code of a stop at once."""
        return self._options.stopped_code

    @property
    def phase(self) -> str:
        """Name what it does now."""
        phase = self._part.phase if self._part is not None else ""
        return phase if phase and self.state != "stopped" else self.state

    def report(self) -> tuple[WorkerReport, ProcessCounts]:
        """Return what the supervisor is told: how it goes, and what was counted."""
        with self._telling:
            source, counts = self._over or _told_by(self._part)
        report = WorkerReport(
            state=self.phase,
            flowed=self._part is not None and self._part.flowed,
            error=self._error,
            answers=self.answers,
            source=source,
        )
        return report, ProcessCounts(metrics=counts, errors=dict(self._errors))

    def line(self) -> bytes:
        """Return the report's line; b"" where it fails, since the next one may not."""
        try:
            line = encode(*self.report())
        except Exception:  # noqa: BLE001 - one that says nothing is taken for frozen
            if not self._mute:
                _log.exception("the report failed: a defect")
            self._mute = True
            return b""
        self._mute = False
        return line

    def backfill(self, request: WorkerRequest) -> None:
        """Request that tables are read beside the stream; answer when it is on disk."""
        if isinstance(self._part, Backfills) and request.find:
            runtime.start_thread(self._find, "backfill request", self._part, request)
        elif isinstance(self._part, Backfills):
            problem = self._part.backfill(
                request.tables, replace=request.replace, where=request.where
            )
            self.answer(request, problem, ConfigError.exit_code)
        else:
            self.answer(request, _STARTING)

    def _find(self, part: Backfills, request: WorkerRequest) -> None:
        """Look for the tables of a request, which may take a while; answer it."""
        try:
            found = part.find(
                request.tables, replace=request.replace, where=request.where
            )
        except WalstreamError as error:
            text = str(error.args[0]) + (f": {error.hint}" if error.hint else "")
            answer = WorkerAnswer(self._config.secrets.scrub(text), error.exit_code)
        except Exception:  # noqa: BLE001 - logged scrubbed
            _log.exception("a request for a backfill failed: a defect")
            answer = WorkerAnswer("the request met a defect: see the log", 1)
        else:
            answer = WorkerAnswer(
                "",
                0,
                tuple(found.tables[:_NAMED]),
                len(found.tables),
                dict(islice(found.left_out.items(), _NAMED)),
            )
        self._say(request, answer)

    def poll(self, request: WorkerRequest) -> None:
        """Poll each table once more; answer when that is done."""
        if isinstance(self._part, Polls):
            self._part.ask(partial(self.answer, request))
        else:
            self.answer(request, _STARTING)

    def answer(
        self, request: WorkerRequest, problem: str, exit_code: int = _WAITS
    ) -> None:
        """Answer the request: "" is done."""
        self._say(request, WorkerAnswer(problem, exit_code))

    def _say(self, request: WorkerRequest, answer: WorkerAnswer) -> None:
        last = list(self.answers.items())[1 - _ANSWERS :]
        self.answers = {**dict(last), str(request.number): answer}
        self._stop.waker.wake()


def _fields(error: WalstreamError, source: str, config: Config) -> dict[str, str]:
    """Return an error, and what cures it, so that it can be copied."""
    repair = error.repair.of_source(source)
    said = {ERROR: str(error.args[0]), HINT: error.hint}
    if cure := repair.sql or config.command(repair.command):
        said[REPAIR] = cure
    if repair.then and repair.then != error.hint:
        said[THEN] = repair.then
    return said


def main() -> int:
    """Run one worker; give its exit code."""
    pipes = SupervisorPipes()
    words = pipes.words()
    order = start_of(next(words, ""))
    pipes.hide()
    die_with_parent(order.parent)
    config = Config.from_json(order.config)
    name, options = order.source, order.options
    said = f"{name}/{options.sink}" if options.sink else name
    logs.configure(order.log_level, config.secrets.scrub, **{SOURCE: said})
    stop = Stop(Waker(), config.shutdown_timeout)
    take_signals(lambda _number, _frame: stop.request())
    worker = Worker(config, name, options, stop)
    garbage.keep_all()  # modules and configuration
    garbage.collect_rarely()  # a supervisor of before an upgrade starts it without
    runtime.start_thread(obey, "requests", worker, stop, words)
    over, told = threading.Event(), threading.Event()
    runtime.start_thread(push, "reporter", worker, pipes, over, told)
    runtime.start_thread(end_in_time, "deadline", stop, options.stopped_code)
    try:
        ended = worker.run()
    except WalstreamError as error:
        _log.error("stopped", **_fields(error, name, config))
        return error.exit_code
    except (Exception, SystemExit):  # noqa: BLE001 - logged scrubbed, and no end for good
        _log.exception("worker failed: a defect")
        return 1
    finally:
        over.set()
        told.wait(_LAST_WORD_S)
    return ALL_DONE if ended else options.stopped_code


def process() -> None:
    """Be a worker's process; never return."""
    code = main()
    logs.STDERR.flush()
    # threads may still wait for servers that are away: nothing of theirs matters
    os._exit(code)


if __name__ == "__main__":  # a supervisor of before an upgrade starts it so
    process()
