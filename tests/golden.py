"""Golden payloads: what PostgreSQL sent, recorded beside its SQL in data/pgoutput."""

import struct
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "data" / "pgoutput"
CASES: Final = sorted(path.stem for path in FOLDER.glob("*.sql"))
VERSIONS: Final = (15, 18)


def payloads(case: str, version: int) -> list[bytes]:
    """Read the payloads of one case, in order."""
    recorded = (FOLDER / f"{case}-{version}.bin").read_bytes()
    found = []
    offset = 0
    while offset < len(recorded):
        (size,) = struct.unpack_from("!I", recorded, offset)
        offset += 4
        found.append(recorded[offset : offset + size])
        offset += size
    return found


def all_payloads() -> list[bytes]:
    """Read every payload of every case."""
    return [
        payload
        for case in CASES
        for version in VERSIONS
        for payload in payloads(case, version)
    ]
