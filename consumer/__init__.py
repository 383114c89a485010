"""The consumer library: each change handled at least once, or exactly once.

It depends on nothing of walstream but `op`, `row`, `lsn`, `formats` and `errors`, so
that an application which imports it never loads Spark.
"""

from consumer import libraries as _libraries  # noqa: F401 - refuses old ones, first
from consumer.basic import BasicConsumer
from consumer.dedupe import Seen, SeenInLmdb, SeenInMemory, SeenInPostgres
from consumer.errors import (
    BarrierTimeout,
    ConsumerStopped,
    ForeignSource,
    HandlerFailed,
    Incomplete,
    PoisonRecord,
    SchemasRefused,
    TopicReplaced,
    TransactionEnded,
)
from consumer.group.assigned_partition import Place
from consumer.handler import (
    BasicApplication,
    BasicBatchApplication,
    Fatal,
    IdempotentApplication,
    IdempotentBatchApplication,
    Retry,
    Transaction,
)
from consumer.idempotent import IdempotentConsumer
from consumer.metrics import Measure, Metrics
from consumer.mirror import MirrorError, PostgresMirror, TransactionMirror
from consumer.op import ConsumerRecord, Op
from consumer.registry import SchemaRegistry
from consumer.router import BasicRouter, IdempotentRouter
from consumer.row_message import BadMessage, RowMessage, verify
from consumer.state.row_keys import WholeRowsError
from consumer.transactions import TransactionConsumer
from consumer.values import AbsentColumn, Values
from consumer.whole.application import TransactionApplication
from consumer.whole.transaction import WholeTransaction
from walstream.op import Kind, Table

__all__ = [
    "AbsentColumn",
    "BadMessage",
    "BarrierTimeout",
    "BasicApplication",
    "BasicBatchApplication",
    "BasicConsumer",
    "BasicRouter",
    "ConsumerRecord",
    "ConsumerStopped",
    "Fatal",
    "ForeignSource",
    "HandlerFailed",
    "IdempotentApplication",
    "IdempotentBatchApplication",
    "IdempotentConsumer",
    "IdempotentRouter",
    "Incomplete",
    "Kind",
    "Measure",
    "Metrics",
    "MirrorError",
    "Op",
    "Place",
    "PoisonRecord",
    "PostgresMirror",
    "Retry",
    "RowMessage",
    "SchemaRegistry",
    "SchemasRefused",
    "Seen",
    "SeenInLmdb",
    "SeenInMemory",
    "SeenInPostgres",
    "Table",
    "TopicReplaced",
    "Transaction",
    "TransactionApplication",
    "TransactionConsumer",
    "TransactionEnded",
    "TransactionMirror",
    "Values",
    "WholeRowsError",
    "WholeTransaction",
    "verify",
]
