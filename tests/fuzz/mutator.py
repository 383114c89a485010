"""Inputs from a seed: entries of a corpus, cut, bent and put together. Nothing else."""

import random
from collections.abc import Callable, Sequence
from typing import Final

_MOST: Final = 6  # changes of one input
_LONGEST: Final = 1 << 16
_NESTED: Final = (50, 2_000, 30_000)  # so often a token stands in itself
_NUMBERS: Final = tuple(
    number.to_bytes(size, "big", signed=number < 0)
    for size in (1, 2, 4, 8)
    for number in (0, 1, -1, (1 << 8 * size - 1) - 1, -(1 << 8 * size - 1), 100)
    if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1
)
_TOKENS: Final = (
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b"null",
        b"true",
        b"-0",
        b"1e999",
    ),
    *(
        b"NaN",
        b"-Infinity",
        b'"\\ud800"',
        b"\xff",
        b"\xc3",
        b"\0",
        b"\n",
        b"\r\n",
        b"'",
    ),
    *(b"${", b"${env:X}", b"&a", b"*a", b"!!python/object", b"<<", b"0x", b"--", b"\t"),
    *(
        b"18446744073709551616",
        b"9" * 400,
        b"\xe2\x80\xae",
        b"\xef\xbb\xbf",
        b"/",
        b"=",
    ),
)


def mutated(corpus: Sequence[bytes], seed: str) -> bytes:
    """Return the input of a seed: the same for ever, as long as the corpus is."""
    die = random.Random(seed)  # noqa: S311 - the same for ever
    data = bytearray(die.choice(corpus))
    for _ in range(die.randint(1, _MOST)):
        _CHANGES[die.randrange(len(_CHANGES))](die, data, corpus)
        del data[_LONGEST:]
    return bytes(data)


def shrunk(data: bytes, fails: Callable[[bytes], bool], tries: int = 5000) -> bytes:
    """Return a smaller input that fails, too."""
    size = max(1, len(data) // 2)
    while size:
        at = 0
        while at < len(data) and tries:
            tries -= 1
            less = data[:at] + data[at + size :]
            if fails(less):
                data = less
            else:
                at += size
        size //= 2
    return data


def _flip(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[die.randrange(len(data))] ^= 1 << die.randrange(8)


def _set(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[die.randrange(len(data))] = die.randrange(256)


def _number(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    number = die.choice(_NUMBERS)
    at = die.randint(0, len(data))
    data[at : at + len(number)] = number


def _token(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = die.randint(0, len(data))
    data[at:at] = die.choice(_TOKENS)


def _nest(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if die.randrange(64):
        return
    at = die.randint(0, len(data))
    opened = die.choice((b"[", b'{"a":', b"(", b"- "))
    data[at:at] = opened * die.choice(_NESTED)


def _delete(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = die.randint(0, len(data))
    del data[at : at + die.randint(1, 16)]


def _cut(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[die.randint(0, len(data)) :]


def _double(die: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = die.randint(0, len(data))
    data[at:at] = data[at : at + die.randint(1, 64)]


def _splice(die: random.Random, data: bytearray, corpus: Sequence[bytes]) -> None:
    other = die.choice(corpus)
    start = die.randint(0, len(other))
    at = die.randint(0, len(data))
    data[at : die.randint(at, len(data))] = other[
        start : die.randint(start, len(other))
    ]


_CHANGES: Final = (_flip, _set, _number, _token, _nest, _delete, _cut, _double, _splice)
