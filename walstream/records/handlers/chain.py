"""A sink's handlers, one behind the other; each made once for each table.

Picklable before its first op: Spark's tasks make the same of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from walstream.config.handler import HandlerSettings
from walstream.errors import ConfigError, HistoryError, Transient, WalstreamError
from walstream.lsn import show
from walstream.op import ReplicationOp, Table
from walstream.records.handlers import (
    HANDLERS,
    OUTBOX,
    Handler,
    Out,
    ProducerRecord,
    handler_of,
)
from walstream.records.router import matches

_MAX_TABLES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Spec:
    """One handler, as a sink names it."""

    kind: str
    tables: tuple[str, ...]  # patterns of schema.table
    settings: HandlerSettings = field(repr=False)  # a secret, for one


def is_outbox(specs: Iterable[Spec], table: str) -> bool:
    """Return whether a table, `schema.table`, is an outbox behind these handlers.

    Its rows go to other topics than its own, and those that it has already are a
    queue's past: no backfill sends them.
    """
    return any(
        spec.kind == OUTBOX and any(matches(pattern, table) for pattern in spec.tables)
        for spec in specs
    )


NAMING: Final = {"op", "debezium"}
"""The formats whose readers know an op by its name."""


class Unhandled(WalstreamError):
    """A handler will never take this op: it is skipped."""


class _Step:
    """One handler, by table."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.foreign = spec.kind not in HANDLERS
        self.handled = _handled_by_package if self.foreign else _handled
        self._make = handler_of(spec.kind)
        self._handlers: dict[Table, Handler | None] = {}

    def of(self, table: Table) -> Handler | None:
        """Find what handles a table; None: it is not for it. Raises ConfigError."""
        try:
            return self._handlers[table]
        except KeyError:
            pass
        if len(self._handlers) >= _MAX_TABLES:
            self._handlers.clear()
        made = None
        if any(matches(pattern, table.full_name) for pattern in self.spec.tables):
            made = self._made(table)
        self._handlers[table] = made
        return made

    def _made(self, table: Table) -> Handler:
        spec = self.spec
        try:
            return self._make(table, spec.settings)
        except WalstreamError:
            raise
        except (Exception, SystemExit) as error:
            # a stranger's: its words may hold what the options hold
            raise ConfigError(
                f"handler {spec.kind!r} cannot be made for table {table.full_name!r}:"
                f" {type(error).__name__}",
                hint="correct its options, or the package that adds it",
            ) from error


class Chain:
    """Handlers of a sink, in order."""

    def __init__(self, specs: Iterable[Spec], *, several: bool = False) -> None:
        """Raise ConfigError for a handler that cannot be loaded.

        `several` says that an op may become several: nobody knows them by their names.
        """
        self._several = several
        self._steps = [_Step(spec) for spec in specs]

    def handle(self, op: ReplicationOp) -> Sequence[Out]:
        """Return what leaves the last handler, in order.

        Raises Transient where the same should be tried again, Unhandled where it is to
        be skipped, HistoryError where nothing may follow.
        """
        ops: list[Out] = [op]
        for step in self._steps:
            following: list[Out] = []
            for one in ops:
                if isinstance(one, ProducerRecord):
                    following.append(one)
                    continue
                handler = step.of(one.table)
                if handler is None:
                    following.append(one)
                else:
                    made = step.handled(step.spec.kind, handler, one)
                    if step.foreign and not self._several:
                        _check_names(step.spec.kind, made, one)
                    following += made
            ops = following
        return ops

    def kinds(self, table: Table) -> list[str]:
        """Name the handlers that may take a table's ops."""
        return [
            step.spec.kind
            for step in self._steps
            if any(matches(one, table.full_name) for one in step.spec.tables)
        ]

    def is_outbox(self, table: Table) -> bool:
        """Return whether a table is one, behind these handlers."""
        return is_outbox((step.spec for step in self._steps), table.full_name)

    def shape(self, table: Table) -> Table:
        """Return what becomes of a table; raise ConfigError for what it cannot have."""
        for step in self._steps:
            handler = step.of(table)
            table = getattr(handler, "table", table)
        return table

    def idle(self, tables: Iterable[Table]) -> list[ConfigError]:
        """Name columns of handlers that no table has: a typing error would leak."""
        shapes = list(tables)
        problems = []
        for step in self._steps:
            handlers = [step.of(table) for table in shapes]
            met = {
                name
                for table, handler in zip(shapes, handlers, strict=True)
                if handler is not None
                for name in table.columns
            }
            named = [getattr(handler, "named", ()) for handler in handlers if handler]
            missing = sorted(set().union(*named) - met) if named else []
            if missing:
                problems.append(
                    ConfigError(
                        f"handler {step.spec.kind!r} names columns that none of its"
                        f" tables has: {', '.join(missing)}",
                        hint="correct its columns, or its tables",
                    )
                )
            shapes = [
                getattr(handler, "table", table)
                for table, handler in zip(shapes, handlers, strict=True)
            ]
        return problems


def _handled(kind: str, handler: Handler, op: ReplicationOp) -> list[Out]:
    """Return what one of walstream's own handlers makes of an op."""
    try:
        return list(handler.handle(op))
    except (Transient, HistoryError):
        raise
    except MemoryError as error:
        raise Transient(f"handler {kind!r}: no memory is left") from error
    except Exception as error:
        raise _unhandled(kind, error) from error


def _handled_by_package(kind: str, handler: Handler, op: ReplicationOp) -> list[Out]:
    """Return what a package's handler makes of an op, of which it gets a copy.

    Other sinks have the same rows, and a batch is handled again: it may change its own.
    """
    old = None if op.old is None else list(op.old)
    new = None if op.new is None else list(op.new)
    try:
        made: Any = handler.handle(replace(op, old=old, new=new))
        outs: list[Out] | None = None if made is None else list(made)
    except (Transient, HistoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit(), for one, which would end the worker
        raise _unhandled(kind, error) from error
    if outs is None:
        raise Unhandled(f"handler {kind!r} returns None: return [] to skip an op")
    _check_kinds(kind, outs)
    return outs


def _unhandled(kind: str, error: BaseException) -> Unhandled:
    # a stranger's words may hold a row's values
    known = isinstance(error, WalstreamError)
    what = str(error.args[0]) if known else type(error).__name__
    return Unhandled(f"handler {kind!r}: {what}")


def _check_kinds(kind: str, outs: Iterable[object]) -> None:
    """Raise Unhandled for what no sink takes."""
    for out in outs:
        if not isinstance(out, ProducerRecord | ReplicationOp):
            raise Unhandled(
                f"handler {kind!r} returns a {type(out).__name__}, which is neither a"
                " ReplicationOp nor a ProducerRecord"
            )


def _check_names(kind: str, outs: Iterable[Out], op: ReplicationOp) -> None:
    """Raise HistoryError for two ops of one name."""
    names = set()
    for out in outs:
        if isinstance(out, ProducerRecord):
            continue
        name = out.lsn, out.seq_id
        if name in names:
            raise HistoryError(
                f"handler {kind!r} makes several ops of the one of table"
                f" {op.table.full_name!r} at ({show(op.lsn)}, {op.seq_id}): they have"
                " one name, and readers leave out all but one",
                hint="return a ProducerRecord for each but one, or have a sink of its"
                " own for each; then: walstream run",
            )
        names.add(name)
