"""The advisory lock of a group's partition: which number it has.

SQLx derives the number of a named lock so, and so do consumers of the same state in
other languages: they exclude each other.
"""

import hmac
from typing import Final

_INFO: Final = b"SQLx (Rust) Postgres advisory lock"
_NO_SALT: Final = bytes(32)


def lock_key(group: str, topic: str, partition: int | str) -> int:
    """Return the number for pg_advisory_xact_lock."""
    secret = hmac.digest(_NO_SALT, f"{group}_{topic}_{partition}".encode(), "sha256")
    # the first block of HKDF's expansion has all the bytes that are wanted
    okm = hmac.digest(secret, _INFO + b"\x01", "sha256")
    return int.from_bytes(okm[:8], "little", signed=True)
