"""Golden payloads: what PostgreSQL sent, recorded beside its SQL in data/pgoutput.

And one workload with all types, in data/formats, beside what each format makes of it.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from walstream.formats import ENCODERS
from walstream.formats.context import Context, SourceOrigin
from walstream.op import Kind, ReplicationOp, halves
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.pgoutput import (
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.pipeline.pgoutput import decode as decode_payload
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.records.key import KEY_FORMS

FOLDER: Final = Path(__file__).parents[2] / "data" / "pgoutput"
CASES: Final = sorted(path.stem for path in FOLDER.glob("*.sql"))
VERSIONS: Final = (15, 18)
WORKLOAD: Final = FOLDER.parent / "formats" / "workload.bin"
FORMATS: Final = {"op": "json", "event": "event", "tungsten": "tspkeyus"}  # and the key
_KEYS: Final = {"Mixed": ("Id",)}  # of those under REPLICA IDENTITY FULL
_ORIGIN: Final = SourceOrigin("db.example.org", "golden", 7_654_321, "walstream")


def payloads(case: str, version: int) -> list[bytes]:
    """Read the payloads of one case, in order."""
    return _split((FOLDER / f"{case}-{version}.bin").read_bytes())


def _split(recorded: bytes) -> list[bytes]:
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


def written(name: str) -> Iterator[bytes]:
    """Give the workload's records in a format: key, a tab, value."""
    context = Context(_ORIGIN)
    for op in _ops():
        encoder = ENCODERS[name](op.table, context)
        key = KEY_FORMS[FORMATS[name]](op.table, op.table.key, _ORIGIN)
        if op.kind is not Kind.TRUNCATE:
            yield key.render(op) + b"\t" + encoder.encode(op)
        elif encoder.truncates:
            yield key.table_key + b"\t" + encoder.encode(op)


def _ops() -> Iterator[ReplicationOp]:
    assembler = Assembler(0)
    for row_lsn, payload in enumerate(_split(WORKLOAD.read_bytes()), 1000):
        match message := decode_payload(payload):
            case Begin():
                assembler.begin(message)
            case Type():
                assembler.name_type(message)
            case Relation():
                keys = _KEYS.get(message.name, ())
                assembler.describe(message, KeyHistory([KeySet(0, keys)]))
            case Truncate():
                yield from assembler.truncate(message, row_lsn)
            case Insert() | Update() | Delete():
                op = assembler.row(message, row_lsn)
                yield from halves(op) if op.key_changed else (op,)
            case _:
                pass
