"""The LSN: a byte's address in the write-ahead log, a 64-bit unsigned number.

Inside walstream an LSN is a plain int (the hot path makes millions of them); people see
PostgreSQL's own form, two hexadecimal halves: `0/16B3748`.
"""

from typing import Final

Lsn = int
"""An LSN, 0 to 2**64 - 1. 0 is PostgreSQL's InvalidXLogRecPtr: no position."""

INVALID: Final[Lsn] = 0
MAX: Final[Lsn] = 2**64 - 1


def show(lsn: Lsn) -> str:
    """Print as PostgreSQL does: `0/16B3748`."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse(text: str) -> Lsn:
    """Read PostgreSQL's form; raise ValueError for anything else."""
    high, slash, low = text.strip().partition("/")
    if not slash or not 1 <= len(high) <= 8 or not 1 <= len(low) <= 8:  # noqa: PLR2004 - 32 bits are 8 hexadecimal digits
        raise ValueError(f"{text!r} is no LSN: it has the form 0/16B3748")
    try:
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError:
        raise ValueError(f"{text!r} is no LSN: it has the form 0/16B3748") from None
