"""An instance's workers: one for each source, and for each sink that is detached."""

import os
from collections.abc import Iterator, Sequence

import structlog

from walstream.config import Config, PostgresSource
from walstream.config.run_options import Options
from walstream.config.topology import check_slots
from walstream.service.worker_process import WorkerProcess
from walstream.sources.postgres.detached.detached_sink import AWAY, DROPPED
from walstream.telemetry.counts import ProcessCounts

_log = structlog.get_logger()


class Fleet:
    """Knows which there are to be, by the configuration and by what sources say."""

    def __init__(self, config: Config, options: Options) -> None:
        self._config = config
        self._options = options
        self._level: str = config.log_level
        self.workers = [self._make(name) for name in sorted(config.sources)]
        self.away: dict[str, WorkerProcess] = {}  # of detached sinks, by their name
        self.left_code = 0  # the highest of sources that were given up before their end
        self._back: dict[str, ProcessCounts] = {}  # what those counted that are gone

    def _make(self, source: str, sink: str = "") -> WorkerProcess:
        made = WorkerProcess(self._config, source, self._options, sink)
        made.log(self._level)
        return made

    @property
    def everyone(self) -> list[WorkerProcess]:
        return [*self.workers, *self.away.values()]

    def worker(self, source: str) -> WorkerProcess | None:
        """Find a source's own."""
        return next((one for one in self.workers if one.name == source), None)

    def of_source(self, source: str) -> list[WorkerProcess]:
        """Find it, and those of its detached sinks."""
        return [one for one in self.everyone if one.source == source]

    def log(self, level: str) -> None:
        """Make all log from this level on, and those that come later."""
        self._level = level
        for worker in self.everyone:
            worker.log(level)

    def follow_sinks(self) -> None:
        """Keep a worker for each sink that is detached, as the sources' own report."""
        for worker in self.workers:
            if worker.drain.lent or worker.drain.retired:
                continue
            configured = self._config.sources[worker.source].sinks
            stream = worker.report.stream if worker.report else None
            for sink, told in (stream.away if stream else {}).items():
                name = f"{worker.source}/{sink}"
                # one that drains for a reload still tells of a sink that is gone
                wanted = told.phase == AWAY and sink in configured
                if wanted and name not in self.away:
                    self.away[name] = self._make(worker.source, sink)
        for name, own in list(self.away.items()):
            if own.exit_code is not None and own.pid is None:
                self._back[name] = self.counted(own)
                del self.away[name]  # if the sink is still away, it is started again

    def may_start(self, worker: WorkerProcess) -> bool:
        """Return False while a worker of its source ends whose sink is gone.

        That one still has the sink's state, which a worker of the source clears up.
        """
        return bool(worker.sink) or not any(
            one.drain.retired and one.pid is not None
            for one in self.away.values()
            if one.source == worker.source
        )

    def counted(self, worker: WorkerProcess) -> ProcessCounts:
        """Return what a worker counted, with those of its name before it."""
        counts, back = worker.counted(), self._back.get(worker.name)
        return counts if back is None else back + counts

    def all_counted(self) -> dict[str, ProcessCounts]:
        """Return what each counted, by its name, those that are gone included."""
        counted = {worker.name: self.counted(worker) for worker in self.everyone}
        return {**self._back, **counted}

    def drop_retired(self) -> None:
        """Forget the sources that are configured no more, and have drained.

        One that was to go up to an LSN leaves its exit code.
        """
        left = [one.exit_code or 0 for one in self.workers if one.is_over]
        if self._options.until_lsn:
            self.left_code = max((self.left_code, *left))
        self.workers = [one for one in self.workers if not one.is_over]

    def take(
        self, config: Config, *, asked: bool = True
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Go by another configuration; say what is done, and for which keys.

        Workers that had ended with an error are tried again if `asked`.
        """
        before, self._config = self._config, config
        self._options = self._options.without_consents()
        for one in self.everyone:
            source = config.sources.get(one.source)
            if source is None or (one.sink and one.sink not in source.sinks):
                if not one.sink:
                    copies = _copies(one)
                    said = _farewell(before, one.source, config, copies)
                    yield said, (f"sources.{one.source}",)
                one.retire()
            elif (changes := one.take(config, asked=asked)) and not one.sink:
                yield f"source {one.source!r} begins again", tuple(changes)
        for name in sorted(config.sources.keys() - {one.name for one in self.workers}):
            self.workers.append(self._make(name))
            yield f"source {name!r} begins", (f"sources.{name}",)
        self.workers.sort(key=lambda one: one.name)


def _copies(worker: WorkerProcess) -> list[str]:
    """Name the copies of a source's slot that its detached sinks have."""
    stream = worker.report.stream if worker.report else None
    away = stream.away.values() if stream else ()
    return sorted(told.slot for told in away if told.phase != DROPPED)


def _farewell(before: Config, name: str, after: Config, copies: Sequence[str]) -> str:
    """Return a message that a source ends, and what it leaves on its server."""
    source = before.sources[name]
    if not isinstance(source, PostgresSource):
        return f"source {name!r} ends"
    for other, heir in after.sources.items():
        # nobody is to drop it then: a source that only got another name, say
        if any(check_slots({name: source, other: heir}, os.environ)):
            return (
                f"source {name!r} ends; source {other!r} names slot {source.slot!r}: "
                "if only the name is another, stop walstream, and move state folder "
                f"{name} in the place of {other}"
            )
    slots = [source.slot, *copies]
    drops = [f"SELECT pg_drop_replication_slot('{slot}');" for slot in slots]
    if not copies:
        said = f"its slot {source.slot!r} keeps WAL until it is dropped"
    else:
        of_sinks = ", ".join(map(repr, copies))
        said = f"its slot {source.slot!r}, and those of detached sinks, {of_sinks},"
        said += " keep WAL until they are dropped"
    return f"source {name!r} ends; {said}: {' '.join(drops)}"
