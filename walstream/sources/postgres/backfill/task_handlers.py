"""A chunk's rows behind a sink's handlers: as the stream handles its ops."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Self

import structlog

from walstream.errors import ConfigError, Transient
from walstream.formats import Encoder, MakeEncoder, RecordEncoder
from walstream.formats.context import Context
from walstream.formats.encodings import parts_of
from walstream.formats.encodings.subject import set_heads
from walstream.kafka.bulk_producer import Headers
from walstream.lsn import show
from walstream.op import ReplicationOp, Table
from walstream.pipeline.backoff import Backoff
from walstream.records.handlers import Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Unhandled
from walstream.records.record_key import with_own_key
from walstream.records.router import Route, Router
from walstream.row import Row
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, LSN, TABLE
from walstream.telemetry.tally import Tally

_log = structlog.get_logger()


@dataclass(slots=True)
class Made:
    """Records of a block; `seq_ids` tell which row each was made of."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    seq_ids: Sequence[int] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)  # none where no record has any

    def only(self, chosen: Sequence[bool]) -> Self:
        """Return the records that are chosen."""
        return replace(
            self,
            values=list(compress(self.values, chosen)),
            keys=list(compress(self.keys, chosen)),
            seq_ids=list(compress(self.seq_ids, chosen)),
            headers=list(compress(self.headers, chosen)),
        )


class HandledRows:
    """Makes records of rows of one table, for one sink."""

    def __init__(
        self,
        chain: Chain,
        router: Router,
        make_encoder: MakeEncoder,
        context: Context,
        check: Callable[[], None],
    ) -> None:
        """`check` may end a wait for a handler."""
        self._chain = chain
        self._router = router
        self._make_encoder = make_encoder
        self._context = context
        self._check = check
        self._headed = context.debezium is not None  # do its records have headers?
        self._written: dict[Table, tuple[Route, Encoder]] = {}
        self.tally = Tally()

    @property
    def encoders(self) -> Iterator[tuple[Table, Encoder]]:
        """Those that records were made by."""
        return ((table, encoder) for table, (_, encoder) in self._written.items())

    def made(self, op: ReplicationOp, table: Iterable[Row], seq_id: int) -> Made:
        """Handle rows as ops like this one, from this number on."""
        made = Made()
        seq_ids: list[int] = []
        made.seq_ids = seq_ids
        for number, row in enumerate(table, seq_id):
            one = replace(op, new=row, seq_id=number)
            outs = self._handled(one)
            if outs is not None and not outs:
                self.tally.skipped[op.table.full_name] += 1
            for out in outs or ():
                headers: Headers = []
                if isinstance(out, ProducerRecord):
                    key, value = _plain(out, op.table)
                    made.values.append(value)
                    made.keys.append(key)
                else:
                    route, encoder = self._writing(out.table, op.table)
                    made.values.append(encoder.encode(out))
                    made.keys.append(route.key.render(out))
                    if isinstance(encoder, RecordEncoder):
                        headers = encoder.headers(out)
                if self._headed:
                    made.headers.append(headers)
                seq_ids.append(number)
        return made

    def _handled(self, op: ReplicationOp) -> list[Out] | None:
        """Handle one, as often as it takes; None: it is never taken."""
        backoff = Backoff()
        while True:
            try:
                return list(self._chain.handle(op))
            except Transient:
                self._check()
                runtime.sleep(backoff.next())
            except Unhandled as error:
                self.tally.failed[op.table.full_name] += 1
                _log.error(
                    "op is skipped: a handler does not take it",
                    **{
                        TABLE: op.table.full_name,
                        LSN: show(op.lsn),
                        ERROR: str(error.args[0]),
                    },
                    seq_id=op.seq_id,
                )
                return None

    def _writing(self, table: Table, read: Table) -> tuple[Route, Encoder]:
        try:
            return self._written[table]
        except KeyError:
            pass
        origin = self._context.origin
        route, wanted = (
            self._router.route(table, origin),
            self._router.topic(read.schema, read.name),
        )
        if route is None or route.topic != wanted:
            raise ConfigError(
                f"a handler returns rows of table {read.full_name!r} as those of "
                f"{table.full_name!r}, which has another topic: a backfill cannot do "
                "that",
                hint="map both tables to one topic",
            )
        encoder = self._make_encoder(table, self._context)
        made = with_own_key(route, encoder, table), encoder
        columns = made[0].key.columns
        set_heads(
            parts_of(encoder, route.topic, columns, self._context), self._context.ids
        )
        self._written[table] = made
        return made


def _plain(record: ProducerRecord, table: Table) -> tuple[bytes, bytes]:
    """Return key and value of a record; raise ConfigError if it has more, or less."""
    key, value = record.key, record.value
    if key is None or value is None or record != ProducerRecord(key, value):
        raise ConfigError(
            f"a handler returns records of table {table.full_name!r} with a topic,"
            " headers, a time or a partition of their own, or without a key or value:"
            " tasks of Spark cannot send them",
            hint='set backfill = "never" in the source, and send its rows beside the '
            f"stream: walstream backfill {table.full_name}",
        )
    return key, value
