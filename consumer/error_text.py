"""Text on the op that stopped the consumer: never with a value of its row."""

from typing import Final, TypeVar

from consumer.errors import ConsumerStopped, HandlerFailed
from consumer.handler import Fatal
from consumer.op import Op
from walstream.lsn import show

E = TypeVar("E", bound=ConsumerStopped)

COMMITTED_HINT: Final = (
    "the consumer commits: a handler only returns or raises. What it committed has no"
    " position, and comes again at the next start"
)


def shown(op: Op) -> str:
    """Name an op and where it lies."""
    record = op.record
    return (
        f"{op.kind.value} of {op.table.full_name}, lsn {op.lsn} ({show(op.lsn)}),"
        f" seq_id {op.seq_id}, in {record.topic}[{record.partition}]"
        f" offset {record.offset}"
    )


def blamed(error: E, op: Op) -> E:
    """Note the op in the error's attributes."""
    record = op.record
    error.at(record.topic, record.partition, record.offset)
    error.on(op.table.full_name, op.lsn, op.seq_id)
    return error


def handler_failed(op: Op, cause: BaseException) -> ConsumerStopped:
    """Make the error of what a handler raised; its message holds no word of theirs."""
    if isinstance(cause, ConsumerStopped):
        return cause
    inner = cause.cause if isinstance(cause, Fatal) else cause
    name = inner if isinstance(inner, str) else type(inner).__name__
    if inner is None:
        name = "Fatal"
    error = blamed(HandlerFailed(f"the handler failed ({name}) at {shown(op)}"), op)
    error.__cause__ = inner if isinstance(inner, BaseException) else cause
    return error
