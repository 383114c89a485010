"""PostgresMirror: tables of another database follow the stream."""

from consumer.mirror.application import PostgresMirror
from consumer.mirror.errors import MirrorError

__all__ = ["MirrorError", "PostgresMirror"]
