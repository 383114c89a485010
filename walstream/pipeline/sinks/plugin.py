"""Adapter for a sink that an installed package adds."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from walstream import plugins
from walstream.config.sink import PluginOptions
from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.op import ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import Sink, SinkTopic
from walstream.records.producer_record import ProducerRecord
from walstream.telemetry.meter import SinkMeter, TableMeter
from walstream.telemetry.tally import Tally


def make(
    name: str, kind: str, options: PluginOptions, meter: SinkMeter | None = None
) -> "PackagedSink":
    """Return the package's sink; raise ConfigError if it cannot be made."""
    made = plugins.make(plugins.SINKS, kind, f"sinks.{name}", name, options)
    return PackagedSink(name, made, meter)


class PackagedSink:
    """A package's sink with a name and the figures that every sink has."""

    waiting = False
    outage = None
    handler_waits = False  # it has none

    def __init__(self, name: str, sink: Sink, meter: SinkMeter | None = None) -> None:
        self.name = name
        self._meters = (meter or SinkMeter()).tables
        self._table: tuple[Table | None, TableMeter] = (None, TableMeter(""))
        self.tally = Tally()
        self.topics: Mapping[str, SinkTopic] = {}
        self._sink = sink

    @property
    def in_flight(self) -> int:
        return self._sink.in_flight

    def ready(self) -> bool:
        with self._blamed():
            return self._sink.ready()

    def knows(self, table: Table) -> bool:
        with self._blamed():
            return self._sink.knows(table)

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        table, meter = self._table
        if op.table is not table:
            meter = self._meters.of(op.table.full_name)
            self._table = op.table, meter
        meter.ops += 1
        with self._blamed():
            return self._sink.send(op, transaction)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Attribute a failure to this sink alone: the source's others go on."""
        try:
            yield
        except WalstreamError:
            raise
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise Transient(f"sink {self.name!r} of a package: {why}") from error
        except Exception as error:
            raise HistoryError(
                f"sink {self.name!r} of a package failed: {type(error).__name__}",
                hint="correct the package that adds it, then: walstream run",
            ) from error

    def put(self, _record: ProducerRecord, op: ReplicationOp, _: Transaction) -> None:
        raise ConfigError(
            f"sinks.{self.name}: a handler returns encoded records of table "
            f"{op.table.full_name!r}, and this sink takes only ops",
            hint="remove the handler, or let it return ops",
        )

    def close(self) -> None:
        self._sink.close()
