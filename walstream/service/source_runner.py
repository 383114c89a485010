"""Runner of each kind of source, in its worker, which loads nothing of the others."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from walstream.config import Config, KafkaSource, PackageSource, SqlSource
from walstream.config.run_options import Options
from walstream.pipeline.shutdown import Stop
from walstream.sources.context import SourceContext
from walstream.sources.report import SourceReport
from walstream.state.store import LmdbStore
from walstream.telemetry.counts import SourceCounts


class SourceRunner(Protocol):
    """Runs sessions of one source, and keeps what outlives them."""

    @property
    def ended(self) -> bool:
        """Return whether nothing is left to do, now or later."""

    @property
    def flowed(self) -> bool:
        """Whether it has streamed or polled in this process."""

    @property
    def phase(self) -> str:
        """Name what it does now; "" where the worker's own state says it."""

    def run(self) -> bool:
        """Run one session until a stop; False: its deadline cut the drain short."""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went."""

    def report(self) -> SourceReport:
        """Return how it goes; from any thread."""

    def counts(self) -> SourceCounts:
        """Return what this process counted, behind the report of the same moment."""


class FoundTables(Protocol):
    """Tables that were looked for."""

    @property
    def tables(self) -> Sequence[str]: ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why, by table."""


@runtime_checkable
class Backfills(SourceRunner, Protocol):
    """A part that reads tables beside its stream."""

    def backfill(self, tables: Sequence[str], *, replace: bool, where: str) -> str:
        """Return "" when it is on disk that tables are to be read; else why not."""

    def find(
        self, patterns: Sequence[str], *, replace: bool, where: str
    ) -> FoundTables:
        """Look for tables, and have them read; that is on disk when this returns.

        Raises WalstreamError for what cannot be read.
        """


@runtime_checkable
class Polls(SourceRunner, Protocol):
    """A part that polls tables."""

    def ask(self, answer: Callable[[str, int], None]) -> None:
        """Poll every table once more, and answer when that is done."""


def runner_of(
    config: Config, name: str, positions: LmdbStore, options: Options, stop: Stop
) -> SourceRunner:
    """Make what this kind of source needs."""
    context = SourceContext(config, name, positions, options, stop)
    source = config.sources[name]
    if options.sink:
        from walstream.sources.postgres.detached_runner import DetachedSinkRunner  # noqa: PLC0415 - of this kind alone

        return DetachedSinkRunner(context)
    if isinstance(source, SqlSource):
        from walstream.sources.sql.runner import SqlRunner  # noqa: PLC0415 - likewise

        return SqlRunner(context)
    if isinstance(source, PackageSource):
        from walstream.sources.plugin import PluginRunner  # noqa: PLC0415 - likewise

        return PluginRunner(context)
    if isinstance(source, KafkaSource):
        from walstream.sources.kafka.runner import KafkaRunner  # noqa: PLC0415 - likewise

        return KafkaRunner(context)
    from walstream.sources.postgres.runner import PostgresRunner  # noqa: PLC0415 - likewise

    return PostgresRunner(context)
