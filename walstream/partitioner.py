"""Key -> partition, as librdkafka and other clients compute it.

walstream computes the partition itself, from the partition count that it read at start:
when partitions are added to a live topic, no key moves until an operator agrees.
"""

import random
import zlib
from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Final

_MASK: Final = 0xFFFFFFFF
_SIGN: Final = 0x80000000
_MURMUR_M: Final = 0x5BD1E995
_MURMUR_SEED: Final = 0x9747B28C
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193

Partitioner = Callable[[bytes, int], int]
"""(key, number of partitions) -> partition"""


def _words(key: bytes) -> tuple[int, ...]:
    return unpack_from(f"<{len(key) >> 2}I", key)


# a Struct is costly to make, and keys are short
_WORDS: Final = [Struct(f"<{count}I").unpack_from for count in range(32)]
_LONG: Final = 4 * len(_WORDS)


def murmur2(key: bytes, partitions: int) -> int:
    """Kafka's own: MurmurHash2 of the key, made positive, modulo."""
    length = len(key)
    digest = _MURMUR_SEED ^ length
    for word in _WORDS[length >> 2](key) if length < _LONG else _words(key):
        mixed = word * _MURMUR_M & _MASK
        mixed = (mixed ^ mixed >> 24) * _MURMUR_M & _MASK
        digest = digest * _MURMUR_M & _MASK ^ mixed
    if length & 3:
        digest ^= int.from_bytes(key[length & ~3 :], "little")
        digest = digest * _MURMUR_M & _MASK
    digest = (digest ^ digest >> 13) * _MURMUR_M & _MASK
    return ((digest ^ digest >> 15) & 0x7FFFFFFF) % partitions


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
    return random.randrange(partitions)  # noqa: S311 - no secret


# librdkafka's `*_random` differ from their twins for null keys only: ops have a key.
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
