"""PostgresMirror: tables of another database follow the stream."""

from consumer.mirror.mirror import PostgresMirror
from consumer.mirror.trouble import MirrorError

__all__ = ["MirrorError", "PostgresMirror"]
