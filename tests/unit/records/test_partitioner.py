"""Partitions as other clients compute them."""

import zlib
from struct import pack, unpack

import pytest

from walstream.records.partitioner import (
    PARTITIONERS,
    at_random,
    crc32,
    fnv1a,
    murmur2,
    murmur2_of_all,
)

# Apache Kafka, UtilsTest.testMurmur2: signed 32-bit numbers, before they are masked
KAFKA = [
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
]
MANY = 2**31  # so many partitions that the number itself is seen


@pytest.mark.parametrize(("key", "number"), KAFKA)
def test_murmur2_is_kafkas(key: bytes, number: int) -> None:
    assert murmur2(key, MANY) == number & 0x7FFFFFFF
    assert murmur2(key, 12) == (number & 0x7FFFFFFF) % 12


@pytest.mark.parametrize(("key", "partition"), [(b"9", 1), (b"abc", 2)])
def test_crc32_is_the_known_one(key: bytes, partition: int) -> None:
    assert crc32(key, 4) == partition
    assert crc32(key, 2**32) == zlib.crc32(key)


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        (b"127.0.0.1:test:test:insert", 3),
        (b"127.0.0.1:test:test:update", 1),
        (b"127.0.0.1:test:test:delete", 3),
        (b"127.0.0.1:test:Mixed:insert", 0),
        (b"127.0.0.1:test:types:insert", 2),
    ],
)
def test_fnv1a_is_the_known_one(key: bytes, partition: int) -> None:
    assert fnv1a(key, 4) == partition


@pytest.mark.parametrize("name", sorted(PARTITIONERS))
def test_partition_is_one_that_exists(name: str) -> None:
    keys = [b"", *(b"k" * size for size in range(1, 9)), bytes(range(256))]
    assert all(0 <= PARTITIONERS[name](key, 7) < 7 for key in keys)
    assert all(PARTITIONERS[name](key, 1) == 0 for key in keys)


@pytest.mark.parametrize("name", sorted(set(PARTITIONERS) - {"random"}))
def test_key_always_goes_to_the_same_partition(name: str) -> None:
    assert len({PARTITIONERS[name](b"key", 100) for _ in range(10)}) == 1


def test_random_uses_every_partition() -> None:
    assert {at_random(b"key", 3) for _ in range(200)} == {0, 1, 2}


def test_librdkafka_names_mean_librdkafka_functions() -> None:
    assert PARTITIONERS["murmur2_random"] is PARTITIONERS["murmur2"]
    assert PARTITIONERS["consistent_random"] is PARTITIONERS["consistent"]
    assert PARTITIONERS["fnv1a_random"] is PARTITIONERS["fnv1a"]


def test_many_keys_of_several_lengths_go_where_each_would() -> None:
    keys = [b"x" * (3 + number % 2) + b"%02d" % number for number in range(40)]
    assert murmur2_of_all(keys, 7) == [murmur2(key, 7) for key in keys]
    assert murmur2_of_all(keys[::2], 7) == [murmur2(key, 7) for key in keys[::2]]
    assert murmur2_of_all(keys[:3], 7) == [murmur2(key, 7) for key in keys[:3]]


def test_fnv1a_is_the_absolute_value_of_a_signed_number() -> None:
    signs = set()
    for number in range(40):
        key = b"key %d" % number
        digest = 0x811C9DC5
        for byte in key:
            digest = (digest ^ byte) * 0x01000193 % 2**32
        (signed,) = unpack("<i", pack("<I", digest))
        signs.add(signed < 0)
        assert fnv1a(key, 7) == abs(signed) % 7
    assert signs == {True, False}
