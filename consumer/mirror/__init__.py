"""PostgresMirror: tables of another database follow the stream."""

from consumer.mirror.application import PostgresMirror
from consumer.mirror.errors import MirrorError
from consumer.mirror.transaction_mirror import TransactionMirror

__all__ = ["MirrorError", "PostgresMirror", "TransactionMirror"]
