"""Configuration that a worker's process starts with, and changes since then."""

import os
from dataclasses import replace
from typing import Final

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.service.config_changes import Effective
from walstream.service.worker_order import StartOrder

_GRACE_S: Final = 10.0  # beyond the drain's own deadline, before a worker is killed


class WorkerConfig:
    """Of one source, or of one of its sinks that is detached."""

    def __init__(
        self, config: Config, source: str, options: Options, sink: str
    ) -> None:
        self.config = config
        self.level: str = config.log_level
        self._source = source
        self._options = replace(options, sink=sink)
        self._given = options.until_lsn
        self._moves = False  # to another server, with the next process
        self._effective: Effective | None = None  # what the last process began with

    @property
    def drain_s(self) -> float:
        """How long a process that is started now may drain."""
        return self.config.shutdown_timeout + _GRACE_S

    @property
    def stopped_code(self) -> int:
        """Exit code of a process that is stopped before its end."""
        return self._options.stopped_code

    def issue(self) -> StartOrder:
        """Return it for a process that starts now, which goes by this to its end."""
        self._effective = Effective.of(self.config, self._source)
        self._moves = False
        return StartOrder(
            os.getpid(),
            self._source,
            self.config.to_json(),
            self.level,
            self._options,
        )

    def take(self, config: Config) -> list[str]:
        """Take another configuration; name what is different to the last process."""
        self.config = config
        to = Effective.of(config, self._source)
        changes = list(self._effective.changes(to)) if self._effective else []
        if f"sources.{self._source}.dsn" in changes:  # maybe of another server
            self._moves = True
            self._options = replace(self._options, until_lsn=self._given)
        return changes

    def forget_consents(self) -> None:
        """Note that it streams: what was consented to is not of a later day."""
        self._options = self._options.without_consents()

    def end_at(self, lsn: str) -> None:
        """Note where it ends, for each process to come on the same server."""
        if not self._moves:
            self._options = self._options.ending_at(lsn)
