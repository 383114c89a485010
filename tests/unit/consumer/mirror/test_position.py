"""When a row's position has to be kept; how: tests/integration/test_mirror_ops.py."""

import pytest

from consumer.mirror.position import same_key
from tests.ops import make
from walstream.op import Kind

KEY = {"a": "1", "b": "2"}


def ask(raw: bytes | None) -> bool:
    op = make(Kind.INSERT, "public.t", new=KEY)
    op.record = op.record._replace(key=raw)
    return same_key(op, KEY)


@pytest.mark.parametrize("raw", [b'["1","2"]', b"12", b'["public.t"]', b"public.t"])
def test_a_key_that_decides_the_row_needs_no_position(raw: bytes) -> None:
    assert ask(raw)


@pytest.mark.parametrize("raw", [None, b'["1"]', b'["2","1"]', b"", b"\xff", b"null"])
def test_any_other_key_needs_one(raw: bytes | None) -> None:
    assert not ask(raw)
