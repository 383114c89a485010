"""Frames of CopyData, in which a replication stream carries messages and keepalives.

Source: PostgreSQL manual, "Streaming Replication Protocol".
"""

from struct import Struct
from typing import Final

WAL_DATA: Final = ord("w")  # a frame's first byte: a message follows the header
HEADER_SIZE: Final = 25  # 'w', start, end, clock
_INSERT: Final = ord("I")
_UPDATE: Final = ord("U")
_DELETE: Final = ord("D")

keepalive: Final = Struct("!xQQB").unpack  # wal_end, clock, reply wanted


def is_row(tag: int) -> bool:
    """Return True for the first byte of a row's message."""
    return tag == _INSERT or tag == _UPDATE or tag == _DELETE  # noqa: PLR1714 - no set
