"""The LSN: a byte's address in the write-ahead log, a 64-bit unsigned number.

Inside walstream an LSN is a plain int (the hot path makes millions of them); people see
PostgreSQL's own form, two hexadecimal halves: `0/16B3748`.
"""

import re
from typing import Final

Lsn = int
"""An LSN, 0 to 2**64 - 1. 0 is PostgreSQL's InvalidXLogRecPtr: no position."""

INVALID: Final[Lsn] = 0
MAX: Final[Lsn] = 2**64 - 1
NEVER: Final[Lsn] = 1 << 64  # beyond every LSN
WAL_PAGE_HEADER: Final = 40  # bytes at most of a page of WAL: no record begins in it

_FORM: Final = re.compile("([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def show(lsn: Lsn) -> str:
    """Return an LSN as PostgreSQL prints it: `0/16B3748`."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse(text: str) -> Lsn:
    """Return the LSN of PostgreSQL's form; raise ValueError for anything else."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a valid LSN: write it as in 0/16B3748")
    return (int(found[1], 16) << 32) | int(found[2], 16)
