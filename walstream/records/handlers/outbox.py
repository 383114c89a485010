"""A handler of an outbox table: each row that is inserted is an event, and a record.

As Debezium's EventRouter has it: deletes are ignored (a queue is emptied), and so are
updates, with a warning; one that moves the row's key is an insert. The row's columns
say where its record goes and what is in it.
"""

from collections.abc import Iterator
from typing import Final

import structlog

from walstream.config.handler import HandlerSettings
from walstream.errors import ConfigError, HistoryError, WalstreamError
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.records.handlers.outbox_settings import VALUE, OutboxSettings
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import distinct_part
from walstream.row import UNCHANGED, NotSent
from walstream.telemetry.fields import LSN, TABLE
from walstream.telemetry.json_codec import read
from walstream.telemetry.throttle import Throttle

_SAY_AGAIN_S: Final = 60.0
_INTEGERS: Final = frozenset({20, 21, 23})  # int8, int2, int4
_TIMESTAMPS: Final = frozenset({1114, 1184})  # without a time zone, and with one
_log = structlog.get_logger()


class Outbox:
    """Makes records of the events in one table."""

    def __init__(self, table: Table, settings: HandlerSettings) -> None:
        """Raise ConfigError for a column that the table lacks, or of another type."""
        from walstream.records.handlers.outbox_form import (  # noqa: PLC0415
            OutboxForm,
        )

        told = read(OutboxSettings, settings)
        self.table = table
        self.named = told.columns
        lacking = sorted(self.named.difference(table.columns))
        if lacking:
            raise ConfigError(
                f"outbox: table {table.full_name!r} has no column {', '.join(lacking)}",
                hint="correct the handler's columns, or its tables; if a column was "
                "renamed, put rename_columns in front, from its new name to the old",
            )
        self._told = told
        self._form: OutboxForm = OutboxForm(table, told)
        self._id = table.columns.index(told.id)
        self._route = self._place(told.route) if VALUE in told.topic else None
        self._partition = self._place(told.partition, _INTEGERS, "an integer")
        self._timestamp = self._place(told.timestamp, _TIMESTAMPS, "a timestamp")
        self._throttle = Throttle(_SAY_AGAIN_S)
        self._lost: set[tuple[str, str]] = set()  # what was said of it

    def _place(
        self, name: str, oids: frozenset[int] = frozenset(), wanted: str = ""
    ) -> int | None:
        """Find a column that is of one of these types, as far as that is known."""
        if not name:
            return None
        index = self.table.columns.index(name)
        types = self.table.type_oids
        if oids and types and types[index] not in oids:
            raise ConfigError(
                f"outbox: column {name!r} of table {self.table.full_name!r} is not"
                f" {wanted}",
                hint="correct the handler's columns",
            )
        return index

    def handle(self, op: ReplicationOp) -> Iterator[ProducerRecord]:
        if op.kind is Kind.INSERT:
            yield self._record(op)
        elif op.key_changed and _is_another(op):
            yield self._record(halves(op)[1])
        elif op.kind is Kind.UPDATE:
            self._refuse(op)

    def _record(self, op: ReplicationOp) -> ProducerRecord:
        """Make an event's record; raise HistoryError: no event is skipped."""
        if op.absent:
            self._check_sent(op)
        try:
            record = self._made(op)
        except (HistoryError, MemoryError):
            raise
        except WalstreamError as error:
            raise HistoryError(str(error.args[0]), hint=error.hint) from error
        except Exception as error:  # its words may hold the row's values
            raise HistoryError(
                f"{_event(op)} has no record: {type(error).__name__}",
                hint="leave such rows out by a filter in front of the handler, and "
                "report this with the table's definition; then: walstream run",
            ) from error
        if len(self._form.lost) > len(self._lost):
            self._say_lost(op)
        return record

    def _say_lost(self, op: ReplicationOp) -> None:
        """Log once for each column what has no form, as NaN of a numeric."""
        for column, reason in sorted(self._form.lost.keys() - self._lost):
            _log.warning(
                "a value of an event has no form: null or the nearest one is sent",
                **{TABLE: op.table.full_name, LSN: show(op.lsn)},
                column=column,
                reason=reason,
                hint="docs/debezium.md lists such values",
            )
        self._lost |= self._form.lost.keys()

    def _made(self, op: ReplicationOp) -> ProducerRecord:
        form = self._form
        return ProducerRecord(
            key=form.key(op),
            value=form.value(op),
            topic=self._topic(op),
            headers=form.headers(op),
            timestamp=self._time(op),
            partition=self._number(op),
        )

    def _topic(self, op: ReplicationOp) -> str:
        if self._route is None:
            return self._told.topic
        value = (op.new or ())[self._route]
        if not isinstance(value, str):
            raise HistoryError(
                f"{_event(op)} has no topic: its column {self._told.route!r} is NULL",
                hint="leave such rows out by a filter in front of the handler "
                '(operations = ["insert"], is_null = false), then: walstream run',
            )
        return self._told.topic.replace(VALUE, distinct_part(value))

    def _time(self, op: ReplicationOp) -> int | None:
        if self._timestamp is None:
            return None
        value = (op.new or ())[self._timestamp]
        return self._form.millis(op, self._timestamp) if value is not None else None

    def _number(self, op: ReplicationOp) -> int | None:
        if self._partition is None:
            return None
        value = (op.new or ())[self._partition]
        return int(value) if isinstance(value, str) else None

    def _refuse(self, op: ReplicationOp) -> None:
        """Ignore an update: an event that happened does not change."""
        what = "an event of an outbox table was updated"
        if self._told.on_update == "stop":
            raise HistoryError(
                f"{_event(op)} was updated, and on_update is 'stop'",
                hint='set on_update = "warn", which ignores updates, then: walstream '
                "run",
            )
        if self._throttle.is_due(what):
            where = {TABLE: op.table.full_name, LSN: show(op.lsn)}
            _log.warning(f"{what}: that is ignored", **where, seq_id=op.seq_id)

    def _check_sent(self, op: ReplicationOp) -> None:
        """Raise HistoryError for an update that a row filter turned into an insert."""
        for name, value in zip(self.table.columns, op.new or (), strict=True):
            if name in self.named and isinstance(value, NotSent):
                raise HistoryError(
                    f"{_event(op)} lacks its column {name!r}, which PostgreSQL did not"
                    " send: an update made the row pass the publication's filter",
                    hint="leave such rows out by a filter in front of the handler, "
                    "then: walstream run",
                )


def _is_another(update: ReplicationOp) -> bool:
    """Return whether it is the row's key that moved: not a sink's partition key alone.

    Another row is another event.
    """
    old, new = update.old or (), update.new or ()
    return any(
        new[index] is not UNCHANGED and old[index] != new[index]
        for index in update.table.key
    )


def _event(op: ReplicationOp) -> str:
    return f"event of table {op.table.full_name!r} at ({show(op.lsn)}, {op.seq_id})"
