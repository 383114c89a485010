"""Key -> partition, as librdkafka and other clients compute it.

walstream computes the partition itself, from the partition count that it read at start:
when partitions are added to a live topic, no key moves until an operator agrees.
"""

import zlib
from collections.abc import Callable, Sequence
from struct import unpack_from
from typing import TYPE_CHECKING, Final

from walstream.telemetry import runtime

if TYPE_CHECKING:  # a number of the machine, where this is compiled; else an int
    from mypy_extensions import i64

_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_MURMUR_M: Final = 0x5BD1E995
_MURMUR_SEED: Final = 0x9747B28C
_FEW: Final = 16  # keys of one length, for which numbers side by side do not pay
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193

Partitioner = Callable[[bytes, int], int]
"""(key, number of partitions) -> partition"""
Partitioners = Callable[[Sequence[bytes], int], list[int]]
"""The same for many keys at a time."""


def murmur2(key: bytes, partitions: int) -> int:
    """Kafka's own: MurmurHash2 of the key, made positive, modulo."""
    length: i64 = len(key)
    digest: i64 = _MURMUR_SEED ^ length
    place: i64 = 0
    word: i64
    while place + 4 <= length:
        word = (
            key[place]
            | key[place + 1] << 8
            | key[place + 2] << 16
            | key[place + 3] << 24
        )
        word = word * _MURMUR_M & _MASK
        word = (word ^ word >> 24) * _MURMUR_M & _MASK
        digest = digest * _MURMUR_M & _MASK ^ word
        place += 4
    if place < length:
        word = 0
        while place < length:
            length -= 1
            word = word << 8 | key[length]
        digest = (digest ^ word) * _MURMUR_M & _MASK
    digest = (digest ^ digest >> 13) * _MURMUR_M & _MASK
    return ((digest ^ digest >> 15) & 0x7FFFFFFF) % partitions


def murmur2_of_all(keys: Sequence[bytes], partitions: int) -> list[int]:
    """Compute murmur2 of many keys: a fraction of the time of one by one."""
    if len(set(map(len, keys))) == 1 and len(keys) >= _FEW:
        digests = _murmur2_digests(b"".join(keys), len(keys[0]), len(keys))
        return [digest % partitions for digest in digests]
    of_length: dict[int, list[int]] = {}  # places in `keys`
    for place, length in enumerate(map(len, keys)):
        of_length.setdefault(length, []).append(place)
    found = [0] * len(keys)
    for length, places in of_length.items():
        if len(places) < _FEW:
            for place in places:
                found[place] = murmur2(keys[place], partitions)
            continue
        alike = b"".join([keys[place] for place in places])
        digests = _murmur2_digests(alike, length, len(places))
        for place, digest in zip(places, digests, strict=True):
            found[place] = digest % partitions
    return found


def _murmur2_digests(joined: bytes, length: int, count: int) -> Sequence[int]:
    """Hash keys of one length, side by side in one number: 64 bits for each.

    A product of two 32-bit numbers stays in its 64, and what a shift brings in from the
    neighbour lies above the 32 that the mask keeps.
    """
    mask = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * count, "little")
    positive = int.from_bytes(b"\xff\xff\xff\x7f\0\0\0\0" * count, "little")
    seed = _MURMUR_SEED ^ length
    digest = int.from_bytes(seed.to_bytes(8, "little") * count, "little")
    whole = length & ~3
    for start in range(0, whole, 4):
        mixed = _side_by_side(joined, start, start + 4, length) * _MURMUR_M & mask
        mixed = (mixed ^ mixed >> 24 & mask) * _MURMUR_M & mask
        digest = digest * _MURMUR_M & mask ^ mixed
    if length & 3:
        digest ^= _side_by_side(joined, whole, length, length)
        digest = digest * _MURMUR_M & mask
    digest = (digest ^ digest >> 13 & mask) * _MURMUR_M & mask
    digest = (digest ^ digest >> 15) & positive
    return unpack_from(f"<{count}Q", digest.to_bytes(8 * count, "little"))


def _side_by_side(joined: bytes, start: int, end: int, length: int) -> int:
    """Take the bytes from `start` to `end` of each key, as little-endian numbers."""
    lanes = bytearray(8 * (len(joined) // length))
    for lane, place in enumerate(range(start, end)):
        lanes[lane::8] = joined[place::length]
    return int.from_bytes(lanes, "little")


def crc32(key: bytes, partitions: int) -> int:
    """CRC-32 of the key, modulo: librdkafka's `consistent`."""
    return zlib.crc32(key) % partitions


def fnv1a(key: bytes, partitions: int) -> int:
    """FNV-1a as a signed 32-bit number, its absolute value, modulo (Sarama's)."""
    digest = _FNV_OFFSET
    for byte in key:
        digest = (digest ^ byte) * _FNV_PRIME & _MASK
    if digest & _SIGN:
        digest = (1 << 32) - digest
    return digest % partitions


def at_random(_key: bytes, partitions: int) -> int:
    """Any partition: no order per key."""
    return runtime.randrange(partitions)


# librdkafka's `*_random` spread null keys, and consistent_random empty ones too. Here
# each op has a key, and an empty one is hashed like any other: it keeps its order.
PARTITIONERS: Final[dict[str, Partitioner]] = {
    "murmur2_random": murmur2,
    "murmur2": murmur2,
    "consistent_random": crc32,
    "consistent": crc32,
    "crc32": crc32,
    "fnv1a_random": fnv1a,
    "fnv1a": fnv1a,
    "random": at_random,
}


def for_all(name: str) -> Partitioners:
    """Return a partitioner for many keys at a time."""
    each = PARTITIONERS[name]
    if each is murmur2:
        return murmur2_of_all
    return lambda keys, partitions: [each(key, partitions) for key in keys]
